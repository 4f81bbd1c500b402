// Optimizers, schedules and clipping against PyTorch's numbers (tests/golden/train.safetensors), and the cases others got wrong.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "autograd/ops.h"
#include "tests/golden.h"
#include "tests/tested_devices.h"
#include "train/optimizer.h"
#include "train/schedule.h"
#include "train/tensor_file.h"

using namespace heed;
using namespace heed::train;
using heed::tests::difference;
using heed::tests::InDoubles;

namespace {

std::map<std::string, Tensor> golden() { return load_tensors("tests/golden/train.safetensors").tensors; }

using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(const std::vector<ParameterGroup>&)>;

// Ten steps on f(x) = x'Ax/2 - b'x; the largest difference from PyTorch's trajectory.
double trajectory_difference(const std::string& name, double weight_decay, const MakeOptimizer& make) {
  const std::map<std::string, Tensor> g = golden();
  Variable x(g.at("opt/x0").contiguous_copy(), true, "x");
  const std::unique_ptr<Optimizer> optimizer = make({{{x}, weight_decay}});
  const Variable A(g.at("opt/A")), b(g.at("opt/b"));
  double worst = 0;
  for (int64_t step = 0; step < 10; step++) {
    const Variable loss = sum(x * matmul(A, x)) * 0.5 - sum(b * x);
    optimizer->zero_grad();
    loss.backward();
    optimizer->step();
    worst = std::fmax(worst, difference(x.value(), g.at("opt/" + name + "/traj").select(0, step + 1)));
  }
  return worst;
}

}  // namespace

TEST_CASE("optimizers follow PyTorch's trajectories to 1e-10") {
  for (const char* device_name : {"reference", "cpu"}) {
    const InDoubles scope(device_name);
    const auto check = [&](const char* name, double decay, const MakeOptimizer& make) {
      INFO(device_name << " " << name);
      CHECK(trajectory_difference(name, decay, make) < 1e-10);
    };
    const auto sgd = [](double lr, SGDOptions o) { return [=](const auto& groups) { return std::make_unique<SGD>(groups, lr, o); }; };
    const auto adam = [](double lr, AdamSettings o) { return [=](const auto& groups) { return std::make_unique<Adam>(groups, lr, o); }; };
    const auto rms = [](double lr, RMSpropOptions o) { return [=](const auto& groups) { return std::make_unique<RMSprop>(groups, lr, o); }; };
    check("sgd", 0, sgd(0.1, {}));
    check("sgd_wd", 0.1, sgd(0.1, {}));
    check("sgd_mom", 0, sgd(0.1, {.momentum = 0.9}));
    check("sgd_damp", 0, sgd(0.1, {.momentum = 0.9, .dampening = 0.3}));
    check("sgd_nesterov", 0.01, sgd(0.1, {.momentum = 0.9, .nesterov = true}));
    check("adam", 0, adam(0.1, {}));
    check("adam_l2", 0.1, adam(0.1, {}));
    check("adam_betas_eps", 0, adam(0.05, {.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3}));
    check("adamw", 0.1, adam(0.1, {.decoupled = true}));
    check("adamw_default", 0.01, adam(0.01, {.decoupled = true}));
    check("rmsprop", 0, rms(0.01, {}));
    check("rmsprop_full", 0.01, rms(0.01, {.alpha = 0.9, .momentum = 0.9, .centered = true}));
  }
}

TEST_CASE("Adam on the rows of an embedding equals dense Adam, and PyTorch's") {
  for (const char* device_name : {"reference", "cpu"}) {
    const InDoubles scope(device_name);
    const std::map<std::string, Tensor> g = golden();
    const Tensor trajectory = g.at("opt/embedding_Adam/traj"), ids = g.at("opt/embedding/ids");
    Variable weight(trajectory.select(0, 0).contiguous_copy(), true, "weight");
    Adam optimizer({{{weight}}}, 0.1);
    for (int64_t step = 0; step < ids.size(0); step++) {
      const Variable loss = sum(square(embedding(weight, ids.select(0, step))));
      optimizer.zero_grad();
      loss.backward();
      CHECK(weight.gradient().is_rows());
      optimizer.step();
      INFO(device_name << " step " << step);
      CHECK(difference(weight.value(), trajectory.select(0, step + 1)) < 1e-10);
    }
  }
}

