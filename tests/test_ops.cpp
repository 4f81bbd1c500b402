// Runs the table of ops, and what is particular about some of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "autograd/gradcheck.h"
#include "tensor/reference.h"
#include "tests/message_of.h"
#include "tests/op_table.h"
#include "tests/tested_devices.h"

using namespace heed;
using namespace heed::tests;

namespace {

std::string title(const OpRow& row, int64_t n) {
  return row.name + (row.variant.empty() ? "" : ", " + row.variant) + ", n = " + std::to_string(n);
}

// ---- variants of a row

// The op sees transposed views; of a vector, every second element of another.
OpRow transposed(const OpRow& row) {
  OpRow out = row;
  for (Input& input : out.inputs) {
    const int rank = input.shape.rank();
    if (rank < 2) input.shape.push_back(rank == 0 ? 3 : 2);
    if (rank > 1) std::swap(input.shape[0], input.shape[rank - 1]);
  }
  out.apply = [row](const std::vector<Variable>& x) {
    std::vector<Variable> views;
    for (size_t i = 0; i < x.size(); i++) {
      views.push_back(row.inputs[i].shape.rank() > 1 ? transpose(x[i], 0, -1) : select(x[i], -1, 1));
    }
    return row.apply(views);
  };
  return out;
}

// The op sees the inside of something larger.
OpRow sliced(const OpRow& row) {
  OpRow out = row;
  for (Input& input : out.inputs) {
    for (int axis = 0; axis < input.shape.rank(); axis++) input.shape[axis] += 2;
  }
  out.apply = [row](const std::vector<Variable>& x) {
    std::vector<Variable> views = x;
    for (Variable& view : views) {
      for (int axis = 0; axis < view.rank(); axis++) view = slice(view, axis, 1, -1);
    }
    return row.apply(views);
  };
  return out;
}

// The op's gradient arrives as one number, repeated with stride 0.
OpRow summed(const OpRow& row) {
  OpRow out = row;
  out.apply = [row](const std::vector<Variable>& x) { return sum(row.apply(x)); };
  return out;
}

// ---- forward and backward

struct Outcome {
  Tensor y;
  std::vector<Tensor> gradients;
};

// dL/dy: normal numbers, the same on every device; with a last axis that is not contiguous where y has two axes or
// more.
Tensor upstream(const Variable& y) {
  Shape shape = y.shape();
  const bool swap = shape.rank() > 1;
  if (swap) std::swap(shape[0], shape[shape.rank() - 1]);
  const Tensor dy = make_input({shape}, 99, y.dtype(), y.value().device());
  return swap ? dy.transpose(0, -1) : dy;
}

Outcome run(const OpRow& row, int64_t n, DType dtype, Device& device) {
  const OnDevice on(device);
  std::vector<Variable> leaves;
  for (const Tensor& input : make_inputs(row, n, dtype, device)) leaves.emplace_back(input, true);
  const Variable y = row.apply(leaves);
  y.backward(upstream(y));
  Outcome out{y.value(), {}};
  for (const Variable& leaf : leaves) {
    out.gradients.push_back(leaf.grad());
    CHECK(leaf.grad().shape() == leaf.shape());
  }
  return out;
}

// The largest difference, relative to the largest expected element or 1. NaN if there is one, infinity if the shapes
// differ.
double difference(const Tensor& actual, const Tensor& expected) {
  if (!actual.defined() || !expected.defined() || !(actual.shape() == expected.shape())) return INFINITY;
  const std::vector<double> a = actual.to_vector<double>(), b = expected.to_vector<double>();
  double scale = 1, largest = 0;
  for (double value : b) scale = std::max(scale, std::fabs(value));
  for (size_t i = 0; i < a.size(); i++) {
    const double d = std::fabs(a[i] - b[i]) / scale;
    if (!(d <= largest)) largest = d;
    if (std::isnan(largest)) break;
  }
  return largest;
}

void check_against(const Outcome& expected, const OpRow& row, int64_t n) {
  for (Device* device : tests::tested_devices()) {
    for (const DType dtype : {DType::f64, DType::f32}) {
      INFO(title(row, n), " on ", device->name(), " in ", name_of(dtype));
      const double tolerance = dtype == DType::f64 ? 1e-11 : row.f32_tolerance;
      const Outcome actual = run(row, n, dtype, *device);
      CHECK(actual.y.dtype() == dtype);
      CHECK(difference(actual.y, expected.y) <= tolerance);
      for (size_t i = 0; i < expected.gradients.size(); i++) {
        INFO("gradient of input ", i);
        CHECK(difference(actual.gradients[i], expected.gradients[i]) <= tolerance);
      }
    }
  }
}

// On the devices that compute on the host. The others agree with them in every gradient, see check_against, and thousands
// of small launches would show nothing more.
void check_gradients(const OpRow& row, int64_t n) {
  for (Device* device : tests::tested_devices()) {
    if (!device->on_host()) continue;
    const OnDevice on(*device);
    const GradcheckResult result = gradcheck(row.apply, make_inputs(row, n, DType::f64, *device));
    CHECK_MESSAGE(result.passed, title(row, n), " on ", device->name(), ": ", result.report);
  }
}

bool all_finite(const Tensor& x) {
  const std::vector<double> values = x.to_vector<double>();
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

Variable leaf(const Entries& values) { return Variable(tensor(values).to(DType::f64), true); }
std::vector<double> list(const Tensor& x) { return x.to_vector<double>(); }
using Values = std::vector<double>;

}  // namespace

// ---- the table

TEST_CASE("ops: every function declared in autograd/ops.h has a row") {
  std::ifstream header("autograd/ops.h");
  REQUIRE_MESSAGE(header.good(), "run the tests from the root of the repository");
  std::map<std::string, int> declared, tested;
  for (std::string line; std::getline(header, line);) {
    for (const std::string type : {"Variable ", "std::vector<Variable> "}) {
      const size_t open = line.find('(');
      if (line.starts_with(type) && open != std::string::npos) declared[line.substr(type.size(), open - type.size())]++;
    }
  }
  for (const OpRow& row : op_table()) tested[row.name]++;
  CHECK(declared.size() >= 65);
  for (const auto& [name, count] : declared)
    CHECK_MESSAGE(tested[name] >= count, name, " has no row in tests/op_table.cpp");
  for (const auto& [name, count] : tested)
    CHECK_MESSAGE(declared.contains(name), name, " is not declared in autograd/ops.h");
}

TEST_CASE("ops: values and gradients on every device are those of reference in f64") {
  for (const OpRow& row : op_table()) {
    for (int64_t n : {1, 7, 33, 1025}) {
      n = std::min(n, row.largest);
      check_against(run(row, n, DType::f64, reference_device()), row, n);
    }
  }
}

TEST_CASE("ops: the same for transposed and sliced inputs and repeated gradients") {
  for (const OpRow& row : op_table()) {
    check_against(run(transposed(row), 33, DType::f64, reference_device()), transposed(row), 33);
    check_against(run(sliced(row), 33, DType::f64, reference_device()), sliced(row), 33);
    check_against(run(summed(row), 33, DType::f64, reference_device()), summed(row), 33);
  }
}

TEST_CASE("ops: gradients agree with differences") {
  for (const OpRow& row : op_table()) {
    for (int64_t n : {1, 2, 7}) check_gradients(row, n);
  }
}

TEST_CASE("ops: gradients agree with differences for transposed and sliced inputs") {
  for (const OpRow& row : op_table()) {
    check_gradients(transposed(row), 3);
    check_gradients(sliced(row), 3);
  }
}

TEST_CASE("ops: gradients agree with differences if one variable is every input") {
  int rows = 0;
  for (const OpRow& row : op_table()) {
    const std::vector<Input>& inputs = row.inputs;
    const bool equal =
        std::all_of(inputs.begin(), inputs.end(), [&](const Input& i) { return i.shape == inputs[0].shape; });
    if (inputs.size() < 2 || !equal || inputs[0].domain == Domain::apart) continue;
    OpRow twice = row;
    const size_t count = inputs.size();
    const Domain domain =
        row.name == "pow" || row.name == "div" || row.name == "operator/" ? Domain::positive : inputs[0].domain;
    twice.inputs = {{row.inputs[0].shape, domain}};
    twice.apply = [row, count](const std::vector<Variable>& x) {
      return row.apply(std::vector<Variable>(count, x[0]));
    };
    // x - x, x / x and the mean square of x - x do not move.
    if (row.name == "sub" || row.name == "operator-" || row.name == "div" || row.name == "operator/" ||
        row.name == "mse") {
      twice.apply = [inner = twice.apply](const std::vector<Variable>& x) { return inner(x) + sum(x[0]); };
    }
    check_gradients(twice, 3);
    rows++;
  }
  CHECK(rows >= 20);
}

TEST_CASE("ops: empty inputs go forward and backward") {
  for (const OpRow& row : op_table()) {
    if (!row.empty) continue;
    for (Device* device : tests::tested_devices()) {
      for (const DType dtype : {DType::f64, DType::f32}) {
        INFO(title(row, 0), " on ", device->name());
        const Outcome outcome = run(row, 0, dtype, *device);
        CHECK(all_finite(outcome.y));
        const std::vector<Input> inputs = row.at(0);
        for (size_t i = 0; i < inputs.size(); i++) {
          REQUIRE(outcome.gradients[i].defined());
          CHECK(outcome.gradients[i].shape() == inputs[i].shape);
          CHECK(all_finite(outcome.gradients[i]));
        }
      }
    }
  }
}

// ---- gradcheck finds what is wrong: ops with a wrong rule

namespace {

struct Wrong : Node {
  static constexpr Text text{"wrong", "", ""};
};

struct SignedExp final : Wrong {  // the sign is wrong
  Saved y{this};
  Tensor forward(const Tensor& x) { return y = heed::exp(x); }
  void backward(const Tensor& dy) override { give(0, -(dy * y.get())); }
};

struct HalfSquare final : Wrong {  // the factor 2 is missing
  Saved x{this};
  Tensor forward(const Tensor& x_in) { return heed::mul(x = x_in, x_in); }
  void backward(const Tensor& dy) override { give(0, dy * x.get()); }
};

struct SoftmaxWithoutSum final : Wrong {  // the sum term is missing
  Saved y{this};
  Tensor forward(const Tensor& x) { return y = heed::softmax(x); }
  void backward(const Tensor& dy) override { give(0, dy * y.get()); }
};

struct SoftmaxOfOnes final : Wrong {  // right only for an upstream gradient that is the same everywhere
  Tensor forward(const Tensor& x) { return heed::softmax(x); }
  void backward(const Tensor& dy) override { give(0, dy * 0.0); }
};

struct LayerNormWithoutMean final : Wrong {  // one of the two mean terms is missing: dx = rstd (g - mean g)
  Saved x{this}, rstd{this};
  Tensor forward(const Tensor& x_in) {
    const NormResult result = heed::layer_norm(x = x_in, {}, {});
    rstd = result.rstd;
    return result.y;
  }
  void backward(const Tensor& dy) override { give(0, (dy - heed::mean(dy, {-1}, true)) * rstd.get()); }
};

struct MulOfOneSide final : Wrong {  // the second input gets nothing
  Saved b{this};
  Tensor forward(const Tensor& a, const Tensor& b_in) { return heed::mul(a, b = b_in); }
  void backward(const Tensor& dy) override { give(0, dy * b.get()); }
};

struct SliceAtZero final : Wrong {  // the gradient of a slice is put at the wrong offset
  Tensor forward(const Tensor& x) { return x.slice(0, 1, 3); }
  void backward(const Tensor& dy) override { give_slice(0, dy, 0, 0); }
};

struct SlightlyOff final : Wrong {  // by one part in ten thousand
  Saved y{this};
  Tensor forward(const Tensor& x) { return y = heed::tanh(x); }
  void backward(const Tensor& dy) override { give(0, dy * (1.0001 - y.get() * y.get())); }
};

struct NanGradient final : Wrong {
  Tensor forward(const Tensor& x) { return heed::affine(x, 2, 0); }
  void backward(const Tensor& dy) override { give(0, dy * NAN); }
};

struct NoGradient final : Wrong {
  Tensor forward(const Tensor& x) { return heed::affine(x, 2, 0); }
  void backward(const Tensor&) override {}
};

struct BroadcastShape final : Wrong {  // a gradient that does not fit its input
  Tensor forward(const Tensor& x) { return heed::affine(x, 2, 0); }
  void backward(const Tensor& dy) override { give(0, dy.slice(0, 0, 2)); }
};

template <class Op>
GradcheckResult check_wrong() {
  const Tensor x = make_input({{4, 3}}, 0, DType::f64, default_device());
  return gradcheck([](const std::vector<Variable>& v) { return record<Op>(Site::here(), v[0]); }, {x});
}

}  // namespace

TEST_CASE("gradcheck: wrong derivatives fail") {
  CHECK_FALSE(check_wrong<SignedExp>());
  CHECK_FALSE(check_wrong<HalfSquare>());
  CHECK_FALSE(check_wrong<SoftmaxWithoutSum>());
  CHECK_FALSE(check_wrong<SoftmaxOfOnes>());
  CHECK_FALSE(check_wrong<LayerNormWithoutMean>());
  CHECK_FALSE(check_wrong<SliceAtZero>());
  CHECK_FALSE(check_wrong<SlightlyOff>());
  CHECK_FALSE(check_wrong<NanGradient>());
  CHECK_FALSE(check_wrong<NoGradient>());
  CHECK_THROWS_AS(check_wrong<BroadcastShape>(), ShapeError);

  const std::string report = check_wrong<HalfSquare>().report;
  CHECK(report.find("input 0 (4, 3) at element 0, of output element 0, is ") != std::string::npos);
  CHECK(check_wrong<SoftmaxOfOnes>().report.find("every gradient is 0") != std::string::npos);
  CHECK(check_wrong<NoGradient>().report.find("no gradient of its shape arrived at input 0") != std::string::npos);
  CHECK(std::isnan(check_wrong<NanGradient>().largest_error));

  const Tensor x = make_input({{3}}, 0, DType::f64, default_device());
  const auto one_side = [](const std::vector<Variable>& v) { return record<MulOfOneSide>(Site::here(), v[0], v[1]); };
  CHECK(gradcheck(one_side, {x, x}).report.find("no gradient of its shape arrived at input 1 (3,)") !=
        std::string::npos);
}

TEST_CASE("gradcheck: fails on what cannot be checked") {
  const Tensor x = make_input({{3}}, 0, DType::f64, default_device());
  using X = const std::vector<Variable>&;
  CHECK_FALSE(gradcheck([](X v) { return v[0].detach(); }, {x}));
  CHECK_FALSE(gradcheck([](X v) { return v[0] * 0; }, {x}));
  CHECK(gradcheck([](X v) { return v[0] * 0; }, {x}).report.find("no input moves the output") != std::string::npos);
  CHECK_FALSE(gradcheck([](X v) { return v[0] * NAN; }, {x}));
  CHECK_FALSE(gradcheck([](X v) { return log(v[0] - 100); }, {x}));
  CHECK_FALSE(
      gradcheck([](X v) { return dropout(v[0] + 3, 0.5); }, {make_input({{40}}, 0, DType::f64, default_device())}));
  CHECK_FALSE(gradcheck([](X v) { return clamp(v[0], 50, 60); }, {x}));
  CHECK_THROWS_AS(gradcheck([](X v) { return v[0]; }, {x.to(DType::f32)}), DTypeError);
  CHECK(gradcheck([](X v) { return v[0]; }, {x}));
}

// ---- what differences cannot show

TEST_CASE("ops: ties share the gradient") {
  Variable a = leaf({1, 2, 3}), b = leaf({1, 5, 0});
  sum(maximum(a, b)).backward();
  CHECK(list(a.grad()) == Values{0.5, 0, 1});
  CHECK(list(b.grad()) == Values{0.5, 1, 0});
  a.zero_grad(), b.zero_grad();
  sum(minimum(a, b)).backward();
  CHECK(list(a.grad()) == Values{0.5, 1, 0});
  CHECK(list(b.grad()) == Values{0.5, 0, 1});
  Variable x = leaf({{4, 1, 4}, {1, 1, 1}});
  sum(max(x, {1})).backward();
  CHECK(list(x.grad()) == Values{0.5, 0, 0.5, 1. / 3, 1. / 3, 1. / 3});
  x.zero_grad();
  (min(x) * 6).backward();
  CHECK(list(x.grad()) == Values{0, 1.5, 0, 1.5, 1.5, 1.5});
}

TEST_CASE("ops: derivatives at corners") {
  Variable x = leaf({-1, 0, 2});
  sum(relu(x)).backward();
  CHECK(list(x.grad()) == Values{0, 0, 1});
  x.zero_grad();
  sum(abs(x)).backward();
  CHECK(list(x.grad()) == Values{-1, 0, 1});
  x.zero_grad();
  sum(clamp(x, 0, 2)).backward();
  CHECK(list(x.grad()) == Values{0, 1, 1});
  x.zero_grad();
  sum(pow(x, 0)).backward();
  CHECK(list(x.grad()) == Values{0, 0, 0});
  x.zero_grad();
  Variable zero = leaf({0, 0, 2}), exponent = leaf({0, 2, 0});
  sum(pow(zero, exponent)).backward();
  CHECK(list(zero.grad()) == Values{0, 0, 0});
  CHECK(list(exponent.grad())[0] == 0);
  CHECK(list(exponent.grad())[1] == 0);
  CHECK(list(exponent.grad())[2] == doctest::Approx(std::log(2)));
}

TEST_CASE("ops: what a mask hides does not reach the gradient, NaN and infinity included") {
  const double inf = INFINITY;
  Variable x = leaf({NAN, 4, inf, -inf, 0});
  const Tensor mask = tensor({1, 0, 1, 1, 1});
  Variable y = leaf({1, 1, 1, 1, 1});
  sum(where(mask, y, x)).backward();
  CHECK(list(x.grad()) == Values{0, 1, 0, 0, 0});
  CHECK(list(y.grad()) == Values{1, 0, 1, 1, 1});
  x.zero_grad();
  const Variable filled = masked_fill(x, mask, 0);
  CHECK(list(filled.value()) == Values{0, 4, 0, 0, 0});
  sum(filled).backward();
  CHECK(list(x.grad()) == Values{0, 1, 0, 0, 0});

  // Also where the function behind the mask has no derivative there.
  using Function = std::function<Variable(const Variable&)>;
  const std::vector<Function> functions = {
      [](const Variable& v) { return log(v); },
      [](const Variable& v) { return sqrt(v); },
      [](const Variable& v) { return rsqrt(v); },
      [](const Variable& v) { return reciprocal(v); },
      [](const Variable& v) { return 1 / v; },
      [](const Variable& v) { return pow(v, -0.5); },
      [](const Variable& v) { return exp(1000 - 1000 * v); },
      [](const Variable& v) { return pow(v, Variable(tensor(-0.5).to(DType::f64))); },
      [](const Variable& v) { return v / v; }};
  for (const Function& f : functions) {
    Variable v = leaf({0, 4, 0});
    const Tensor positive = gt(v.value(), zeros({}, DType::f64));
    sum(where(positive, f(v), Variable(zeros({3}, DType::f64)))).backward();
    CHECK(all_finite(v.grad()));
    CHECK(list(v.grad())[0] == 0);
  }
}

TEST_CASE("ops: dropout") {
  Variable x(ones({4, 1000}, DType::f64), true);
  CHECK(list(dropout(x, 0).value()) == list(x.value()));
  CHECK(sum(dropout(x, 1)).item() == 0);
  set_dropout_stream(5, 2);
  const Variable y = dropout(x, 0.25), other = dropout(x, 0.25);
  CHECK(list(y.value()) != list(other.value()));
  set_dropout_stream(5, 2);
  CHECK(list(y.value()) == list(dropout(x, 0.25).value()));
  CHECK(mean(y).item() == doctest::Approx(1).epsilon(0.05));
  sum(y).backward();
  CHECK(list(x.grad()) == list(y.value()));  // the same elements are kept, the same scale
  CHECK_THROWS_AS(dropout(x, 1.5), NumericError);
  CHECK_THROWS_AS(dropout(x, NAN), NumericError);
}

TEST_CASE("ops: embedding") {
  Variable table(arange(8, DType::f64).reshape({4, 2}), true, "table");
  const Tensor ids = indices({1, 3, 1, 0}, {2, 2});
  const Variable y = embedding(table, ids, 0);
  CHECK(y.shape() == Shape{2, 2, 2});
  CHECK(list(y.value()) == Values{2, 3, 6, 7, 2, 3, 0, 1});
  y.backward(arange(8, DType::f64).reshape({2, 2, 2}));
  REQUIRE(table.gradient().is_rows());
  CHECK(table.gradient().rows().indices.to_vector<int32_t>() == std::vector<int32_t>{1, 3, 1});  // 0 is padding
  CHECK(list(table.grad()) == Values{0, 0, 0 + 4, 1 + 5, 0, 0, 2, 3});
  const Rows once = coalesce(table.gradient().rows());
  CHECK(once.indices.to_vector<int32_t>() == std::vector<int32_t>{1, 3});
  CHECK(list(once.values) == Values{4, 6, 2, 3});

  const std::string message = message_of<IndexError>([&] { embedding(table, indices({0, 1, 2, 4}, {2, 2})); });
  CHECK(message.find("embedding: id 4 at position 3 of (2, 2) is outside [0, 4)") == 0);
  CHECK_THROWS_AS(embedding(table, indices({-1})), IndexError);
  CHECK_THROWS_AS(embedding(table, tensor({1, 2})), DTypeError);
  CHECK_THROWS_AS(embedding(select(table, 0, 0), ids), ShapeError);
}

TEST_CASE("ops: softmax and cross-entropy of extreme rows") {
  const double inf = INFINITY;
  Variable x = leaf({{1e4, -1e4, 0}, {-inf, -inf, -inf}, {100, 100, -inf}});
  const Variable y = softmax(x);
  CHECK(list(y.value()) == Values{1, 0, 0, 0, 0, 0, 0.5, 0.5, 0});
  y.backward(arange(9, DType::f64).reshape({3, 3}));
  CHECK(all_finite(x.grad()));
  CHECK(list(softmax(reshape(leaf({5, -inf}), {2, 1})).value()) == Values{1, 0});

  Variable logits = leaf({{1e4, -1e4}, {0, 90}});
  const Variable loss = cross_entropy(logits, indices({0, 1}));
  CHECK(loss.item() < 1e-30);
  loss.backward();
  CHECK(all_finite(logits.grad()));
}

TEST_CASE("ops: cross-entropy with every row ignored is 0, and so is its gradient") {
  for (const Reduce reduce : {Reduce::mean, Reduce::sum}) {
    Variable logits = leaf({{1, 2, 3}, {3, 2, 1}});
    const Variable loss = cross_entropy(logits, indices({-100, -100}), {}, reduce);
    CHECK(loss.item() == 0);
    loss.backward();
    CHECK(list(logits.grad()) == Values{0, 0, 0, 0, 0, 0});
  }
  Variable logits = leaf({{1, 2, 3}, {3, 2, 1}});
  CHECK(cross_entropy(logits, indices({7, 7}), {.ignore_index = 7}).item() == 0);
}

TEST_CASE("ops: cross-entropy names what is wrong") {
  const Variable logits = Variable(ones({2, 3}, DType::f64), true, "scores");
  CHECK(message_of<IndexError>([&] {
          cross_entropy(logits, indices({0, -4}));
        }).find("target -4 in row 1 is outside [0, 3)") != std::string::npos);
  CHECK(message_of<IndexError>([&] {
          cross_entropy(logits, indices({3, 0}));
        }).find("target 3 in row 0") != std::string::npos);
  const std::string shapes = message_of<ShapeError>([&] { cross_entropy(logits, indices({0, 1, 2})); });
  CHECK(shapes.find("logits (2, 3) \"scores\" and target (3,)") != std::string::npos);
  Variable bad = leaf({{1, 2, 3}, {0, NAN, 1}}).named("bad");
  const std::string nan = message_of<NumericError>([&] { cross_entropy(bad, indices({0, 0})); });
  CHECK(nan.find("the loss is NaN in row 1, where logits (2, 3) \"bad\" have nan for class 1") != std::string::npos);
  CHECK_THROWS_AS(cross_entropy(logits, indices({0, 1}), {.label_smoothing = 1.5}), NumericError);
  CHECK_THROWS_AS(cross_entropy(logits, indices({0, 1}), {.class_weight = ones({2}, DType::f64)}), ShapeError);
}

TEST_CASE("ops: the mean cross-entropy divides by the weights of the rows that count") {
  const Variable logits = leaf({{1, 2, 3}, {3, 2, 1}, {0, 0, 1}});
  const Tensor weight = tensor({1, 2, 4}).to(DType::f64);
  const Values each = list(cross_entropy(logits, indices({2, 0, -100}), {}, Reduce::none).value());
  CHECK(each[2] == 0);
  const double expected = (4 * each[0] + 1 * each[1]) / (4 + 1);
  CHECK(cross_entropy(logits, indices({2, 0, -100}), {.class_weight = weight}).item() == doctest::Approx(expected));
}

TEST_CASE("ops: binary cross-entropy is exact for any logit") {
  Variable x = leaf({1e4, -1e4, 800, -800, 0, 40});
  const Tensor t = tensor({1, 0, 0, 1, 0.5, 1}).to(DType::f64);
  const Variable loss = binary_cross_entropy_with_logits(x, t, Reduce::none);
  const Values expected = {0, 0, 800, 800, std::log(2), 4.248354255291589e-18};
  for (size_t i = 0; i < 6; i++) CHECK(list(loss.value())[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  sum(loss).backward();
  CHECK(all_finite(x.grad()));
  CHECK(list(x.grad())[2] == 1);
  CHECK(list(x.grad())[3] == -1);
}

TEST_CASE("ops: losses refuse shapes that would broadcast") {
  const Variable column = Variable(ones({4, 1}, DType::f64), true, "scores"), flat = leaf({1, 2, 3, 4}).named("labels");
  const std::string message = message_of<ShapeError>([&] { mse(column, flat); });
  CHECK(message.find(
            "mse: shapes differ: prediction (4, 1) \"scores\" and target (4,) \"labels\"; they must be equal\n  at ") ==
        0);
  CHECK_THROWS_AS(mse(flat, column), ShapeError);
  CHECK_THROWS_AS(binary_cross_entropy_with_logits(column, flat.value()), ShapeError);
  CHECK_THROWS_AS(binary_cross_entropy_with_logits(flat, column.value()), ShapeError);
  CHECK_THROWS_AS(binary_cross_entropy_with_logits(flat, Tensor()), UsageError);
}

TEST_CASE("ops: normalisation of constant rows, rows of 0 and rows of one element") {
  for (const Shape& shape : {Shape{2, 3}, Shape{3, 1}}) {
    for (const double value : {0.0, 7.0}) {
      Variable x(full(shape, value, DType::f64), true), w(ones({shape[1]}, DType::f64), true),
          b(zeros({shape[1]}, DType::f64), true);
      const Variable y = layer_norm(x, w, b);
      CHECK(sum(abs(y)).item() == 0);
      y.backward(upstream(y));
      CHECK(all_finite(x.grad()));
      for (double dw : list(w.grad())) CHECK(dw == 0);
      const Variable z = rms_norm(x, w);
      z.backward(upstream(z));
      CHECK(all_finite(x.grad()));
    }
  }
}

TEST_CASE("ops: attention rows that see nothing are 0, with gradients of 0; hidden NaN stays hidden") {
  Variable q(make_input({{1, 1, 3, 2}}, 0, DType::f64, default_device()), true);
  Variable k(make_input({{1, 1, 2, 2}}, 1, DType::f64, default_device()), true);
  Tensor values = make_input({{1, 1, 2, 2}}, 2, DType::f64, default_device());
  values.set({0, 0, 1, 0}, NAN);
  Variable v(values, true);
  const Variable o =
      attention(q, k, v, {.causal = true, .lengths = indices({1})});  // query 0 sees no key, the others key 0
  CHECK(all_finite(o.value()));
  CHECK(list(o.value())[0] == 0);
  o.backward(upstream(o));
  CHECK(all_finite(q.grad()));
  CHECK(all_finite(k.grad()));
  CHECK(all_finite(v.grad()));
  CHECK(q.grad().at({0, 0, 0, 0}) == 0);
  CHECK(v.grad().at({0, 0, 1, 0}) == 0);
}

TEST_CASE("ops: an operator is recorded with the line on which it was written") {
  const Variable x = leaf({1, 2});
  const int line = __LINE__ + 1;
  const Variable y = x * 2, z = 3 / x, w = x - x;
  for (const Variable& v : {y, z, w}) CHECK(v.node()->site().line == line);
  CHECK(std::string(y.node()->site().file).find("test_ops.cpp") != std::string::npos);
  CHECK(list((1 / leaf({3, 7})).value()) == Values{1. / 3, 1. / 7});
  CHECK(list((leaf({1, 1}) / 3).value()) == Values{1. / 3, 1. / 3});
  CHECK_THROWS_AS(operator+(1, 2), UsageError);
}
