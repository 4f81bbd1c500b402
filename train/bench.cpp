#include "train/bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "autograd/ops.h"
#include "nn/scaled_dot_product.h"
#include "nn/text_classifier.h"
#include "tensor/blas.h"
#include "train/optimizer.h"

namespace heed::train {

namespace {

// i32, each in [0, n)
Tensor random_indices(const Shape& shape, int64_t n, Random& random) {
  std::vector<int32_t> values(static_cast<size_t>(shape.numel()));
  for (int32_t& value : values) value = static_cast<int32_t>(random.below(static_cast<uint64_t>(n)));
  return indices(values, shape);
}

// One step of training: forward, backward, optimizer. `loss` keeps the model alive.
std::function<void()> training(std::shared_ptr<Optimizer> optimizer, std::function<Variable()> loss) {
  return [optimizer, loss, step = uint64_t{0}]() mutable {
    set_dropout_stream(1, step++);
    optimizer->zero_grad();
    loss().backward();
    optimizer->step();
  };
}

std::shared_ptr<Optimizer> adam(const nn::Module& model, double lr) {
  return std::make_shared<Adam>(std::vector<ParameterGroup>{{model.variables()}}, lr);
}

// The text classifier of article 002, section 4.1, as printed: embedding, one attention of 4 heads, mean, fc.
std::function<void()> classifier(bool small) {
  const int64_t B = small ? 2 : 32, T = small ? 16 : 256, V = small ? 50 : 20000, C = small ? 16 : 256;
  Random random(1);
  const nn::TextClassifierOptions options{
      .vocab_size = V, .embed_dim = C, .hidden_dim = C, .heads = 4, .printed = true};
  const auto model = std::make_shared<nn::TextClassifier>(options, random);
  const Tensor ids = random_indices({B, T}, V, random), target = random_indices({B}, 2, random);
  return training(adam(*model, 1e-3), [=] { return cross_entropy(model->forward(ids), target); });
}

// An encoder of two pre-norm blocks over given vectors, with dropout; mean; fc.
struct EncoderClassifier : nn::Module {
  nn::Encoder encoder;
  nn::Linear fc;

  EncoderClassifier(const nn::EncoderOptions& options, Random& random)
      : encoder(options, random), fc(options.dim, 2, random) {
    child("encoder", encoder);
    child("fc", fc);
  }
  Variable forward(const Variable& x) { return fc.forward(mean(encoder.forward(x), {1})); }
};

std::function<void()> encoder(bool small) {
  const int64_t B = small ? 2 : 16, T = small ? 16 : 256, C = small ? 16 : 256;
  Random random(1);
  const nn::EncoderOptions options{.dim = C, .heads = 4, .layers = 2, .ffn_dim = 4 * C, .dropout = 0.1};
  const auto model = std::make_shared<EncoderClassifier>(options, random);
  const Variable x(randn({B, T, C}, random));
  const Tensor target = random_indices({B}, 2, random);
  return training(adam(*model, 1e-4), [=] { return cross_entropy(model->forward(x), target); });
}

// The fused attention alone, forward and backward: 4 samples, 4 heads of width 64, T queries and keys.
MakeStep attention(int64_t T) {
  return [T](bool small) -> std::function<void()> {
    const Shape shape = small ? Shape{1, 2, T / 16, 16} : Shape{4, 4, T, 64};
    Random random(1);
    std::vector<Variable> qkv;
    for (const char* name : {"q", "k", "v"}) qkv.emplace_back(randn(shape, random), true, name);
    const Tensor dy = randn(shape, random);
    return [qkv, dy]() mutable {
      for (Variable& x : qkv) x.zero_grad();
      nn::fused_scaled_dot_product_attention(qkv[0], qkv[1], qkv[2]).backward(dy);
    };
  };
}

}  // namespace

const std::vector<Bench>& benches() {
  static const std::vector<Bench> list = {
      {"classifier", "training step: embedding 20000 x 256, attention of 4 heads, 32 texts of 256 words, Adam",
       classifier},
      {"encoder", "training step: 2 pre-norm blocks of width 256, dropout 0.1, 16 x 256 vectors, Adam", encoder},
      {"attention-512", "fused attention forward and backward: 4 x 4 heads of width 64, 512 queries and keys",
       attention(512)},
      {"attention-1024", "the same with 1024", attention(1024)},
      {"attention-2048", "the same with 2048", attention(2048)},
  };
  return list;
}

BenchFigure measure(const Bench& bench, const BenchOptions& options) {
  using Clock = std::chrono::steady_clock;
  Device& device = default_device();
  device.memory().trim();
  device.memory().reset_peak();
  const std::function<void()> step = bench.make(options.small);
  const auto timed = [&] {
    const Clock::time_point start = Clock::now();
    step();
    device.synchronize();
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  for (int64_t i = 0; i < options.warmup; i++) timed();
  device.synchronize();  // the data, where nothing warms up
  std::vector<double> times;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(options.seconds);
  while (static_cast<int64_t>(times.size()) < options.steps || Clock::now() < end) times.push_back(timed());

  std::sort(times.begin(), times.end());
  const size_t n = times.size();
  const auto rounded = [](double ms) { return std::round(ms * 1e4) / 1e4; };
  return {.name = bench.name,
          .device = device.name(),
          .threads = threads(),
          .small = options.small,
          .median_ms = rounded((times[(n - 1) / 2] + times[n / 2]) / 2),
          .min_ms = rounded(times[0]),
          .steps = static_cast<int64_t>(n),
          .peak_bytes = device.memory().peak()};
}

}  // namespace heed::train