TEST_CASE("weight decay leaves biases and norms alone") {
  Variable matrix(ones({2, 2}), true, "matrix"), vector(ones({2}), true, "vector");
  Adam optimizer(decay_groups({matrix, vector}, 0.5), 0.1, {.decoupled = true});
  matrix.set_gradient(Gradient(zeros({2, 2})));
  vector.set_gradient(Gradient(zeros({2})));
  optimizer.step();
  CHECK(matrix.value().at({0, 0}) == doctest::Approx(0.95));
  CHECK(vector.value().at({0}) == 1);
}

TEST_CASE("a parameter without a gradient is not moved") {
  Variable a(ones({2}), true, "a"), b(ones({2}), true, "b");
  for (const char* name : {"sgd", "adam", "adamw", "rmsprop"}) {
    const std::unique_ptr<Optimizer> optimizer = make_optimizer(name, {a, b}, 0.1, 0.1, 0.9);
    a.set_gradient(Gradient(ones({2})));
    b.zero_grad();
    const double before = a.value().at({0});
    optimizer->step();
    INFO(name);
    CHECK(a.value().at({0}) < before);
    CHECK(b.value().at({0}) == 1);
  }
  CHECK_THROWS_WITH_AS(make_optimizer("adamax", {a}, 0.1, 0, 0), doctest::Contains("sgd, adam, adamw, rmsprop"), UsageError);
}

TEST_CASE("an optimizer's state survives save and load bit for bit, and a wrong one changes nothing") {
  for (const char* name : {"sgd", "adam", "adamw", "rmsprop"}) {
    const auto gradient = [](int64_t step) { return Gradient(arange(3) * 0.1 + static_cast<double>(step)); };
    Variable whole(ones({3}), true, "w"), parts(ones({3}), true, "w");
    const auto uninterrupted = make_optimizer(name, {whole}, 0.1, 0.01, 0.9);
    auto interrupted = make_optimizer(name, {parts}, 0.1, 0.01, 0.9);
    for (int64_t step = 0; step < 6; step++) {
      if (step == 3) {
        const auto fresh = make_optimizer(name, {parts}, 0.1, 0.01, 0.9);
        std::map<std::string, Tensor> copy;
        for (const auto& [key, tensor] : interrupted->state()) copy[key] = tensor.contiguous_copy();
        fresh->load_state(copy);
        whole.set_gradient(gradient(step)), parts.set_gradient(gradient(step));
        uninterrupted->step(), fresh->step();
        break;
      }
      whole.set_gradient(gradient(step)), parts.set_gradient(gradient(step));
      uninterrupted->step(), interrupted->step();
    }
    INFO(name);
    CHECK(whole.value().to_vector<float>() == parts.value().to_vector<float>());
    CHECK_THROWS_WITH_AS(interrupted->load_state({}), doctest::Contains("missing: w/steps"), FileError);
  }
}

TEST_CASE("parameters without names, or of one name, are told apart by their place") {
  Variable a(ones({2}), true), b(ones({3}), true), c(ones({2}), true, "c"), d(ones({4}), true, "c");
  const auto optimizer = make_optimizer("adam", {a, b, c, d}, 0.1, 0, 0);
  for (Variable p : {a, b, c, d}) p.set_gradient(Gradient(ones(p.shape())));
  optimizer->step();
  std::map<std::string, Tensor> saved;
  for (const auto& [key, tensor] : optimizer->state()) saved[key] = tensor.contiguous_copy();
  CHECK(saved.size() == 12);
  CHECK(saved.at("#1/exp_avg").shape() == Shape{3});
  CHECK(saved.at("c#3/exp_avg").shape() == Shape{4});
  const auto fresh = make_optimizer("adam", {a, b, c, d}, 0.1, 0, 0);
  fresh->load_state(saved);
  for (const auto& [key, tensor] : fresh->state()) CHECK(tensor.to_vector<double>() == saved.at(key).to_vector<double>());
}

