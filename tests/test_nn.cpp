// Modules and layers: paths, state, initial weights, norms, dropout, positions, the feed-forward network.
#include <doctest/doctest.h>

#include <cmath>
#include <thread>

#include "autograd/gradcheck.h"
#include "nn/embedding.h"
#include "nn/feed_forward.h"
#include "nn/loss.h"
#include "nn/norm.h"
#include "nn/pooling.h"
#include "nn/positions.h"
#include "nn/sequential.h"
#include "tests/golden.h"

using namespace heed;
using namespace heed::nn;
using namespace heed::tests;

namespace {

struct Inner : Module {
  Linear fc;
  Variable scale, count;

  explicit Inner(Random& random) : fc(3, 2, random) {
    child("fc", fc);
    scale = parameter("scale", ones({2}));
    count = buffer("count", zeros({1}));
  }
  Variable forward(const Variable& x) {
    Scope in(*this);
    return fc.forward(x) * scale;
  }
  using Module::buffer;
  using Module::child;
  using Module::parameter;
};

struct Outer : Module {
  Inner left, right;
  LayerNorm norm;

  explicit Outer(Random& random) : left(random), right(random), norm(2) {
    child("blocks.0", left);
    child("blocks.1", right);
    child("", norm);  // its parameters are the outer module's own
  }
  Variable forward(const Variable& x) {
    Scope in(*this);
    const Variable a = left.forward(x), b = right.forward(x);
    return norm.forward(a + b);
  }
};

template <class Fn>
std::string error_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) { return error.what(); }
  return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("module: dotted paths, own parameters first, in the order of declaration") {
  Random random(1);
  Outer module(random);
  std::vector<std::string> paths;
  for (const auto& [path, variable] : module.parameters()) {
    paths.push_back(path);
    CHECK(variable.name() == path);
  }
  CHECK(paths == std::vector<std::string>{"blocks.0.scale", "blocks.0.fc.weight", "blocks.0.fc.bias", "blocks.1.scale",
                                          "blocks.1.fc.weight", "blocks.1.fc.bias", "weight", "bias"});
  CHECK(module.parameter_count() == 2 * (2 + 6 + 2) + 4);
  CHECK(module.variables().size() == paths.size());
  CHECK(module.right.parameters()[1].path == "fc.weight");                      // from the module on
  CHECK(module.right.parameters()[1].variable.name() == "blocks.1.fc.weight");  // from the top
  CHECK(std::string(module.right.fc.path()) == "blocks.1.fc");
}

TEST_CASE("module: the tape and the errors say where") {
  Random random(1);
  Outer module(random);
  const Variable y = module.forward(Variable(ones({4, 3}), true, "x"));
  CHECK(std::string(y.node()->module()) == "");
  CHECK(std::string(y.node()->input(0)->input(0)->module()) == "blocks.0");
  CHECK(std::string(y.node()->input(0)->input(0)->input(0)->module()) == "blocks.0.fc");
  CHECK(std::string(current_module()) == "");
  const std::string what = error_of([&] { module.forward(Variable(ones({4, 5}), false, "features")); });
  CHECK(contains(what, "\"features\""));
  CHECK(contains(what, "\"blocks.0.fc.weight\""));
  CHECK(contains(what, "in blocks.0.fc"));
  CHECK(contains(what, "test_nn.cpp"));
  CHECK(std::string(current_module()) == "");  // also after an exception
}

TEST_CASE("module: paths outlive the module") {
  Variable y;
  {
    Random random(1);
    Outer module(random);
    y = sum(module.forward(Variable(ones({2, 3}))));
  }
  CHECK(contains(y.node()->input(0)->describe(), "layer_norm"));
  y.backward();
}

TEST_CASE("module: a name or a child twice is refused") {
  Random random(1);
  Inner a(random), b(random);
  CHECK_THROWS_AS(a.parameter("scale", ones({1})), UsageError);
  CHECK_THROWS_AS(a.buffer("fc", ones({1})), UsageError);
  CHECK_THROWS_AS(a.child("fc", b), UsageError);
  a.child("b", b);
  CHECK_THROWS_AS(a.child("c", b), UsageError);
}

TEST_CASE("module: train, eval, zero_grad and summary reach every part") {
  Random random(1);
  Outer module(random);
  CHECK(module.left.fc.training());
  module.eval();
  CHECK(!module.left.fc.training());
  module.train();
  CHECK(module.norm.training());
  sum(module.forward(Variable(randn({4, 3}, random))) * Variable(randn({4, 2}, random))).backward();
  for (const Variable& p : module.variables()) CHECK(p.grad().defined());
  module.zero_grad();
  for (const Variable& p : module.variables()) CHECK(!p.grad().defined());
  CHECK(Outer(random).right.summary() ==
        "parameter  shape   count\n"
        "scale      (2,)        2\n"
        "fc.weight  (2, 3)      6\n"
        "fc.bias    (2,)        2\n"
        "total                 10\n");
}

