// The Transformer (Vaswani et al. 2017): reads a sequence with its encoder and writes another with its decoder.
#pragma once
#include "nn/decoder.h"
#include "nn/embedding.h"
#include "nn/positions.h"

namespace heed::nn {

struct TransformerOptions {
  int64_t source_words = 0, target_words = 0;  // sizes of the two vocabularies
  int64_t dim = 256, heads = 4, layers = 2, ffn_dim = 1024;
  int64_t max_length = 512;  // of either sequence
  Norm norm = Norm::pre;
  double dropout = 0.1;
  Activation activation = Activation::relu;
};

// Words are embedded, scaled by sqrt(dim) (section 3.4) and get sinusoidal positions; `generator` turns the decoder's
// output into logits of the next word.
class Transformer : public Module {
 public:
  Embedding source_embedding, target_embedding;
  SinusoidalPositions positions;
  Encoder encoder;
  Decoder decoder;
  Dropout dropout;
  Linear generator;

  Transformer(const TransformerOptions& options, Random& random);

  // source: i32 (B, S), padded; lengths: i32 (B,), how many are real -> (B, S, dim). ShapeError above max_length,
  // IndexError for an id outside the vocabulary.
  Variable encode(const Tensor& source, const Tensor& lengths, Site at = Site::here());
  // target: i32 (B, T), the words so far, the first of them a start token -> logits (B, T, target_words): those at t are
  // for word t + 1 and depend on words 0 to t alone. Padding behind a target does no harm.
  Variable decode(const Tensor& target, const Variable& memory, const Tensor& lengths, Site at = Site::here());
  Variable forward(const Tensor& source, const Tensor& lengths, const Tensor& target, Site at = Site::here());

  void keep_weights(bool on);  // of all three kinds of attention, in `encoder` and `decoder`

 private:
  Variable embed(Embedding& embedding, const Tensor& ids, Site at);
  double scale_;
};

// Shifted targets for teacher forcing: the decoder reads `input`, a start token and then the words, and shall say
// `labels`, the words and then an end token. Both are i32 (B, T), T the longest plus 1; behind the end `input` has the end
// token and `labels` -100, which cross_entropy ignores.
struct ShiftedTargets {
  Tensor input, labels;
};
ShiftedTargets shift_targets(const std::vector<std::vector<int32_t>>& words, int32_t start, int32_t end);

}  // namespace heed::nn