TEST_CASE("optimizers move a parameter with any strides, and nothing beside it") {
  const Tensor values = tensor({{1, 2}, {3, 4}, {5, 6}}), gradient = tensor({{1, -1}, {0, 2}, {0, 0}});
  const auto as_slice = [](const Tensor& x) {
    const Tensor wide = full({3, 5}, 7);
    wide.slice(1, 1, 5, 2).copy_(x);
    return wide;
  };
  for (Device* tested : tests::tested_devices()) {
    for (const char* name : {"sgd", "adam", "adamw", "rmsprop"}) {
      Device& device = *tested;
      const Tensor wide = as_slice(values).to(device), across = values.transpose(0, 1).contiguous_copy().to(device);
      std::vector<Variable> parameters = {Variable(values.to(device).contiguous_copy(), true), Variable(wide.slice(1, 1, 5, 2), true),
                                          Variable(across.transpose(0, 1), true)};
      const auto optimizer = make_optimizer(name, parameters, 0.1, 0.1, 0.9);
      for (int step = 0; step < 2; step++) {
        for (Variable& p : parameters) p.set_gradient(Gradient(gradient.to(device)));
        optimizer->step();
      }
      INFO(device.name() << " " << name);
      const std::vector<float> expected = parameters[0].value().to_vector<float>();
      CHECK(expected[0] < 1);
      CHECK(parameters[1].value().to_vector<float>() == expected);
      CHECK(parameters[2].value().to_vector<float>() == expected);
      CHECK(wide.to_vector<float>() == as_slice(parameters[0].value().to(heed::device("cpu"))).to_vector<float>());
      CHECK(parameters[1].value().version() > 0);
    }
  }
}

TEST_CASE("optimizers refuse what they cannot move, and settings that only make NaN of it") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  Variable p(ones({2}), true, "p"), expanded(ones({1}).expand({4}), true, "e"), table(ones({3, 2}), true, "table");
  const std::vector<ParameterGroup> groups = {{{p}, 0}};
  const std::vector<std::function<void()>> calls = {
      [&] { SGD({}, 0.1); },
      [&] { make_optimizer("adam", {}, 0.1, 0, 0); },
      [&] { SGD({{{Variable()}, 0}}, 0.1); },
      [&] { Adam({{{expanded}, 0}}, 0.1); },
      [&] { Adam({{{p * 2}, 0}}, 0.1); },
      [&] { SGD(groups, nan); },
      [&] { SGD(groups, -0.1); },
      [&] { SGD(groups, 0.1).set_lr(infinity); },
      [&] { SGD({{{p}, -1}}, 0.1); },
      [&] { SGD(groups, 0.1, {.momentum = nan}); },
      [&] { Adam(groups, 0.1, {.beta1 = 1}); },
      [&] { Adam(groups, 0.1, {.beta2 = -0.1}); },
      [&] { Adam(groups, 0.1, {.eps = nan}); },
      [&] { RMSprop(groups, 0.1, {.alpha = 2}); },
      [&] { clip_grad_norm({p}, -1); },
      [&] { clip_grad_norm({p}, nan); }};
  for (size_t i = 0; i < calls.size(); i++) {
    INFO("call " << i);
    CHECK_THROWS_AS(calls[i](), UsageError);
  }
  CHECK_THROWS_WITH_AS(SGD({}, 0.1), "optimizer: there are no parameters; was a module's child() forgotten?", UsageError);
  p.set_gradient(Gradient(tensor({3, 4})));
  CHECK(clip_grad_norm({p}, infinity) == 5);
}