TEST_CASE("module: state goes out and comes in, and is a copy then") {
  Random random(1), other(2);
  Outer from(random), to(other);
  from.left.count.set_value(full({1}, 7));
  std::map<std::string, Tensor> state = from.state();
  CHECK(state.size() == 10);  // 8 parameters, 2 buffers
  to.load_state(state);
  for (const auto& [path, tensor] : to.state()) {
    CHECK(difference(tensor, state.at(path)) == 0);
    CHECK(!tensor.shares_storage_with(state.at(path)));
  }
  CHECK(to.left.count.item() == 7);
  CHECK(to.left.fc.weight.name() == "blocks.0.fc.weight");
  to.right.load_state(from.left.state());  // a part by itself, by its own paths
  CHECK(difference(to.right.fc.weight.value(), from.left.fc.weight.value()) == 0);
}

TEST_CASE("module: load_state lists every fault at once and changes nothing") {
  Random random(1);
  Outer module(random);
  const Tensor before = module.left.fc.weight.value().contiguous_copy();
  std::map<std::string, Tensor> state = module.state();
  for (auto& [path, tensor] : state) tensor = zeros_like(tensor);
  state.erase("weight");
  state.erase("blocks.1.count");
  state["head.weight"] = ones({1});
  state["blocks.0.scale"] = ones({3});
  state["blocks.1.scale"] = ones({2}, DType::f64);
  const std::string what = error_of([&] { module.load_state(state); });
  for (const char* part :
       {"missing (2): weight, blocks.1.count", "unexpected (1): head.weight", "blocks.0.scale is (3,), must be (2,)",
        "blocks.1.scale is f64, must be f32", "nothing was loaded"}) {
    INFO(what);
    CHECK(contains(what, part));
  }
  CHECK(difference(module.left.fc.weight.value(), before) == 0);
  // Not strict: the rest is loaded, but a wrong shape stays an error.
  CHECK(contains(error_of([&] { module.load_state(state, false); }), "wrong shape"));
  CHECK(difference(module.left.fc.weight.value(), before) == 0);
  state.erase("blocks.0.scale");
  state.erase("blocks.1.scale");
  module.load_state(state, false);
  CHECK(difference(module.left.fc.weight.value(), zeros_like(before)) == 0);
  CHECK(difference(module.norm.weight.value(), ones({2})) == 0);
}

TEST_CASE("layers: Linear, Sequential, losses") {
  for (const char* device_name : {"reference", "cpu"}) {
    const InDoubles scope(device_name);
    Random random(1);
    Linear linear(4, 3, random);
    CHECK(golden_difference(golden_case("modules", "linear_module"), &linear,
                            [&](GoldenInputs& x) -> std::vector<Variable> { return {linear.forward(x["x"])}; }) <
          1e-10);
  }
  Random random(1);
  Sequential net;
  net.add<Linear>(2, 8, random);
  net.add<Tanh>();
  Linear& last = net.add<Linear>(8, 1, false, random);
  CHECK(!last.bias.defined());
  CHECK(net.parameters().back().path == "2.weight");
  const Variable x(tensor({{0, 0}, {0, 1}, {1, 0}, {1, 1}}));
  const Tensor target = tensor({0, 1, 1, 0}).reshape({4, 1});
  BCEWithLogitsLoss loss;
  const double first = loss.forward(net.forward(x), target).item();
  for (int step = 0; step < 500; step++) {
    net.zero_grad();
    loss.forward(net.forward(x), target).backward();
    for (const Variable& p : net.variables()) Tensor(p.value()).add_(p.grad() * -0.5);
  }
  CHECK(loss.forward(net.forward(x), target).item() < first / 10);
  CHECK_THROWS_AS(loss.forward(net.forward(x), target.reshape({4})), ShapeError);
  CHECK(std::fabs(CrossEntropyLoss().forward(Variable(zeros({2, 4})), indices({1, 3})).item() - std::log(4)) < 1e-6);
  CHECK(MSELoss(Reduce::sum).forward(Variable(ones({3})), Variable(zeros({3}))).item() == 3);
  CHECK_THROWS_AS(Linear(0, 3, random), UsageError);
}

TEST_CASE("layers: activations by name") {
  const Variable x(tensor({-1, 0.5}));
  CHECK(difference(activate(choice_among(kActivations, "activation", "relu"), x).value(), tensor({0, 0.5})) == 0);
  CHECK(difference(GELU().forward(x).value(), gelu(x).value()) == 0);
  for (const auto& choice : kActivations)
    CHECK(choice_among(kActivations, "activation", name_among(kActivations, choice.value)) == choice.value);
  const std::string what = error_of([] { choice_among(kActivations, "activation", "swish"); });
  CHECK(what == "activation: there is no \"swish\"; heed has relu, gelu, gelu_tanh, silu, tanh, sigmoid");
}

