// The tape and the backward pass, in every way in which they could go wrong.
#include <doctest/doctest.h>
#include <pthread.h>

#include <cmath>
#include <functional>
#include <stdexcept>
#include <thread>

#include "autograd/backprop.h"
#include "autograd/ops.h"
#include "tests/message_of.h"

using namespace heed;
using heed::tests::message_of;

namespace {

using Values = std::vector<double>;

Tensor values(const Entries& numbers) { return tensor(numbers).to(DType::f64); }
Variable leaf(const Entries& numbers, const std::string& name = "") { return Variable(values(numbers), true, name); }
Variable scalar(double number, const std::string& name = "") {
  return Variable(tensor(number).to(DType::f64), true, name);
}
Values list(const Tensor& x) { return x.to_vector<double>(); }
Values grad(const Variable& x) { return list(x.grad()); }

std::string here(int line) { return std::string(__FILE__) + ":" + std::to_string(line); }
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

// ---- the same variable used more than once

TEST_CASE("engine: a diamond") {
  const Variable x = scalar(3);
  const Variable a = x * 2, b = x * x, y = a * b;  // 2 x^3
  y.backward();
  CHECK(grad(x) == Values{54});
}

TEST_CASE("engine: the same leaf many times") {
  const Variable x = leaf({1, 2});
  Variable y = x;
  for (int i = 0; i < 9; i++) y = y + x;
  sum(y).backward();
  CHECK(grad(x) == Values{10, 10});
}

TEST_CASE("engine: x + x x, x - x, x x") {
  const Variable x = leaf({1, -2});
  sum(x + x * x).backward();
  CHECK(grad(x) == Values{3, -3});
  const Variable z = leaf({1, -2});
  sum(z - z).backward();
  CHECK(grad(z) == Values{0, 0});
}

TEST_CASE("engine: diamonds upon diamonds take one step for each node") {
  const Variable x = scalar(1);
  Variable y = x;
  for (int i = 0; i < 60; i++) y = y + y;  // 2^60 paths
  Backprop pass(y);
  int steps = 0;
  while (pass.step()) steps++;
  CHECK(steps == 61);
  CHECK(grad(x) == Values{std::ldexp(1, 60)});
}

TEST_CASE("engine: a non-leaf used twice") {
  const Variable x = scalar(2);
  const Variable h = x * 3, y = h * h + h;
  y.backward();
  CHECK(grad(x) == Values{3 * (2 * 6 + 1)});
}

// ---- more than one backward

TEST_CASE("engine: gradients accumulate on leaves") {
  Variable x = leaf({1, 2});
  for (int i = 0; i < 3; i++) sum(x * x).backward();
  CHECK(grad(x) == Values{6, 12});
  x.zero_grad();
  CHECK_FALSE(x.grad().defined());
  sum(x).backward();
  CHECK(grad(x) == Values{1, 1});
}

TEST_CASE("engine: a second backward over a freed tape says so") {
  const Variable x = leaf({1, 2});
  const int line = __LINE__ + 1;
  const Variable y = sum(x * x);
  y.backward();
  const std::string direct = message_of<UsageError>([&] { y.backward(); });
  CHECK(contains(direct,
                 "backward: the tape behind the loss was freed by an earlier backward, which went through sum () at " +
                     here(line)));
  CHECK(contains(direct, "retain_graph"));
  CHECK(grad(x) == Values{2, 4});

  // Through a part of the tape that another loss has freed.
  const Variable h = x * x, first = sum(h), second = sum(h * 2);
  first.backward();
  const std::string shared = message_of<UsageError>([&] { second.backward(); });
  CHECK(contains(shared, "the tape behind affine (2,)"));
  CHECK(contains(shared, "which went through mul (2,)"));
}

TEST_CASE("engine: with retain_graph the tape serves again") {
  Variable x = leaf({1, 2});
  const Variable h = x * x;
  const Variable y = sum(exp(h) / 2);
  y.backward({}, true);
  const Values once = grad(x);
  y.backward({}, true);
  CHECK(grad(x) == Values{2 * once[0], 2 * once[1]});
  x.zero_grad();
  y.backward();
  CHECK(grad(x) == once);
  CHECK_THROWS_AS(y.backward(), UsageError);
}

TEST_CASE("engine: batches add up to their sum") {
  Variable w = leaf({0.5, -1, 2});
  const auto loss = [&](double a) { return sum(square(w * a)); };
  for (double a : {1.0, 2.0, 3.0}) loss(a).backward();
  const Values parts = grad(w);
  w.zero_grad();
  (loss(1) + loss(2) + loss(3)).backward();
  CHECK(grad(w) == parts);
}

// ---- long tapes

namespace {

constexpr int kLong = 1'000'000;

Variable chain(const Variable& x, int length) {
  Variable y = x;
  for (int i = 0; i < length; i++) y = i % 2 ? -y : y * 1.0;
  return y;
}

void* long_chains(void* result) {
  const Variable x = scalar(1);
  chain(x, kLong).backward();               // freed as the pass goes
  chain(x, kLong);                          // freed without a pass
  chain(x, kLong / 10).backward({}, true);  // freed after the pass
  Backprop(chain(x, kLong / 10)).step();    // dropped after the first step
  *static_cast<double*>(result) = x.grad().item();
  return nullptr;
}

}  // namespace

TEST_CASE("engine: a million ops forward, backward and freed with 256 KB of stack") {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, 256 * 1024) == 0);
  pthread_t thread;
  double gradient = 0;
  REQUIRE(pthread_create(&thread, &attributes, long_chains, &gradient) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  CHECK(gradient == 2);
}