TEST_CASE("schedules are PyTorch's") {
  const std::map<std::string, Tensor> g = golden();
  const auto check = [&](const char* name, ScheduleOptions options) {
    for (int64_t t = 0; t < 30; t++) {
      INFO(name << " t = " << t);
      CHECK(std::fabs(scheduled_lr(options, t) - g.at(std::string("sched/") + name).at({t})) < 1e-14);
    }
  };
  check("step", {.kind = "step", .lr = 0.1, .total_steps = 30, .step_every = 10, .gamma = 0.5});
  check("warmup_cosine", {.kind = "cosine", .lr = 0.1, .total_steps = 30, .warmup_steps = 5, .floor = 0.1});
  check("onecycle", {.kind = "one_cycle", .lr = 0.1, .total_steps = 30});
  CHECK(scheduled_lr({.kind = "constant", .lr = 0.3}, 100) == 0.3);
  for (int64_t total : {1, 2, 3}) {
    for (const char* kind : {"step", "cosine", "one_cycle"}) {
      for (int64_t t = 0; t < 5; t++) CHECK(std::isfinite(scheduled_lr({.kind = kind, .total_steps = total}, t)));
    }
  }
  CHECK_THROWS_AS(scheduled_lr({.kind = "linear"}, 0), UsageError);
}

TEST_CASE("clipping by global norm is PyTorch's") {
  const InDoubles scope("cpu");
  const std::map<std::string, Tensor> g = golden();
  for (const auto& [name, max_norm, norm] : {std::tuple{"clipped", 1.0, 8.988726172464565}, {"untouched", 100.0, 1.7993476806115325}, {"zero", 1.0, 0.0}}) {
    std::vector<Variable> parameters;
    for (int i = 0; i < 2; i++) {
      const Tensor before = g.at(text("clip/", name, "/before", i));
      parameters.emplace_back(zeros(before.shape()), true, text("p", i));
      parameters.back().set_gradient(Gradient(before.contiguous_copy()));
    }
    INFO(name);
    CHECK(std::fabs(clip_grad_norm(parameters, max_norm) - norm) < 1e-12);
    for (int i = 0; i < 2; i++) CHECK(difference(parameters[static_cast<size_t>(i)].grad(), g.at(text("clip/", name, "/after", i))) < 1e-12);
  }
}

TEST_CASE("clipping refuses a gradient that is not finite, and leaves all untouched") {
  for (double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Variable a(zeros({2}), true, "a"), b(zeros({2}), true, "b");
    a.set_gradient(Gradient(tensor({3, 4})));
    b.set_gradient(Gradient(tensor({1, bad})));
    CHECK_THROWS_WITH_AS(clip_grad_norm({a, b}, 1), doctest::Contains("\"b\""), NumericError);
    CHECK(a.grad().at({0}) == 3);
    CHECK(b.grad().at({0}) == 1);
  }
}

TEST_CASE("gradients of 1e19 are clipped right although their squares overflow f32") {
  Variable a(zeros({2}), true, "a");
  a.set_gradient(Gradient(tensor({3e19, 4e19})));
  CHECK(clip_grad_norm({a}, 1) == doctest::Approx(5e19));
  CHECK(a.grad().at({0}) == doctest::Approx(0.6));
  CHECK(a.grad().at({1}) == doctest::Approx(0.8));
}

TEST_CASE("the norm of row gradients counts a row that was read twice once, with its sum") {
  Variable table(zeros({5, 1}), true, "table");
  const Variable read = embedding(table, indices({3, 3, 1}));
  read.backward(tensor({{1}, {2}, {4}}));
  CHECK(grad_norm({table}).item() == doctest::Approx(5));  // rows 3: 1 + 2, and 4
}