TEST_CASE("layers: Embedding reads rows, leaves the padding row alone, and names a wrong id") {
  const InDoubles scope("cpu");
  Random random(1);
  Embedding table(5, 3, 2, random);
  CHECK(difference(table.weight.value().select(0, 2), zeros({3})) == 0);
  const Variable y = table.forward(indices({1, 2, 1, 4}, {2, 2}));
  CHECK(y.shape() == Shape{2, 2, 3});
  CHECK(difference(y.value().select(0, 0).select(0, 0), table.weight.value().select(0, 1)) == 0);
  sum(y).backward();
  CHECK(difference(table.weight.grad(), tensor({{0, 0, 0}, {2, 2, 2}, {0, 0, 0}, {0, 0, 0}, {1, 1, 1}})) == 0);
  const std::string what = error_of([&] { table.forward(indices({0, 5})); });
  CHECK(contains(what, "5"));
  CHECK(contains(what, "test_nn.cpp"));
  CHECK_THROWS_AS(table.forward(indices({-1})), IndexError);
  CHECK_THROWS_AS(Embedding(5, 3, 5, random), UsageError);
  for (const int64_t padding_idx : {-2, 5}) {
    CHECK_THROWS_AS(embedding(table.weight, indices({0}), padding_idx), IndexError);
  }
}

TEST_CASE("pooling: lengths within the sequence are asked for, and of nothing it gives 0") {
  const Variable x(tensor({{{1, 5}, {2, 3}}, {{7, 8}, {9, 9}}}), true);
  CHECK(masked_mean(x, indices({2, 1})).value().to_vector<double>() == std::vector<double>{1.5, 4, 7, 8});
  CHECK(masked_max(x, indices({2, 0})).value().to_vector<double>() == std::vector<double>{2, 5, 0, 0});
  for (const auto pool : {masked_mean, masked_max}) {
    const Variable none(zeros({2, 0, 3}), true);
    const Variable y = pool(none, indices({0, 0}), Site::here());
    CHECK(y.value().to_vector<double>() == std::vector<double>(6, 0));
    sum(y).backward();
    CHECK(none.grad().shape() == none.shape());
    for (const Tensor& lengths : {indices({3, 1}), indices({-1, 1}), tensor({1, 1}), indices({1}), Tensor()}) {
      CHECK(contains(error_of([&] { pool(x, lengths, Site::here()); }), "pooling: "));
    }
  }
}

TEST_CASE("layers: norms of ordinary, constant and zero rows, and of width 1") {
  for (const char* device_name : {"reference", "cpu"}) {
    const InDoubles scope(device_name);
    Random random(1);
    LayerNorm layer(6);
    const Tensor y = layer.forward(Variable(randn({4, 6}, random))).value();
    CHECK(difference(mean(y, {-1}), zeros({4})) < 1e-12);
    CHECK(difference(var(y, {-1}, false, false), ones({4})) < 1e-3);
    CHECK(difference(layer.forward(Variable(full({2, 6}, 3))).value(), zeros({2, 6})) == 0);
    RMSNorm rms(6);
    CHECK(difference(mean(pow(rms.forward(Variable(randn({4, 6}, random))).value(), 2.0), {-1}), ones({4})) < 1e-4);
    CHECK(difference(rms.forward(Variable(zeros({2, 6}))).value(), zeros({2, 6})) == 0);
    LayerNorm one(1);
    Variable x(randn({3, 1}, random), true);
    sum(one.forward(x)).backward();
    CHECK(difference(one.weight.grad(), zeros({1})) == 0);
    CHECK(difference(x.grad(), zeros({3, 1})) == 0);
  }
}

TEST_CASE("layers: Dropout drops in training alone") {
  Random random(1);
  nn::Dropout dropout(0.25);
  const Variable x(ones({50, 80}));
  set_dropout_stream(1, 1);
  const std::vector<double> y = dropout.forward(x).value().to_vector<double>();
  int64_t zero = 0;
  for (double value : y) {
    if (value == 0) zero++;
    CHECK((value == 0 || std::fabs(value - 4.0 / 3) < 1e-6));
  }
  CHECK(std::fabs(static_cast<double>(zero) / 4000 - 0.25) < 0.03);
  dropout.eval();
  CHECK(difference(dropout.forward(x).value(), x.value()) == 0);
  CHECK(difference(nn::Dropout(0).forward(x).value(), x.value()) == 0);
  CHECK_THROWS_AS(nn::Dropout(1), UsageError);
  CHECK_THROWS_AS(nn::Dropout(-0.1), UsageError);
  CHECK_THROWS_AS(nn::Dropout(std::nan("")), UsageError);
}