TEST_CASE("engine: a wide tape") {
  const Variable x = scalar(1);
  std::vector<Variable> parts;
  for (int i = 0; i < 20'000; i++) parts.push_back(x * i);
  sum(stack(parts)).backward();
  CHECK(grad(x) == Values{19'999.0 * 20'000 / 2});
}

// ---- stepping

TEST_CASE("engine: a pass can be stepped, the op recorded last first") {
  const Variable x = leaf({1, 2}, "x");
  const Variable a = exp(x), b = x * 3, y = sum(a * b);
  Backprop pass(y);
  CHECK(pass.next() == y.node());
  std::vector<std::string> ops;
  uint64_t before = UINT64_MAX;
  while (pass.next()) {
    const Node* next = pass.next();
    REQUIRE(pass.step());
    CHECK(&pass.current() == next);
    CHECK(next->sequence() < before);
    CHECK(pass.gradient().shape() == next->shape());
    before = next->sequence();
    ops.push_back(next->op());
    if (ops.back() == "mul") CHECK(list(pass.gradient()) == Values{1, 1});
    if (ops.back() == "affine") CHECK(list(pass.gradient()) == list(a.value()));
    if (ops.back() == "exp") CHECK(list(pass.gradient()) == list(b.value()));
  }
  CHECK_FALSE(pass.step());
  CHECK(ops == std::vector<std::string>{"sum", "mul", "affine", "exp", "leaf"});
  CHECK(grad(x)[0] == doctest::Approx(std::exp(1) * 3 + 3 * std::exp(1)));
}

TEST_CASE("engine: nodes tell what they are") {
  const Variable x = leaf({1, 2}, "x");
  Variable y;
  int line = 0;
  {
    const ModuleScope outer("encoder"), inner("encoder.0.fc");
    line = __LINE__ + 1;
    y = tanh(x);
  }
  y.named("hidden");
  const Node& node = *y.node();
  CHECK(std::string(node.op()) == "tanh");
  CHECK(std::string(node.about().formula) == "y = tanh(x)");
  CHECK(std::string(node.about().rule) == "dx = dy (1 - y^2)");
  CHECK(node.name() == "hidden");
  CHECK(node.input_count() == 1);
  CHECK(node.input(0) == x.node());
  CHECK(node.input(0)->name() == "x");
  CHECK(std::string(node.module()) == "encoder.0.fc");
  CHECK(node.describe() == "tanh \"hidden\" (2,) at " + here(line) + ", in encoder.0.fc");
  CHECK(std::string(current_module()).empty());
  const Variable half = mul(y, Variable(values({0.5, 0.5})));
  CHECK(half.node()->input(1) == nullptr);  // a constant
}

TEST_CASE("engine: an unfinished pass leaves nothing behind") {
  Variable x = leaf({1, 2});
  const Variable h = x * x, y = sum(h * 3);
  for (int steps = 0; steps < 4; steps++) {
    Backprop pass(y, {}, true);
    for (int i = 0; i < steps; i++) pass.step();
  }
  CHECK_FALSE(x.grad().defined());
  y.backward();
  CHECK(grad(x) == Values{6, 12});
}

TEST_CASE("engine: two passes at once over the same node are refused") {
  const Variable x = leaf({1, 2});
  const int line = __LINE__ + 1;
  const Variable h = x * x, y = sum(h), z = sum(h * 2);
  Backprop first(y, {}, true);
  CHECK(contains(message_of<UsageError>([&] { Backprop second(y); }), "another pass over sum () at " + here(line)));
  first.step();  // mul is next
  {
    Backprop second(z, {}, true);
    CHECK(contains(message_of<UsageError>([&] { second.run(); }), "backward: another pass over mul (2,)"));
  }
  first.run();
  CHECK(grad(x) == Values{2, 4});
  z.backward();
  CHECK(grad(x) == Values{6, 12});
}

TEST_CASE("engine: an error on the way leaves the tape usable and names the op's line") {
  const Variable x = leaf({1, 2});
  const int line = __LINE__ + 1;
  const Variable h = x * x, y = sum(h);
  bool fail = true;
  h.node()->add_hook([&](const Node&, const Tensor&) {
    if (fail) throw NumericError("stop here");
  });
  CHECK(message_of<NumericError>([&] { y.backward({}, true); }) == "stop here\n  at " + here(line));
  fail = false;
  y.backward();
  CHECK(grad(x) == Values{2, 4});
}

TEST_CASE("engine: whatever a hook throws, the next pass is as if nothing had been") {
  const std::vector<std::function<void()>> throws = {[] { throw NumericError("heed"); },
                                                     [] { throw std::runtime_error("std"); }, [] { throw 5; },
                                                     [] { throw std::bad_alloc(); }};
  for (const bool at_leaf : {true, false}) {
    for (const auto& fail : throws) {
      Variable x = leaf({1, 2}), h = x * 2;
      bool failing = true;
      Variable(at_leaf ? x : h).add_hook([&](const Tensor&) {
        if (failing) fail();
        return Tensor();
      });
      const Variable y = sum(h);
      try {
        y.backward({}, true);
        CHECK(false);
      } catch (...) {}
      failing = false;
      x.zero_grad();
      y.backward();
      CHECK(grad(x) == Values{2, 2});
    }
  }
  Variable x = leaf({1, 2}, "x");
  CHECK(message_of<UsageError>([&] { x.add_hook({}); }) ==
        "add_hook: the hook for the variable \"x\" is an empty function");
  CHECK(contains(message_of<UsageError>([&] { x.node()->add_hook({}); }), "is an empty function"));
  x.add_hook([](const Tensor& dy) { return dy.to(device("reference")); });
  CHECK(contains(message_of<DeviceError>([&] { sum(x).backward(); }),
                 "hook: returned a gradient on reference for one on cpu"));
}

// ---- what was saved

TEST_CASE("engine: overwriting what an op saved is detected, and both places are named") {
  const Variable x = leaf({1, 2}, "x"), w = leaf({3, 4}, "w");
  const int made = __LINE__ + 1;
  const Variable y = x * w;
  Tensor same = w.value();
  const int written = __LINE__ + 1;
  same.fill_(0);
  const std::string message = message_of<UsageError>([&] { sum(y).backward(); });
  CHECK(message == "backward: a tensor that mul (2,) at " + here(made) + " needs was overwritten by fill_ at " +
                       here(written) + "; write to a copy, or after backward\n  at " + here(made));
}

TEST_CASE("engine: every way of writing is detected") {
  const std::vector<std::pair<std::string, std::function<void(Tensor)>>> writers = {
      {"fill_", [](Tensor t) { t.fill_(1); }},
      {"copy_",
       [](Tensor t) {
         t.copy_(values({5, 6, 7, 8}));
       }},
      {"add_", [](Tensor t) { t.add_(values({5})); }},
      {"mul_", [](Tensor t) { t.mul_(values({2})); }},
      {"affine_", [](Tensor t) { t.affine_(2, 1); }},
      {"fill_", [](Tensor t) { t.set({1}, 3); }},
      {"mutable_data", [](Tensor t) { t.mutable_data<double>()[0] = 9; }},
      {"fill_", [](Tensor t) { t.slice(0, 3, 4).fill_(0); }},  // a part of the storage
      {"fill_", [](Tensor t) {
         t.reshape({2, 2}).transpose(0, 1).select(0, 1).fill_(0);
       }}};
  for (const auto& [name, write] : writers) {
    const Variable x = leaf({1, 2, 3, 4});
    const Variable first = slice(exp(x), 0, 0, 2);  // exp saved a storage of which this is a part
    const Variable y = exp(x);
    write(y.value());
    CHECK(contains(message_of<UsageError>([&, &y = y] { sum(y).backward(); }), "overwritten by " + name));
    CHECK_NOTHROW(sum(first).backward());
    const Variable z = square(slice(x, 0, 0, 2));
    write(x.value());  // z saved a slice of it
    CHECK_THROWS_AS(sum(z).backward(), UsageError);
  }
}

TEST_CASE("engine: overwriting what no op needs is allowed") {
  const Variable x = leaf({1, 2});
  const Variable a = x + 1, b = exp(a);
  Tensor sum_value = a.value();
  sum_value.fill_(100);  // neither + nor exp saved it
  sum(b).backward();
  CHECK(grad(x) == list(b.value()));

  const Variable w = leaf({1, 2});
  const Variable y = w * w;
  sum(y).backward();
  Tensor updated = w.value();
  updated.add_(values({1, 1}));  // an optimizer's step, after backward
  CHECK(list(w.value()) == Values{2, 3});
}

TEST_CASE("engine: constants are not saved for gradients that nobody needs") {
  const Variable x = leaf({1, 2}), c(values({3, 4}));
  const Variable y = x * c;
  Tensor x_value = x.value();
  x_value.fill_(7);  // only c is needed for dx
  sum(y).backward();
  CHECK(grad(x) == Values{3, 4});
}

// ---- off the tape

TEST_CASE("engine: no_grad and detach leave no tape") {
  const Variable x = leaf({1, 2});
  {
    const NoGrad off;
    CHECK_FALSE(recording());
    { const NoGrad again; }
    CHECK_FALSE(recording());
    const Variable y = x * x;
    CHECK_FALSE(y.requires_grad());
    CHECK(y.node() == nullptr);
    CHECK(Variable(values({1}), true).requires_grad());  // leaves can still be made
  }
  CHECK(recording());
  const Variable d = (x * x).detach();
  CHECK_FALSE(d.requires_grad());
  CHECK(list(d.value()) == Values{1, 4});
  sum(x * d).backward();
  CHECK(grad(x) == Values{1, 4});
  const int line = __LINE__ + 1;
  CHECK(message_of<UsageError>([&] {
          d.backward(values({1, 1}));
        }) == "backward: the loss (2,) does not depend on any variable that requires a gradient\n  at " + here(line));
}

TEST_CASE("engine: an op on constants only is a constant") {
  const Variable c(values({1, 2}));
  CHECK_FALSE((c * c).requires_grad());
  CHECK((c * c).is_leaf());
}

// ---- hooks, retained gradients, names

TEST_CASE("engine: hooks see the whole gradient and may replace it") {
  Variable x = leaf({1, 2});
  Variable h = x * 2;
  const Variable y = sum(h * 3 + h * 4);
  int calls = 0;
  h.add_hook([&](const Tensor& dy) {
    calls++;
    CHECK(list(dy) == Values{7, 7});
    return dy * 10.0;
  });
  h.add_hook([](const Tensor& dy) {
    CHECK(list(dy) == Values{70, 70});
    return Tensor();
  });
  Values seen;
  h.node()->add_hook([&](const Node& node, const Tensor& dy) {
    CHECK(std::string(node.op()) == "affine");
    seen = list(dy);
  });
  x.add_hook([](const Tensor& dy) { return dy * 0.5; });
  y.backward();
  CHECK(calls == 1);
  CHECK(seen == Values{70, 70});
  CHECK(grad(x) == Values{70, 70});

  x.zero_grad();
  Variable bad = x * 2;
  bad.add_hook([](const Tensor&) { return values({1}); });
  CHECK(contains(message_of<ShapeError>([&] { sum(bad).backward(); }),
                 "hook: returned a gradient f64 (1,) for f64 affine (2,)"));
  Variable other = x * 2;
  other.add_hook([](const Tensor& dy) { return dy.to(DType::f32); });
  CHECK_THROWS_AS(sum(other).backward(), ShapeError);
  Variable constant(values({1}));
  CHECK_THROWS_AS(constant.add_hook([](const Tensor&) { return Tensor(); }), UsageError);
}

TEST_CASE("engine: a variable on the way keeps its gradient if asked") {
  const Variable x = leaf({1, 2});
  Variable h = x * 3, g = h + 1;
  const Variable forgotten = g * 1;
  h.retain_grad();
  g.retain_grad();
  sum(forgotten).backward();
  CHECK(grad(h) == Values{1, 1});
  CHECK_FALSE(forgotten.grad().defined());
  CHECK_FALSE(h.grad().shares_storage_with(g.grad()));
  CHECK_FALSE(h.grad().shares_storage_with(x.grad()));
}

TEST_CASE("engine: errors name operands, line and module") {
  const Variable x(ones({2, 3}), true, "x"), weight(ones({4, 5}), true, "fc.weight"), other(ones({3}, DType::f64));
  const ModuleScope scope("encoder.0.fc");
  int line = 0;
  const auto place = [&] { return "\n  at " + here(line) + ", in encoder.0.fc"; };

  const std::string product = message_of<ShapeError>([&] {
    line = __LINE__ + 1;
    matmul(x, weight);
  });
  CHECK(product == "matmul: inner sizes differ: a (2, 3) \"x\" and b (4, 5) \"fc.weight\"; " +
                       std::string("a's last must equal b's second to last") + place());
  const std::string plus = message_of<ShapeError>([&] {
    line = __LINE__ + 1;
    x + weight;
  });
  CHECK(plus == "add: shapes do not broadcast: a (2, 3) \"x\" and b (4, 5) \"fc.weight\"; " +
                    std::string("counted from the last axis, sizes must be equal or 1, and 3 meets 5") + place());
  const std::string pieces = message_of<ShapeError>([&] {
    line = __LINE__ + 1;
    split(weight, {1, 2});
  });
  CHECK(contains(pieces, "of x (4, 5) \"fc.weight\"" + place()));
  const std::string types = message_of<DTypeError>([&] {
    line = __LINE__ + 1;
    x* other;
  });
  CHECK(contains(types, "a (2, 3) \"x\" is f32 and b (3,) is f64"));
  CHECK(contains(types, place()));
  CHECK(message_of<UsageError>([&] { x + Variable(); }).starts_with("add: an operand is undefined\n  at "));
  CHECK(message_of<UsageError>([&] { -Variable(); }).starts_with("neg: an operand is undefined\n  at "));
}

// ---- whose memory is it

TEST_CASE("engine: gradients of two leaves never share memory") {
  const Variable x = leaf({1, 2}), y = leaf({3, 4}), z = leaf({5, 6});
  const Tensor seed = values({1, 1});
  (x + y + z).backward(seed);
  for (const Variable& a : {x, y, z}) {
    CHECK(a.grad().contiguous());
    CHECK_FALSE(a.grad().shares_storage_with(seed));
    for (const Variable& b : {x, y, z}) CHECK((a.node() == b.node() || !a.grad().shares_storage_with(b.grad())));
  }
  Tensor dx = x.grad();
  dx.fill_(100);
  CHECK(grad(y) == Values{1, 1});
  CHECK(list(seed) == Values{1, 1});

  const Variable whole(ones({2, 2}, DType::f64), true), row = leaf({1, 2});
  (reshape(whole, {4}) + cat({row, row})).backward(values({1, 2, 3, 4}));
  CHECK_FALSE(whole.grad().shares_storage_with(row.grad()));
  CHECK(grad(whole) == Values{1, 2, 3, 4});
  CHECK(grad(row) == Values{4, 6});
}

TEST_CASE("engine: a gradient that was taken out is not written to by the next pass") {
  const Variable x = leaf({1, 2});
  sum(x * 3).backward();
  const Tensor first = x.grad();
  sum(x * 4).backward();
  CHECK(list(first) == Values{3, 3});
  CHECK(grad(x) == Values{7, 7});
}

TEST_CASE("engine: a repeated gradient is not added to in place") {
  // The gradient of a sum is one number, read with stride 0; here it arrives first and nobody else holds it.
  const Variable x = leaf({1, 2, 3});
  const Variable squares = sum(x * x), twice = sum(x) * 2;
  (squares + twice).backward();
  CHECK(grad(x) == Values{4, 6, 8});
  const Variable y = leaf({1, 2, 3});
  const Variable part = sum(slice(y, 0, 0, 2)), whole = sum(y) * 2;
  (part + whole).backward();
  CHECK(grad(y) == Values{3, 3, 2});
}

TEST_CASE("engine: all memory is given back") {
  const size_t before = default_device().memory().live();
  {
    Variable w(ones({64, 64}), true), table(ones({10, 64}), true);
    for (int i = 0; i < 3; i++) {
      const Variable x = embedding(table, indices({1, 2, 3}));
      const Variable h = layer_norm(gelu(linear(x, w)), {}, {});
      mean(square(softmax(h))).backward();
      const Variable dropped = sum(tanh(matmul(h.detach(), w)));
    }
    CHECK(default_device().memory().live() > before);
  }
  CHECK(default_device().memory().live() == before);
}

TEST_CASE("engine: saved tensors are freed as the pass goes") {
  const Variable x(ones({1000}, DType::f64), true);
  const size_t before = default_device().memory().live();
  Variable y = x;
  for (int i = 0; i < 10; i++) y = exp(y * 0.1);
  y = sum(y);
  const size_t full = default_device().memory().live();
  CHECK(full >= before + 10 * 8000);
  Backprop pass(y);
  for (int i = 0; i < 11; i++) pass.step();
  CHECK(default_device().memory().live() < before + 8 * 8000);
  pass.run();
  CHECK(default_device().memory().live() < before + 4 * 8000);
}

TEST_CASE("engine: a tape that lives until the program ends is freed without harm") {
  static Variable kept = sum(exp(leaf({1, 2}) * 2));
  CHECK(kept.requires_grad());
}

// ---- gradients as rows

TEST_CASE("engine: rows meet rows, rows meet dense, in any order") {
  const auto table = [] { return Variable(ones({3, 2}, DType::f64), true, "table"); };
  const auto rows_of = [](const Variable& t, std::vector<int32_t> ids) { return sum(embedding(t, indices(ids))); };

  const Variable twice = table();
  (rows_of(twice, {0, 2}) + rows_of(twice, {2, 2})).backward();
  CHECK(twice.gradient().is_rows());
  CHECK(grad(twice) == Values{1, 1, 0, 0, 3, 3});
  rows_of(twice, {1}).backward();  // another pass
  CHECK(twice.gradient().is_rows());
  CHECK(grad(twice) == Values{1, 1, 1, 1, 3, 3});
  sum(twice).backward();
  CHECK_FALSE(twice.gradient().is_rows());
  rows_of(twice, {0}).backward();
  CHECK(grad(twice) == Values{3, 3, 2, 2, 4, 4});

  const Variable dense_first = table();
  const Variable rows = rows_of(dense_first, {1}), dense = sum(dense_first * 2);
  (rows + dense).backward();
  CHECK(grad(dense_first) == Values{2, 2, 3, 3, 2, 2});

  const Variable rows_first = table();
  const Variable dense_part = sum(rows_first * 2), rows_part = rows_of(rows_first, {1});
  (rows_part + dense_part).backward();
  CHECK(grad(rows_first) == Values{2, 2, 3, 3, 2, 2});

  const Variable with_slice = table();
  (rows_of(with_slice, {1}) + sum(slice(with_slice, 0, 1, 3))).backward();
  CHECK(grad(with_slice) == Values{0, 0, 2, 2, 1, 1});
  const Variable slice_first = table();
  const Variable part = sum(slice(slice_first, 0, 1, 3));
  (rows_of(slice_first, {1}) + part).backward();
  CHECK(grad(slice_first) == Values{0, 0, 2, 2, 1, 1});
}

TEST_CASE("engine: rows through a table that was computed") {
  const Variable w(ones({3, 2}, DType::f64), true);
  sum(embedding(w * 5, indices({1, 1}))).backward();
  CHECK(grad(w) == Values{0, 0, 10, 10, 0, 0});
}

TEST_CASE("engine: rows are coalesced in order, scaled, and belong to the leaf") {
  Variable table(ones({4, 1}, DType::f64), true);
  Tensor ids = indices({3, 0, 3});
  const Variable y = embedding(table, ids);
  const Tensor seed = from_vector(Values{1, 2, 4}, {3, 1}, DType::f64);
  y.backward(seed);
  ids.fill_(1);  // the next batch is written into the same tensor
  Tensor(seed).fill_(9);
  CHECK(grad(table) == Values{2, 0, 0, 5});
  const Rows once = coalesce(table.gradient().rows());
  CHECK(once.indices.to_vector<int32_t>() == std::vector<int32_t>{0, 3});
  CHECK(list(once.values) == Values{2, 5});
  table.scale_gradient(0.5);
  CHECK(table.gradient().is_rows());
  CHECK(grad(table) == Values{1, 0, 0, 2.5});

  const Variable late = embedding(table, ids);
  ids.fill_(0);  // before backward
  CHECK_THROWS_AS(sum(late).backward(), UsageError);
}

TEST_CASE("engine: hooks see rows as a table") {
  Variable table(ones({3, 1}, DType::f64), true);
  table.add_hook([](const Tensor& dy) {
    CHECK(list(dy) == Values{0, 2, 0});
    return dy * 2.0;
  });
  sum(embedding(table, indices({1, 1}))).backward();
  CHECK(grad(table) == Values{0, 4, 0});
}

// ---- losses of every kind

TEST_CASE("engine: a leaf as the loss, scalars, seeds") {
  const Variable x = scalar(3);
  x.backward();
  CHECK(grad(x) == Values{1});
  const Variable v = leaf({1, 2});
  v.backward(values({5, 6}));
  CHECK(grad(v) == Values{5, 6});
  const Variable w = leaf({1, 2});
  (w * w).backward(values({10, 100}));
  CHECK(grad(w) == Values{20, 400});
  const int line = __LINE__ + 1;
  CHECK(message_of<ShapeError>([&] { (w * w).backward(); }) ==
        "backward: the loss (2,) has 2 elements; reduce it to one, or pass dL/dloss\n  at " + here(line));
  CHECK_THROWS_AS((w * w).backward(values({1, 1}).to(device("reference"))), DeviceError);
  CHECK_THROWS_AS((w * w).backward(values({1})), ShapeError);
  CHECK_THROWS_AS((w * w).backward(ones({2}, DType::f32)), DTypeError);
  const Variable one = leaf({4});
  (one * 2).backward();  // one element is enough, whatever the rank
  CHECK(grad(one) == Values{2});
  CHECK_THROWS_AS(Variable().backward(), UsageError);
}

TEST_CASE("engine: what may require a gradient, and what may be set") {
  CHECK_THROWS_AS(Variable(indices({1, 2}), true), DTypeError);
  CHECK_THROWS_AS(Variable(ones({2}, DType::f16), true, "half"), DTypeError);
  CHECK_THROWS_AS(Variable(Tensor(), true), DTypeError);
  Variable x = leaf({1, 2}, "x");
  const Tensor old = x.value();
  x.set_value(values({3, 4}));
  CHECK(list(x.value()) == Values{3, 4});
  CHECK(list(old) == Values{1, 2});
  CHECK_THROWS_AS(x.set_value(values({3})), ShapeError);
  Variable y = x * 2;
  CHECK_THROWS_AS(y.set_value(values({3, 4})), UsageError);
  x.set_gradient(Gradient(values({7, 8})));
  CHECK(grad(x) == Values{7, 8});
  Variable c(values({1}));
  CHECK_THROWS_AS(c.set_gradient(Gradient(values({7}))), UsageError);
  CHECK_THROWS_AS(c.retain_grad(), UsageError);
  c.zero_grad();
  CHECK_THROWS_AS(x.set_value({}), UsageError);
  CHECK_THROWS_AS(x.set_value(values({3, 4}).to(device("reference"))), ShapeError);
  CHECK_THROWS_AS(Variable().node_handle(), UsageError);
}

TEST_CASE("engine: set_gradient takes only what backward could have brought") {
  Variable table = leaf({{1, 2}, {3, 4}, {5, 6}}, "table");
  const Tensor ids = indices({0, 2}), rows = values({{1, 1}, {2, 2}});
  const Shape shape = table.shape();
  const std::vector<std::function<Gradient()>> wrong = {
      [&] {
        return Gradient(values({1, 2}));
      },
      [&] { return Gradient(ones(shape, DType::f32)); },
      [&] { return Gradient(ones(shape, DType::f64).to(device("reference"))); },
      [&] {
        return Gradient({indices({0, 3}), rows}, shape);
      },
      [&] {
        return Gradient({indices({-1, 0}), rows}, shape);
      },
      [&] {
        return Gradient({indices({0}), rows}, shape);
      },
      [&] {
        return Gradient({values({0, 2}), rows}, shape);
      },
      [&] {
        return Gradient({ids.to(device("reference")), rows}, shape);
      },
      [&] {
        return Gradient({ids, values({{1}, {2}})}, shape);
      },
      [&] {
        return Gradient({ids, rows}, {4, 2});
      },
      [&] {
        return Gradient({ids, rows.to(DType::f32)}, shape);
      },
      [&] {
        return Gradient({ids, Tensor()}, shape);
      },
      [&] {
        return Gradient({ids, tensor(1)}, {});
      }};
  for (size_t i = 0; i < wrong.size(); i++) {
    INFO("gradient ", i);
    CHECK_THROWS_AS(table.set_gradient(wrong[i]()), Error);
    CHECK_FALSE(table.grad().defined());
  }
  table.set_gradient(Gradient({ids, rows}, shape));
  CHECK(grad(table) == Values{1, 1, 0, 0, 2, 2});
  table.set_gradient(Gradient());
  CHECK_FALSE(table.grad().defined());
}

TEST_CASE("engine: a constant of another type beside variables") {
  const Variable x(ones({2, 3}), true);
  const Variable half(ones({3, 4}, DType::f16));  // stored in half precision, read as f32
  const Variable y = matmul(x, half);
  CHECK(y.dtype() == DType::f32);
  sum(y).backward();
  CHECK(grad(x) == Values{4, 4, 4, 4, 4, 4});
}

// ---- ops of one's own

namespace {

struct Doubled final : Node {
  static constexpr Text text{"doubled", "y = 2 x", "dx = 2 dy"};
  Tensor forward(const Tensor& x) { return x * 2; }
  void backward(const Tensor& dy) override {
    CHECK(needs(0));
    CHECK_FALSE(needs(1));  // there is no such input
    give(1, dy);
    give(0, dy * 2);
  }
};

struct GivesOtherType final : Node {
  static constexpr Text text{"gives_other_type", "", ""};
  Tensor forward(const Tensor& x) { return x * 2; }
  void backward(const Tensor& dy) override { give(0, dy.to(DType::f32)); }
};

struct GivesOtherShape final : Node {
  static constexpr Text text{"gives_other_shape", "", ""};
  Tensor forward(const Tensor& x) { return heed::sum(x); }
  void backward(const Tensor& dy) override { give(0, dy); }
};

}  // namespace

TEST_CASE("engine: an op of one's own, right and wrong") {
  const Variable x = leaf({1, 2});
  const Variable y = record<Doubled>(Site::here(), x);
  sum(y).backward();
  CHECK(grad(x) == Values{2, 2});
  CHECK(contains(message_of<DTypeError>([&] { sum(record<GivesOtherType>(Site::here(), x)).backward(); }),
                 "gives_other_type: its backward gave input 0, which is f64, a gradient in f32"));
  CHECK(contains(message_of<ShapeError>([&] { record<GivesOtherShape>(Site::here(), x).backward(); }),
                 "gives_other_shape: its backward gave input 0 of shape (2,) a gradient of shape ()"));
  const Variable z = record<GivesOtherType>(Site::here(), x);
  CHECK_THROWS_AS(z.node()->backward(values({1, 1})), UsageError);
}

// ---- threads

TEST_CASE("engine: two threads, each with a tape of its own") {
  const auto work = [](double start, double* result) {
    const Variable x = scalar(start);
    for (int i = 0; i < 200; i++) {
      Variable y = x;
      for (int k = 0; k < 20; k++) y = k % 2 ? y * 2 : tanh(y) + y;
      y.backward();
    }
    *result = x.grad().item();
  };
  double alone[2], together[2];
  work(0.25, &alone[0]);
  work(0.75, &alone[1]);
  std::thread first(work, 0.25, &together[0]), second(work, 0.75, &together[1]);
  first.join();
  second.join();
  CHECK(alone[0] == together[0]);
  CHECK(alone[1] == together[1]);
}
