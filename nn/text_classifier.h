// TextClassifier: the model of article 002, section 4.1, grown up.
//
//   ids (B, T) -> embedding -> [project] -> [class token] -> [positions] -> encoder -> pooling -> fc -> (B, classes)
//
// The article's cannot run as printed: it feeds an embedding of width 128 into attention built for 256, so `project` is
// ours. It also pools over padding and has no positions, residual, norm or dropout, although its text calls residuals a
// must; here each is a switch.
#pragma once
#include "nn/attention.h"
#include "nn/embedding.h"
#include "nn/positions.h"
#include "nn/text_classifier_options.h"

namespace heed::nn {

class TextClassifier : public Module {
  TextClassifierOptions options_;  // first: they are checked before anything is built

 public:
  Embedding embedding;
  std::optional<Linear> project;                // embed_dim -> hidden_dim; absent if they are equal
  Variable class_token;                         // (hidden_dim,), with Pooling::class_token
  std::unique_ptr<Layer> positions;             // or null
  std::optional<Encoder> encoder;               // or, for the printed version,
  std::optional<MultiHeadAttention> attention;  // the article's attention, with heads of hidden_dim / heads
  Dropout dropout;
  Linear fc;

  TextClassifier(const TextClassifierOptions& options, Random& random);
  // The article's constructor: our version of its model.
  TextClassifier(int64_t vocab_size, int64_t embed_dim, int64_t hidden_dim, Random& random);

  const TextClassifierOptions& options() const { return options_; }

  // ids: i32 (B, T), token ids; lengths: i32 (B,), how many of a row are real, or undefined if all are -> logits.
  // What stands beyond the length does not matter (but for the printed version, which sees it). A review of length 0
  // gets finite logits. ShapeError if T is above max_length and there are positions; IndexError for an id outside the
  // vocabulary.
  Variable forward(const Tensor& ids, const Tensor& lengths = {}, Site at = Site::here());

  void use_fused(bool on);
  void keep_weights(bool on);           // of the forwards from now on; see SelfAttention
  std::vector<Tensor> weights() const;  // (B, H, T, T) of each layer; a class token is position 0, T is one more then

 private:
  Variable embed(const Tensor& ids);                        // (B, T, hidden_dim)
  Variable pool(const Variable& x, const Tensor& lengths);  // (B, hidden_dim)
};

}  // namespace heed::nn