TEST_CASE("init: bounds, means and variances") {
  const InDoubles scope("cpu");
  Random random(1);
  const auto check = [](const Tensor& w, double variance, double bound) {
    CHECK(std::fabs(mean(w).item()) < 4 * std::sqrt(variance / static_cast<double>(w.numel())));
    CHECK(std::fabs(var(w).item() / variance - 1) < 0.05);
    CHECK(max(abs(w)).item() <= bound);
    CHECK(max(abs(w)).item() > bound * 0.5);
  };
  const Shape shape = {100, 200}, conv = {40, 20, 3, 5};  // fan in, out: 200, 100; 300, 600
  check(init::default_weight(shape, random), 1 / (3 * 200.0), 1 / std::sqrt(200));
  check(init::default_weight(conv, random), 1 / (3 * 300.0), 1 / std::sqrt(300));
  check(init::xavier_uniform(shape, random), 2 / 300.0, std::sqrt(6 / 300.0));
  check(init::xavier_uniform(conv, random, 2), 4 * 2 / 900.0, 2 * std::sqrt(6 / 900.0));
  check(init::kaiming_uniform(shape, random), 2 / 200.0, std::sqrt(6 / 200.0));
  check(init::xavier_normal(shape, random), 2 / 300.0, 6 * std::sqrt(2 / 300.0));
  check(init::kaiming_normal(conv, random), 2 / 300.0, 6 * std::sqrt(2 / 300.0));
  check(init::normal(shape, 0, 0.5, random), 0.25, 3);
  check(init::uniform(shape, -2, 2, random), 16 / 12.0, 2);
  // A normal cut at 2 standard deviations has 0.7737 of the variance.
  check(init::truncated_normal(shape, 0.02, random), 0.7737 * 0.0004, 0.04);
  CHECK(max(abs(init::default_bias(shape, random))).item() <= 1 / std::sqrt(200));
  CHECK_THROWS_AS(init::xavier_uniform({3}, random), ShapeError);
  CHECK(contains(error_of([&] { init::truncated_normal({int64_t{1} << 50}, 1, random); }),
                 "truncated_normal: out of memory"));
  CHECK(contains(error_of([] { sinusoidal_table(int64_t{1} << 46, 8); }), "positions: out of memory"));
  Random first(9), second(9);
  CHECK(difference(Linear(3, 4, first).weight.value(), Linear(3, 4, second).weight.value()) == 0);
}

TEST_CASE("positions: PyTorch's table, learned ones, and too long a sequence") {
  for (const char* device_name : {"reference", "cpu"}) {
    const InDoubles scope(device_name);
    CHECK(golden_difference(
              golden_case("modules", "sinusoidal_pe"), nullptr,
              [](GoldenInputs&) -> std::vector<Variable> { return {Variable(sinusoidal_table(12, 8))}; }) < 1e-12);
  }
  const InDoubles scope("cpu");
  CHECK(sinusoidal_table(4, 5).shape() == Shape{4, 5});  // an odd width ends with a sine
  Random random(1);
  SinusoidalPositions fixed(6, 8);
  LearnedPositions learned(6, 8, random);
  CHECK(fixed.state().empty());
  const Variable x(zeros({2, 4, 8}));
  CHECK(difference(fixed.forward(x).value().select(0, 1), sinusoidal_table(4, 8)) == 0);
  sum(learned.forward(x)).backward();
  CHECK(difference(learned.weight.grad().select(1, 0), tensor({2, 2, 2, 2, 0, 0})) == 0);
  const std::string what = error_of([&] { learned.forward(Variable(zeros({1, 7, 8}))); });
  CHECK(contains(what, "7 tokens"));
  CHECK(contains(what, "positions for 6"));
  CHECK_THROWS_AS(fixed.forward(Variable(zeros({1, 7, 8}))), ShapeError);
  CHECK_THROWS_AS(fixed.forward(Variable(zeros({1, 4, 6}))), ShapeError);
}

TEST_CASE("feed-forward network: shape, names and gradient") {
  const InDoubles scope("reference");
  Random random(1);
  FeedForward network(4, 7, Activation::gelu, 0, random);
  CHECK(network.parameters()[0].path == "linear1.weight");
  CHECK(network.parameters()[3].path == "linear2.bias");
  const GradcheckResult result =
      gradcheck([&](const std::vector<Variable>& x) { return network.forward(x[0]); }, {randn({2, 3, 4}, random)});
  INFO(result.report);
  CHECK(result);
}

TEST_CASE("modules in two threads do not see each other's scope") {
  Random random(1);
  Outer module(random);
  std::string seen = "?";
  const ModuleScope here("here");
  std::thread([&] { seen = current_module(); }).join();
  CHECK(seen == "");
}
