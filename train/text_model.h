// A text classifier ready for use: the network, its vocabulary, its classes; saved in and read from one file.
#pragma once
#include <memory>

#include "nn/text_classifier.h"
#include "train/batches.h"
#include "train/metrics.h"
#include "train/tensor_file.h"
#include "train/vocabulary.h"

namespace heed::train {

// How a text becomes token ids; kept with the model, since it must be the same in prediction.
struct Encoding {
  int64_t max_length = 256;
  Truncate truncate = Truncate::head;
};

struct TextModel {
  std::unique_ptr<nn::TextClassifier> network;
  Vocabulary vocabulary;
  std::vector<std::string> classes;
  Encoding encoding;

  EncodedTexts encode(const std::vector<Example>& examples) const;
};

// A new network with initial weights by `seed`; options.vocab_size and options.classes are set from the vocabulary and the classes.
TextModel make_model(nn::TextClassifierOptions options, Vocabulary vocabulary, std::vector<std::string> classes, Encoding encoding, uint64_t seed);

// The model as a file: weights by their paths; configuration, vocabulary and classes in the metadata.
TensorFile to_file(const TextModel& model);
// FileError if the file is not such a model, found before anything is built: a key that is missing or contradicts the tensors, a weight
// that is not finite. Tensors whose name starts with "optimizer/" belong to a training run and are passed over.
TextModel from_file(const TensorFile& file, const std::string& path);
TextModel load_model(const std::string& path);

std::string truncate_name(Truncate truncate);               // head, tail, head_tail
Truncate truncate_from(const std::string& name);           // UsageError naming the three otherwise

// Ids and lengths of a batch as tensors.
Tensor ids_of(const Batch& batch);      // i32 (B, T)
Tensor lengths_of(const Batch& batch);  // i32 (B,)

// NumericError if a model's output holds NaN or infinity.
void require_finite(const Tensor& logits);

struct Prediction {
  int64_t label = 0;
  std::vector<double> probabilities;  // one for each class; they sum to 1
};
// In the order of the texts.
std::vector<Prediction> predict(TextModel& model, const EncodedTexts& texts, int64_t batch_size = 64);
// Loss and confusion of predictions against the labels.
Metrics evaluate(TextModel& model, const EncodedTexts& texts, int64_t batch_size = 64);

}  // namespace heed::train
