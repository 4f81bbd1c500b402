// Why attention? Four models read film reviews in which no word alone gives the verdict away: "the cast is wonderful, but the film is a
// bore". Counted or averaged words tell nothing; the article's model lets them meet, but not know where they stand; the full one does.
// Each trains for 40 epochs (a few minutes); the epoch best on validation is tested once. Accuracies in percent:
//   model                parameters  validation      test   new patterns
//   word counts                 746        53.0      50.8           53.1
//   mean of embeddings        23938        51.3      51.0           52.8
//   printed classifier        40578        63.3      60.0           52.9
//   full classifier           61634        99.2      99.2           82.7
#include <cstdio>
#include <functional>

#include "autograd/ops.h"
#include "nn/text_classifier.h"
#include "train/batches.h"
#include "train/optimizer.h"
#include "train/reviews.h"
#include "train/schedule.h"
#include "train/text_model.h"

using namespace heed;
using namespace heed::train;
using Forward = std::function<Variable(const Tensor& ids, const Tensor& lengths)>;  // (B, T), (B,) -> logits (B, 2)
struct Reviews { EncodedTexts train, validation, test, test_new; };

double accuracy(const Forward& forward, const EncodedTexts& texts) {
  const NoGrad scope;
  Batches batches(texts, 100, Batches::Order::by_length);
  double right = 0;
  for (Batch b; batches.next(b);) {
    const Tensor predicted = argmax(forward(ids_of(b), lengths_of(b)).value(), 1).to(DType::f32);
    right += sum(eq(predicted, from_vector(b.labels, {b.size}, DType::f32))).item();
  }
  return 100 * right / static_cast<double>(texts.size());
}

void compare(const char* name, nn::Module& model, const Forward& forward, const Reviews& reviews, double lr) {
  const int64_t epochs = 40;
  Adam optimizer(decay_groups(model.variables(), 0.1), lr, {.decoupled = true});
  double best = -1;
  std::map<std::string, Tensor> chosen;
  Batches batches(reviews.train, 32, Batches::Order::shuffled, 1);
  for (int64_t step = 0; batches.epoch() < epochs;) {
    model.train();
    for (Batch b; batches.next(b); step++) {
      set_dropout_stream(1, static_cast<uint64_t>(step));
      const Variable loss = cross_entropy(forward(ids_of(b), lengths_of(b)), indices(b.labels));
      optimizer.zero_grad();
      loss.backward();
      clip_grad_norm(model.variables(), 1);
      optimizer.set_lr(scheduled_lr({.kind = "one_cycle", .lr = lr, .total_steps = epochs * batches.per_epoch()}, step));
      optimizer.step();
    }
    model.eval();
    const double validation = accuracy(forward, reviews.validation);
    if (validation <= best) continue;
    best = validation;
    for (const auto& [path, weight] : model.state()) chosen[path] = weight.contiguous_copy();
  }
  model.load_state(chosen);
  const double test = accuracy(forward, reviews.test), test_new = accuracy(forward, reviews.test_new);
  std::printf("%-20s %10lld %11.1f %9.1f %14.1f\n", name, static_cast<long long>(model.parameter_count()), best, test, test_new);
}

int main() {
  const TextDataset data = built_in_reviews();
  const Vocabulary vocabulary = build_vocabulary(data.train, 20000, 1);
  const auto ids = [&](const std::vector<Example>& examples) { return encode(examples, vocabulary, 64); };
  const Reviews reviews{ids(data.train), ids(data.validation), ids(data.test), ids(data.test_new)};
  Random random(1);
  std::printf("%-20s %10s %11s %9s %14s\n", "model", "parameters", "validation", "test", "new patterns");

  struct WordCounts : nn::Module {  // a weight for each word and class
    Variable weight, bias;
    WordCounts(int64_t words) : weight(parameter("weight", zeros({words, 2}))), bias(parameter("bias", zeros({2}))) {}
  } counts(vocabulary.size());
  compare("word counts", counts, [&](const Tensor& ids, const Tensor& lengths) {
    const Tensor n = lengths.to(DType::f32).unsqueeze(1);  // a sum is the mean times the length
    return nn::masked_mean(embedding(counts.weight, ids), lengths) * Variable(n) + counts.bias;
  }, reviews, 0.01);

  nn::TextClassifierOptions options{.vocab_size = vocabulary.size(), .embed_dim = 64, .hidden_dim = 64, .heads = 16, .ffn_dim = 128,
                                   .positions = nn::Positions::learned, .dropout = 0.05, .max_length = 64};  // the main job's
  struct MeanOfEmbeddings : nn::Module {
    nn::Embedding embedding;
    nn::Linear fc;
    MeanOfEmbeddings(int64_t words, Random& random) : embedding(words, 64, random), fc(64, 2, random) {
      Tensor(embedding.weight.value()).affine_(0.02, 0);  // as TextClassifier begins
      child("embedding", embedding), child("fc", fc);
    }
  } mean(vocabulary.size(), random);
  compare("mean of embeddings", mean, [&](const Tensor& ids, const Tensor& lengths) { return mean.fc.forward(nn::masked_mean(mean.embedding.forward(ids), lengths)); },
          reviews, 0.003);

  for (bool printed : {true, false}) {
    options.printed = printed;
    nn::TextClassifier model(options, random);
    compare(printed ? "printed classifier" : "full classifier", model, [&](const Tensor& ids, const Tensor& lengths) { return model.forward(ids, lengths); }, reviews, 0.004);
  }
}
