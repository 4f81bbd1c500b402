// Ten training steps of the text classifier agree with the same model in PyTorch (tests/golden/ten_steps.py), in f64.
#include <doctest/doctest.h>

#include <cmath>

#include "autograd/ops.h"
#include "nn/text_classifier.h"
#include "tests/tested_devices.h"
#include "train/optimizer.h"
#include "train/tensor_file.h"

using namespace heed;

namespace {

double largest_difference(const Tensor& a, const Tensor& b) { return a.numel() ? max(abs(a - b)).item() : 0; }

// PyTorch's names and heed's are the same.
void check_ten_steps(const std::string& device_name, bool fused) {
  set_default_device(device(device_name));
  set_default_dtype(DType::f64);
  const std::map<std::string, Tensor> golden = train::load_tensors("tests/golden/ten_steps.safetensors").tensors;
  Random random(0);
  nn::TextClassifierOptions options;
  options.vocab_size = 30, options.embed_dim = 8, options.hidden_dim = 12, options.heads = 3, options.ffn_dim = 16;
  options.dropout = 0, options.max_length = 16;
  nn::TextClassifier model(options, random);
  model.use_fused(fused);

  std::map<std::string, Tensor> initial;
  for (const auto& [name, tensor] : golden) {
    if (name.rfind("initial.", 0) == 0) initial[name.substr(8)] = tensor;
  }
  model.load_state(initial);
  const std::vector<Variable> parameters = model.variables();
  train::Adam optimizer(train::decay_groups(parameters, 0.1), 0.01, {.decoupled = true});

  for (int64_t step = 0; step < 10; step++) {
    const std::string number = std::to_string(step);
    const Variable loss = cross_entropy(model.forward(golden.at("ids." + number), golden.at("lengths." + number)), golden.at("labels." + number));
    optimizer.zero_grad();
    loss.backward();
    const double norm = train::clip_grad_norm(parameters, 1.0);
    optimizer.step();
    INFO(device_name << " step " << step);
    CHECK(std::fabs(loss.item() - golden.at("losses").at({step})) < 1e-9);
    CHECK(std::fabs(norm - golden.at("norms").at({step})) < 1e-9);
  }
  for (const auto& [path, variable] : model.parameters()) {
    INFO(device_name << " " << path);
    CHECK(largest_difference(variable.value(), golden.at("final." + path)) < 1e-9);
  }
  set_default_dtype(DType::f32);
  set_default_device(device("cpu"));
}

}  // namespace

TEST_CASE("ten training steps agree with PyTorch to 1e-9") {
  for (Device* device : tests::tested_devices()) {
    for (bool fused : {true, false}) check_ten_steps(device->name(), fused);
  }
}
