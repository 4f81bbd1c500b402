// The reference device on raw views: each kernel against values worked out by hand or by an independent formula, each
// gradient against differences of its forward kernel, and the edges: nothing to do, broadcast, strided, NaN, masked.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "tensor/error.h"
#include "tensor/host_memory.h"
#include "tensor/reference.h"

using namespace heed;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
using Values = std::vector<double>;

// Contiguous elements and the view of them. A tensor of size 0 has no memory, as in Tensor.
template <class T>
struct Array {
  explicit Array(const Shape& shape, const std::vector<T>& values = {}) : data(values), shape(shape) {
    if (values.empty()) data.resize(static_cast<size_t>(shape.numel()));
    REQUIRE(static_cast<int64_t>(data.size()) == shape.numel());
  }
  operator View() { return {data.empty() ? nullptr : data.data(), shape, contiguous_strides(shape), dtype_of<T>()}; }
  std::vector<T> data;
  Shape shape;
};
using F64 = Array<double>;
using F32 = Array<float>;
using I32 = Array<int32_t>;

F64 random(const Shape& shape, uint64_t seed) {
  Random source(seed);
  F64 x(shape);
  for (double& value : x.data) value = source.normal();
  return x;
}

View transpose(View v, int a, int b) {
  std::swap(v.shape[a], v.shape[b]);
  std::swap(v.strides[a], v.strides[b]);
  return v;
}

View repeat(View v, const Shape& shape) {
  v.strides = broadcast_strides(v.shape, v.strides, shape);
  v.shape = shape;
  return v;
}

// Every second element along an axis, from the second on.
View odd(View v, int axis) {
  v.data = v.as<char>() + v.strides[axis] * static_cast<int64_t>(size_of(v.dtype));
  v.shape[axis] /= 2;
  v.strides[axis] *= 2;
  return v;
}

Values values(const View& v) {
  Values out;
  for (int64_t i = 0; i < v.numel(); i++) {
    with_any(v.dtype, [&](auto t) { out.push_back(convert<double>(v.as<decltype(t)>()[offset_of(v, i)])); });
  }
  return out;
}

bool near(double a, double b, double tolerance) {
  if (std::isnan(b)) return std::isnan(a);
  if (std::isinf(b)) return a == b;
  return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));  // false if a is NaN
}

void check(const Values& got, const Values& expected, double tolerance = 1e-14) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); i++) {
    CAPTURE(i);
    CAPTURE(got[i]);
    CAPTURE(expected[i]);
    CHECK(near(got[i], expected[i], tolerance));
  }
}
void check(const View& got, const Values& expected, double tolerance = 1e-14) {
  check(values(got), expected, tolerance);
}

double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); i++) sum += a[i] * b[i];
  return sum;
}

// d sum(dy * forward()) / dx for every element of x, by differences of fourth order.
Values differences(F64& x, const Values& dy, const std::function<Values()>& forward) {
  const double h = 1e-3;
  Values gradient;
  for (double& element : x.data) {
    const double at = element;
    const auto loss = [&](double step) {
      element = at + step;
      return dot(dy, forward());
    };
    gradient.push_back((8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h));
    element = at;
  }
  return gradient;
}
constexpr double kDifferences = 1e-9;  // what such a difference is good for

Device& device() { return reference_device(); }

}  // namespace

TEST_CASE("reference: memory is aligned, and what cannot be had is an error that says how much") {
  CHECK(device().name() == "reference");
  CHECK(device().on_host());
  for (size_t bytes : {1, 63, 64, 65, 100000}) {
    void* block = device().allocate(bytes);
    CHECK(reinterpret_cast<uintptr_t>(block) % 64 == 0);
    std::vector<char> sent(bytes, 'x'), back(bytes);
    device().upload(block, sent.data(), bytes);
    device().download(back.data(), block, bytes);
    CHECK(back == sent);
    device().release(block, bytes);
  }
  const size_t live = device().memory().live();
  for (size_t bytes : {size_t{1} << 46, size_t{1} << 60, size_t{PTRDIFF_MAX}}) {
    CHECK_THROWS_AS(device().allocate(bytes), DeviceError);
    CHECK_THROWS_AS(device().memory().take(bytes), DeviceError);
    CHECK(device().memory().live() == live);
  }
  try {
    device().allocate(size_t{1} << 60);
  } catch (const DeviceError& error) {
    const std::string message = error.what();
    CHECK(message.find("reference: no memory for a block of 1152921504606846976 bytes") == 0);
    CHECK(message.find(text("take ", live, " bytes")) != std::string::npos);
  }
  void* first = device().memory().take(100);
  device().memory().give(first, 100);
  void* second = device().memory().take(100);
  CHECK((second == first || !keeps_freed_blocks()));
  device().memory().give(second, 100);
}

TEST_CASE("reference: fill and copy, any dtype to any dtype") {
  Array<f16> half({2});
  device().fill(half, 0.1);
  check(half, {0.0999755859375, 0.0999755859375});  // the nearest half
  I32 whole({3});
  device().fill(whole, -7);
  check(whole, {-7, -7, -7});

  F64 x({2, 3}, {1, -2, 0.1, 3.75, 65504, 1e6});
  F64 y({3, 2});
  device().copy(y, transpose(x, 0, 1));
  check(y, {1, 3.75, -2, 65504, 0.1, 1e6});
  F32 f({2, 3});
  device().copy(f, x);
  check(f, {1, -2, 0.1f, 3.75, 65504, 1e6});
  device().copy(half = Array<f16>({2, 3}), x);
  check(half, {1, -2, 0.0999755859375, 3.75, 65504, kInf});
  Array<bf16> brain({2, 3});
  device().copy(brain, f);
  check(brain, {1, -2, 0.10009765625, 3.75, 65536, 999424});
  I32 i({2, 3});
  device().copy(i, x);
  check(i, {1, -2, 0, 3, 65504, 1000000});
  device().copy(f, i);
  check(f, {1, -2, 0, 3, 65504, 1000000});

  F64 wide({2, 4}, {9, 9, 9, 9, 9, 9, 9, 9}), row({2}, {1, 2});
  device().copy(odd(wide, 1), repeat(row, {2, 2}));  // into every second column, from a broadcast
  check(wide, {9, 1, 9, 2, 9, 1, 9, 2});
}

TEST_CASE("reference: unary formulas") {
  struct Case {
    Unary op;
    double p, q;
    std::function<double(double)> f;
  };
  const double pi = std::acos(-1.0);
  const std::vector<Case> cases = {
      {Unary::affine, 3, -2, [](double x) { return 3 * x - 2; }},
      {Unary::reciprocal, 0, 0, [](double x) { return 1 / x; }},
      {Unary::exp, 0, 0, [](double x) { return std::pow(std::exp(1.0), x); }},
      {Unary::log, 0, 0, [](double x) { return std::log2(x) * std::log(2.0); }},
      {Unary::sqrt, 0, 0, [](double x) { return std::pow(x, 0.5); }},
      {Unary::rsqrt, 0, 0, [](double x) { return std::pow(x, -0.5); }},
      {Unary::pow, 3, 0, [](double x) { return x * x * x; }},
      {Unary::sin, 0, 0, [pi](double x) { return std::cos(x - pi / 2); }},
      {Unary::cos, 0, 0, [pi](double x) { return std::sin(x + pi / 2); }},
      {Unary::tanh, 0, 0, [](double x) { return 1 - 2 / (std::exp(2 * x) + 1); }},
      {Unary::sigmoid, 0, 0, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {Unary::relu, 0, 0, [](double x) { return std::max(x, 0.0); }},
      {Unary::gelu, 0, 0, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }},
      {Unary::gelu_tanh, 0, 0,
       [pi](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / pi) * (x + 0.044715 * std::pow(x, 3)))); }},
      {Unary::silu, 0, 0, [](double x) { return x / (1 + std::exp(-x)); }},
      {Unary::erf, 0, 0, [](double x) { return 1 - std::erfc(x); }},
      {Unary::abs, 0, 0, [](double x) { return std::sqrt(x * x); }},
      {Unary::clamp, -0.5, 0.8, [](double x) { return std::min(std::max(x, -0.5), 0.8); }},
  };
  for (const Case& c : cases) {
    CAPTURE(static_cast<int>(c.op));
    const bool positive = c.op == Unary::log || c.op == Unary::sqrt || c.op == Unary::rsqrt;
    F64 x({2, 3}, {-1.7, -0.3, 0.4, 0.9, 1.3, 2.6}), y({2, 3}), dy({2, 3}, {2, -1, 0.5, 3, 1, -2}), dx({2, 3});
    if (positive) x.data = {0.6, 0.7, 0.8, 0.9, 1.3, 2.6};
    device().unary(c.op, y, x, c.p, c.q);
    Values expected;
    for (double value : x.data) expected.push_back(c.f(value));
    check(y, expected);

    device().unary_grad(c.op, dx, dy, x, y, c.p, c.q);
    check(dx,
          differences(x, dy.data,
                      [&] {
                        F64 out({2, 3});
                        device().unary(c.op, out, x, c.p, c.q);
                        return out.data;
                      }),
          kDifferences);

    const Values gradient = dx.data;
    device().unary_grad(c.op, dy, dy, x, y, c.p, c.q);  // in place
    check(dy, gradient);
    device().unary(c.op, x, x, c.p, c.q);
    check(x, expected);
  }
}

TEST_CASE("reference: unary formulas at their edges") {
  F64 x({5}, {-kInf, -1, 0, kInf, kNaN}), y({5}), ones({5}, {1, 1, 1, 1, 1}), dx({5});
  device().unary(Unary::relu, y, x, 0, 0);
  check(y, {0, 0, 0, kInf, kNaN});
  device().unary_grad(Unary::relu, dx, ones, x, {}, 0, 0);  // y is not read
  check(dx, {0, 0, 0, 1, 0});
  device().unary(Unary::sigmoid, y, x, 0, 0);
  check(y, {0, 1 / (1 + std::exp(1.0)), 0.5, 1, kNaN});
  device().unary_grad(Unary::exp, dx, ones, {}, x, 0, 0);  // x is not read
  check(dx, x.data);
  device().unary_grad(Unary::pow, dx, ones, x, {}, 0, 0);
  check(dx, {0, 0, 0, 0, 0});

  // In f32 the bounds of clamp are f32 too: 0.1f is on the bound, where the derivative is 1.
  F32 f({1}, {0.1f}), one({1}, {1}), df({1});
  device().unary_grad(Unary::clamp, df, one, f, {}, 0, 0.1);
  check(df, {1});

  F64 scalar({}, {3}), result({});
  device().unary(Unary::affine, result, scalar, 2, 1);
  check(result, {7});
  F64 nothing({2, 0, 3});
  device().unary(Unary::exp, nothing, nothing, 0, 0);
  device().unary_grad(Unary::exp, nothing, nothing, nothing, nothing, 0, 0);
}

TEST_CASE("reference: binary formulas, broadcast and strided") {
  F64 a({2, 3}, {1, 2, 3, 4, 5, 6}), row({3}, {10, 20, 30}), column({2, 1}, {2, 4}), y({2, 3});
  const View rows = repeat(row, {2, 3}), columns = repeat(column, {2, 3});
  device().binary(Binary::add, y, a, rows);
  check(y, {11, 22, 33, 14, 25, 36});
  device().binary(Binary::sub, y, a, columns);
  check(y, {-1, 0, 1, 0, 1, 2});
  device().binary(Binary::mul, y, columns, rows);
  check(y, {20, 40, 60, 40, 80, 120});
  device().binary(Binary::div, y, a, columns);
  check(y, {0.5, 1, 1.5, 1, 1.25, 1.5});
  device().binary(Binary::pow, y, a, columns);
  check(y, {1, 4, 9, 256, 625, 1296});
  F64 t({3, 2}, {1, 4, 2, 5, 3, 6});
  device().binary(Binary::add, y, a, transpose(t, 0, 1));
  check(y, {2, 4, 6, 8, 10, 12});
  device().binary(Binary::mul, a, a, a);  // in place
  check(a, {1, 4, 9, 16, 25, 36});

  F64 p({4}, {1, 2, kNaN, 3}), q({4}, {2, 2, 1, kNaN}), z({4});
  device().binary(Binary::maximum, z, p, q);
  check(z, {2, 2, kNaN, kNaN});
  device().binary(Binary::minimum, z, p, q);
  check(z, {1, 2, kNaN, kNaN});
  const std::vector<std::pair<Binary, Values>> comparisons = {{Binary::eq, {0, 1, 0, 0}}, {Binary::ne, {1, 0, 1, 1}},
                                                              {Binary::lt, {1, 0, 0, 0}}, {Binary::le, {1, 1, 0, 0}},
                                                              {Binary::gt, {0, 0, 0, 0}}, {Binary::ge, {0, 1, 0, 0}}};
  for (const auto& [op, expected] : comparisons) {
    device().binary(op, z, p, q);
    check(z, expected);
  }
}

TEST_CASE("reference: where takes a condition of any dtype and never mixes in the other side") {
  F64 a({4}, {1, 2, kNaN, 4}), b({4}, {10, kInf, 30, 40}), y({4});
  I32 whole({4}, {1, 1, 0, -2});
  device().where(y, whole, a, b);
  check(y, {1, 2, 30, 4});
  Array<bf16> brain({4}, {bf16(0.f), bf16(0.5f), bf16(-0.f), bf16(1.f)});
  device().where(y, brain, a, b);
  check(y, {10, 2, 30, 4});
  F64 nan({4}, {kNaN, 0, 0, 0});  // NaN is not 0
  device().where(a, nan, a, b);   // in place
  check(a, {1, kInf, 30, 40});
  F64 one({1}, {5});
  device().where(b, whole, repeat(one, {4}), b);
  check(b, {5, 5, 30, 5});
}

TEST_CASE("reference: dropout decides by coordinates") {
  const Dropout half{0.5, 99, 0}, none{0, 99, 0}, all{1, 99, 0};
  F64 x = random({3, 2, 2, 4, 5}, 1), y(x.shape), part({1, 2, 2, 4, 5});
  device().dropout(y, x, half);
  size_t i = 0, kept = 0;
  for (int64_t b = 0; b < 3; b++)
    for (int64_t lead = 0; lead < 4; lead++)
      for (int64_t row = 0; row < 4; row++)
        for (int64_t column = 0; column < 5; column++, i++) {
          const Philox four = dropout_block(99, b, lead, row, column / 4);
          const bool keep = four.word[column % 4] >= 0x80000000u;
          CHECK(y.data[i] == (keep ? 2 * x.data[i] : 0));
          kept += keep;
        }
  CHECK(kept > 90);
  CHECK(kept < 150);
  // Sample 2 by itself, as on another rank, drops the same.
  View third = x;
  third.data = x.data.data() + 2 * 80;
  third.shape[0] = 1;
  device().dropout(part, third, {0.5, 99, 2});
  check(part, Values(y.data.begin() + 160, y.data.end()));

  // The rows of a matrix are samples; strides do not matter.
  F64 swapped({5, 3}), matrix({3, 5}, Values(x.data.begin(), x.data.begin() + 15)), result({3, 5}), samples({3, 1, 5}, Values(x.data.begin(), x.data.begin() + 15)), same({3, 1, 5});
  device().copy(transpose(swapped, 0, 1), matrix);
  device().dropout(result, transpose(swapped, 0, 1), half);
  device().dropout(same, samples, half);
  check(result, same.data);

  device().dropout(y, x, none);
  check(y, x.data);
  x.data[0] = kNaN;
  x.data[1] = kInf;
  device().dropout(x, x, all);  // in place; what is dropped is 0, whatever it was
  check(x, Values(x.data.size(), 0.0));
  F64 scalar({}, {3}), nothing({2, 0, 3});
  device().dropout(scalar, scalar, none);
  check(scalar, {3});
  device().dropout(nothing, nothing, half);
}

TEST_CASE("reference: uniform is the stream of its key") {
  F64 y({3, 5});
  device().uniform(y, 0xfeedfacecafeull);
  Random stream(0xfeedfacecafeull);
  for (double value : y.data) {
    CHECK(value == (stream.bits() >> 8) / 16777216.0);
    CHECK(value >= 0);
    CHECK(value < 1);
  }
  F32 f({3, 5});
  device().uniform(f, 0xfeedfacecafeull);
  check(f, y.data, 0);
}

TEST_CASE("reference: reductions over any axes") {
  F64 x({2, 3, 2}, {1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6});
  F64 last({2, 3, 1}), middle({2, 1, 2}), outer({1, 3, 1}), all({1, 1, 1}), same({2, 3, 2});
  device().reduce(Reduction::sum, last, x);
  check(last, {3, 7, 11, -3, -7, -11});
  device().reduce(Reduction::sum, middle, x);
  check(middle, {9, 12, -9, -12});
  device().reduce(Reduction::max, outer, x);
  check(outer, {2, 4, 6});
  device().reduce(Reduction::min, middle, x);
  check(middle, {1, 2, -5, -6});
  device().reduce(Reduction::sum_squares, all, x);
  check(all, {182});
  device().reduce(Reduction::sum, same, x);
  check(same, x.data);
  F64 turned({3, 1, 1});
  device().reduce(Reduction::sum, turned, transpose(x, 0, 1));
  check(turned, {0, 0, 0});
  device().reduce(Reduction::sum, transpose(last, 0, 1), transpose(x, 0, 1));  // a strided output
  check(last, {3, 7, 11, -3, -7, -11});
  F64 one({1}, {3}), total({1});
  device().reduce(Reduction::sum, total, repeat(one, {1000}));
  check(total, {3000});

  F64 scalar({}, {-2}), result({});
  device().reduce(Reduction::sum_squares, result, scalar);
  check(result, {4});
  F64 nan({3}, {1, kNaN, 2});
  device().reduce(Reduction::max, total, nan);
  check(total, {kNaN});
  device().reduce(Reduction::min, total, nan);
  check(total, {kNaN});
  F64 nothing({0, 2}), of_nothing({1, 2}, {5, 5}), also_nothing({0, 1});
  device().reduce(Reduction::sum, of_nothing, nothing);
  check(of_nothing, {0, 0});
  device().reduce(Reduction::max, of_nothing, nothing);
  check(of_nothing, {-kInf, -kInf});
  device().reduce(Reduction::sum, also_nothing, nothing);

  // f32 is summed in f64, and its squares do not overflow.
  F32 f({4}, {1e8f, 1, -1e8f, 1}), f_total({1}), huge({1}, {1e30f});
  device().reduce(Reduction::sum, f_total, f);
  check(f_total, {2});
  device().reduce(Reduction::sum_squares, total, huge);
  check(total, {1e60}, 1e-6);
}

TEST_CASE("reference: argmax takes the first of equal ones, and NaN for the largest") {
  F64 x({3, 4}, {1, 7, 7, 2, 5, kNaN, 9, kNaN, -kInf, -kInf, -kInf, -kInf});
  I32 last({3, 1}), first({1, 4}), one({3, 1});
  device().argmax(last, x);
  check(last, {1, 1, 0});
  device().argmax(first, x);
  check(first, {1, 1, 1, 1});
  I32 turned({4, 1});
  device().argmax(turned, transpose(x, 0, 1));
  check(turned, {1, 1, 1, 1});
  F64 single({3, 1}, {4, 5, 6});
  device().argmax(one, single);
  check(one, {0, 0, 0});
  F64 nothing({0, 3});
  I32 no_index({0, 1});
  device().argmax(no_index, nothing);
}

TEST_CASE("reference: matrix products") {
  F64 a({2, 3}, {1, 2, 3, 4, 5, 6}), b({3, 2}, {7, 8, 9, 10, 11, 12}), c({2, 2});
  device().matmul(c, a, b, 1, 0);
  check(c, {58, 64, 139, 154});
  device().matmul(c, a, b, 0.5, 2);
  check(c, {145, 160, 347.5, 385});
  device().matmul(c, transpose(b, 0, 1), transpose(a, 0, 1), 1, 0);  // (a b)^T
  check(c, {58, 139, 64, 154});
  c.data = {kNaN, kInf, kNaN, kNaN};
  device().matmul(transpose(c, 0, 1), a, b, 1, 0);  // beta = 0 does not read c
  check(c, {58, 139, 64, 154});

  // Batches: a repeats over the first axis, b over the second.
  F64 pa({1, 3, 1, 2}, {1, 2, 3, 4, 5, 6}), pb({2, 1, 2, 1}, {1, 10, 2, 20}), pc({2, 3, 1, 1});
  device().matmul(pc, repeat(pa, {2, 3, 1, 2}), repeat(pb, {2, 3, 2, 1}), 1, 0);
  check(pc, {21, 43, 65, 42, 86, 130});
  F64 wide({4, 6});
  for (size_t i = 0; i < 24; i++) wide.data[i] = static_cast<double>(i);
  F64 corner({2, 2});
  device().matmul(corner, odd(odd(wide, 0), 1), b, 1, 0);  // rows 1, 3 and columns 1, 3, 5: {7, 9, 11}, {19, 21, 23}
  check(corner, {251, 278, 575, 638});

  F64 no_k({2, 0}), k_no({0, 2});
  device().matmul(c, no_k, k_no, 1, 3);
  check(c, {174, 417, 192, 462});
  device().matmul(c, no_k, k_no, 1, 0);
  check(c, {0, 0, 0, 0});
  F64 no_m({0, 3}), no_c({0, 2}), no_batch({0, 2, 2});
  device().matmul(no_c, no_m, b, 1, 0);
  device().matmul(no_batch, no_batch, no_batch, 1, 0);

  F32 fa({1, 3}, {1e8f, 1, -1e8f}), fb({3, 1}, {1, 1, 1}), fc({1, 1});
  device().matmul(fc, fa, fb, 1, 0);
  check(fc, {1});
}

TEST_CASE("reference: softmax and log_softmax") {
  F64 x({2, 3}, {std::log(1.0), std::log(2.0), std::log(5.0), 1000, 1000, 1000 + std::log(2.0)}), y({2, 3});
  const Values p = {0.125, 0.25, 0.625, 0.25, 0.25, 0.5};
  device().softmax(y, x);
  check(y, p, 1e-13);
  device().log_softmax(y, x);
  check(y, {std::log(0.125), std::log(0.25), std::log(0.625), std::log(0.25), std::log(0.25), std::log(0.5)}, 1e-13);

  F64 columns({3, 2}), out({3, 2});
  device().copy(transpose(columns, 0, 1), x);
  device().softmax(transpose(out, 0, 1), transpose(columns, 0, 1));
  check(transpose(out, 0, 1), p, 1e-13);
  device().softmax(x, x);  // in place
  check(x, p, 1e-13);
  F64 one({1}, {3});
  device().softmax(y, repeat(one, {2, 3}));
  check(y, Values(6, 1.0 / 3));

  F64 edge({6, 2}, {-kInf, -kInf, -kInf, 0, kNaN, 0, -kInf, kNaN, kInf, 0, -1e4, 1e4}), z({6, 2});
  device().softmax(z, edge);
  check(z, {0, 0, 0, 1, kNaN, kNaN, kNaN, kNaN, kNaN, kNaN, 0, 1});
  device().log_softmax(z, edge);
  check(z, {-kInf, -kInf, -kInf, 0, kNaN, kNaN, kNaN, kNaN, kNaN, kNaN, -2e4, 0});
  F64 single({2, 1}, {5, -kInf}), narrow({2, 1});
  device().softmax(narrow, single);
  check(narrow, {1, 0});
  F64 scalar({}, {5}), empty_row({2, 0}), no_row({0, 2});
  device().softmax(scalar, scalar);
  check(scalar, {1});
  for (View v : {View(empty_row), View(no_row), transpose(no_row, 0, 1)}) {
    device().softmax(v, v);
    device().log_softmax(v, v);
    device().softmax_grad(v, v, v);
    device().log_softmax_grad(v, v, v);
  }
}

TEST_CASE("reference: gradients of softmax and log_softmax") {
  F64 x = random({3, 4}, 2), dy = random({3, 4}, 3), y(x.shape), dx(x.shape);
  for (const bool logarithm : {false, true}) {
    const auto forward = [&] {
      F64 out(x.shape);
      logarithm ? device().log_softmax(out, x) : device().softmax(out, x);
      return out.data;
    };
    const auto backward = [&](View out, View upstream) {
      logarithm ? device().log_softmax_grad(out, upstream, y) : device().softmax_grad(out, upstream, y);
    };
    y.data = forward();
    backward(dx, dy);
    check(dx, differences(x, dy.data, forward), kDifferences);
    F64 ones({1}, {1}), in_place = dy;
    backward(in_place, in_place);
    check(in_place, dx.data);
    backward(dx, repeat(ones, x.shape));
    if (!logarithm) check(dx, Values(12, 0.0), 1e-15);  // the sum of a row is always 1
  }
  F64 masked({1, 3}), upstream({1, 3}, {1, 2, 3});  // softmax of a row of only -inf
  device().softmax_grad(masked, upstream, F64({1, 3}));
  check(masked, {0, 0, 0});
}

TEST_CASE("reference: layer_norm") {
  F64 x({2, 4}, {1, 2, 3, 6, -5, -5, -5, -5}), w({4}, {1, 2, 3, 4}), b({4}, {0, 0, 0, 1}), y({2, 4});
  F64 mean({2, 1}), rstd({2, 1});
  // mean 3, variance (4 + 1 + 0 + 9) / 4 = 3.5, with eps 0.5: rstd = 1 / 2
  device().layer_norm(y, mean, rstd, x, w, b, 0.5);
  check(y, {-1, -1, 0, 7, 0, 0, 0, 1});
  check(mean, {3, -5});
  check(rstd, {0.5, std::sqrt(2.0)});
  device().layer_norm(y, mean, rstd, x, {}, {}, 0.5);
  check(y, {-1, -0.5, 0, 1.5, 0, 0, 0, 0});
  F64 columns({4, 2}), out({4, 2});
  device().copy(transpose(columns, 0, 1), x);
  device().layer_norm(transpose(out, 0, 1), mean, rstd, transpose(columns, 0, 1), w, {}, 0.5);
  check(transpose(out, 0, 1), {-1, -1, 0, 6, 0, 0, 0, 0});

  // A large mean: the variance is taken about the mean, so it does not cancel.
  F32 far({1, 2}, {1e6f, 1e6f + 1}), far_y({1, 2}), far_mean({1, 1}), far_rstd({1, 1});
  device().layer_norm(far_y, far_mean, far_rstd, far, {}, {}, 0);
  check(far_y, {-1, 1});
  check(far_rstd, {2});

  F64 nan({2, 2}, {1, kNaN, 1, 3}), nan_y({2, 2});
  device().layer_norm(nan_y, mean, rstd, nan, {}, {}, 0);
  check(nan_y, {kNaN, kNaN, -1, 1});
}

TEST_CASE("reference: gradients of layer_norm") {
  F64 x = random({2, 3, 5}, 4), w = random({5}, 5), b = random({5}, 6), dy = random({2, 3, 5}, 7);
  F64 y(x.shape), mean({2, 3, 1}), rstd({2, 3, 1}), dx(x.shape), dw({5}), db({5});
  const auto forward = [&] {
    device().layer_norm(y, mean, rstd, x, w, b, 1e-3);
    return y.data;
  };
  const Values expected_dx = differences(x, dy.data, forward), expected_dw = differences(w, dy.data, forward),
               expected_db = differences(b, dy.data, forward);
  forward();
  device().layer_norm_grad(dx, dw, db, dy, x, w, mean, rstd);
  check(dx, expected_dx, kDifferences);
  check(dw, expected_dw, kDifferences);
  check(db, expected_db, kDifferences);
  F64 only({5});
  device().layer_norm_grad({}, only, {}, dy, x, w, mean, rstd);
  check(only, dw.data);
  device().layer_norm_grad({}, {}, only, dy, x, w, mean, rstd);
  check(only, db.data);
  F64 turned({3, 2, 5}), turned_dx({5, 3, 2});
  device().copy(transpose(turned, 0, 1), x);
  device().layer_norm_grad(transpose(turned_dx, 0, 2), {}, {}, dy, transpose(turned, 0, 1), w, mean, rstd);
  check(transpose(turned_dx, 0, 2), dx.data);

  F64 one({1}, {1}), ones({5}, {1, 1, 1, 1, 1}), plain(x.shape);
  device().layer_norm_grad(plain, {}, {}, repeat(one, x.shape), x, ones, mean, rstd);
  device().layer_norm_grad(dx, {}, {}, repeat(one, x.shape), x, {}, mean, rstd);
  check(dx, plain.data);
  check(dx, Values(30, 0.0), 1e-13);  // the sum of a normalised row is always 0

  // Rows of one element, and constant rows, are normalised to 0: nothing flows to w, and dx is 0 where C = 1.
  F64 single({3, 1}, {4, -5, 6}), sy({3, 1}), sm({3, 1}), sr({3, 1}), sdy({3, 1}, {1, 2, 4}), sdx({3, 1}), sdw({1}),
      sdb({1});
  device().layer_norm(sy, sm, sr, single, {}, {}, 1e-5);
  check(sy, {0, 0, 0}, 0);
  device().layer_norm_grad(sdx, sdw, sdb, sdy, single, {}, sm, sr);
  check(sdx, {0, 0, 0}, 0);
  check(sdw, {0}, 0);
  check(sdb, {7}, 0);
  F64 constant({1, 2}, {3, 3}), cy({1, 2}), cm({1, 1}), cr({1, 1}), cdy({1, 2}, {1, 5}), cdx({1, 2}), cdw({2});
  device().layer_norm(cy, cm, cr, constant, {}, {}, 0.25);
  device().layer_norm_grad(cdx, cdw, {}, cdy, constant, {}, cm, cr);
  check(cdx, {-4, 4}, 0);  // rstd (dy - mean dy) = 2 (1 - 3), 2 (5 - 3)
  check(cdw, {0, 0}, 0);

  F64 no_row({0, 2}), no_statistic({0, 1}), two({2}, {8, 8}), two_b({2}, {8, 8}), empty_row({2, 0}), statistic({2, 1}),
      none({0});
  device().layer_norm(no_row, no_statistic, no_statistic, no_row, {}, {}, 1e-5);
  device().layer_norm_grad(no_row, two, two_b, no_row, no_row, {}, no_statistic, no_statistic);
  check(two, {0, 0});
  check(two_b, {0, 0});
  device().layer_norm(empty_row, statistic, statistic, empty_row, none, none, 1e-5);
  device().layer_norm_grad(empty_row, none, none, empty_row, empty_row, none, statistic, statistic);
}

TEST_CASE("reference: rms_norm and its gradients") {
  F64 hand({1, 2}, {3, 4}), hand_w({2}, {1, 10}), hand_y({1, 2}), hand_r({1, 1});
  device().rms_norm(hand_y, hand_r, hand, hand_w, 12.5);  // 25 / 2 + 12.5 = 5^2
  check(hand_y, {0.6, 8});
  check(hand_r, {0.2});
  device().rms_norm(hand_y, hand_r, hand, {}, 12.5);
  check(hand_y, {0.6, 0.8});
  F64 zero({1, 2});
  device().rms_norm(hand_y, hand_r, zero, {}, 1e-6);
  check(hand_y, {0, 0});

  F64 x = random({4, 5}, 8), w = random({5}, 9), dy = random({4, 5}, 10), y(x.shape), rrms({4, 1}), dx(x.shape),
      dw({5});
  const auto forward = [&] {
    device().rms_norm(y, rrms, x, w, 1e-3);
    return y.data;
  };
  const Values expected_dx = differences(x, dy.data, forward), expected_dw = differences(w, dy.data, forward);
  forward();
  device().rms_norm_grad(dx, dw, dy, x, w, rrms);
  check(dx, expected_dx, kDifferences);
  check(dw, expected_dw, kDifferences);
  F64 only({5});
  device().rms_norm_grad({}, only, dy, x, w, rrms);
  check(only, dw.data);
  F64 no_row({0, 2}), no_statistic({0, 1}), two({2}, {8, 8});
  device().rms_norm(no_row, no_statistic, no_row, {}, 1e-5);
  device().rms_norm_grad(no_row, two, no_row, no_row, {}, no_statistic);
  check(two, {0, 0});
}

TEST_CASE("reference: cross_entropy") {
  // p = {1/8, 2/8, 5/8} in each row
  F64 row({3}, {std::log(1.0), std::log(2.0), std::log(5.0)}), loss({3}), weight({3}), lse({3});
  const View logits = repeat(row, {3, 3});
  I32 target({3}, {2, -100, 0});
  device().cross_entropy(loss, weight, lse, logits, target, {});
  check(loss, {std::log(8.0 / 5), 0, std::log(8.0)});
  check(weight, {1, 0, 1});
  check(lse, {std::log(8.0), std::log(8.0), std::log(8.0)});

  F64 w({3}, {1, 2, 4});
  CrossEntropyOptions options{0, 0.3, w};  // class 0 is ignored
  device().cross_entropy(loss, weight, lse, logits, I32({3}, {2, 0, 1}), options);
  const double smooth = 0.1 * (std::log(8.0) + 2 * std::log(4.0) + 4 * std::log(1.6));
  check(loss, {0.7 * 4 * std::log(1.6) + smooth, 0, 0.7 * 2 * std::log(4.0) + smooth});
  check(weight, {4, 0, 2});

  // A class ruled out by -inf costs nothing; so large logits do not overflow.
  F64 edge({3, 2}, {0, -kInf, 1e4, -1e4, kNaN, 0}), dx({3, 2}), ones({3}, {1, 1, 1});
  I32 first({3}, {0, 1, -100});
  device().cross_entropy(loss, weight, lse, edge, first, {});
  check(loss, {0, 2e4, 0});
  device().cross_entropy_grad(dx, ones, lse, edge, first, {});
  check(dx, {0, 0, 1, -1, 0, 0});  // an ignored row has gradient 0, NaN or not

  F64 none({0, 3}), no_loss({0});
  I32 no_target({0});
  device().cross_entropy(no_loss, no_loss, no_loss, none, no_target, {});
  device().cross_entropy_grad(none, no_loss, no_loss, none, no_target, {});
}

TEST_CASE("reference: gradient of cross_entropy") {
  F64 logits = random({4, 3}, 11), w({3}, {0.5, 2, 1.5}), loss({4}), weight({4}), lse({4}), dx({4, 3});
  F64 dloss({4}, {1, -2, 0.5, 3});
  I32 target({4}, {2, 0, 1, 2});
  for (const CrossEntropyOptions& options :
       {CrossEntropyOptions{}, CrossEntropyOptions{0, 0, {}}, CrossEntropyOptions{-100, 0.3, {}},
        CrossEntropyOptions{-100, 0, w}, CrossEntropyOptions{1, 0.3, w}, CrossEntropyOptions{-100, 1, w}}) {
    const auto forward = [&] {
      device().cross_entropy(loss, weight, lse, logits, target, options);
      return loss.data;
    };
    const Values expected = differences(logits, dloss.data, forward);
    forward();
    device().cross_entropy_grad(dx, dloss, lse, logits, target, options);
    check(dx, expected, kDifferences);
    F64 one({1}, {2}), twos({4}, {2, 2, 2, 2}), turned({3, 4});
    device().cross_entropy_grad(dx, twos, lse, logits, target, options);
    device().cross_entropy_grad(transpose(turned, 0, 1), repeat(one, {4}), lse, logits, target, options);
    check(transpose(turned, 0, 1), dx.data);
  }
}

TEST_CASE("reference: gather and scatter_add") {
  F64 x({3, 4}, {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23});
  I32 index({3, 2}, {3, 0, 1, 1, 2, 3}), row({2}, {2, 0});
  F64 y({3, 2});
  device().gather(y, x, index, 1);
  check(y, {3, 0, 11, 11, 22, 23});
  F64 rows({2, 4});
  device().gather(rows, x, repeat(transpose(View(I32({1, 2})), 0, 1), {2, 4}), 0);  // index 0 twice
  check(rows, {0, 1, 2, 3, 0, 1, 2, 3});
  I32 column({2, 1}, {2, 0});
  device().gather(rows, x, repeat(column, {2, 4}), 0);  // rows 2 and 0: an embedding
  check(rows, {20, 21, 22, 23, 0, 1, 2, 3});
  F64 turned({4, 2});
  device().gather(turned, transpose(x, 0, 1), repeat(row, {4, 2}), 1);
  check(turned, {20, 0, 21, 1, 22, 2, 23, 3});
  Array<f16> half({3}, {f16(0.5f), f16(1.5f), f16(2.5f)}), half_y({2});
  device().gather(half_y, half, row, 0);
  check(half_y, {2.5, 0.5});
  I32 whole({3}, {7, 8, 2147483647}), whole_y({2});
  device().gather(whole_y, whole, row, 0);
  check(whole_y, {2147483647, 7});

  F64 grown({3, 4}, Values(12, 1.0)), add({3, 2}, {1, 2, 3, 4, 5, 6});
  device().scatter_add(grown, add, index, 1);
  check(grown, {3, 1, 1, 2, 1, 8, 1, 1, 1, 1, 6, 7});  // both of row 1 at column 1
  F64 sums({3, 4}), one({1}, {1});
  I32 same({5, 1}, {1, 1, 1, 2, 1});
  device().scatter_add(sums, repeat(one, {5, 4}), repeat(same, {5, 4}), 0);
  check(sums, {0, 0, 0, 0, 4, 4, 4, 4, 1, 1, 1, 1});
  F64 sums_t({4, 3});
  device().scatter_add(transpose(sums_t, 0, 1), repeat(one, {5, 4}), repeat(same, {5, 4}), 0);
  check(transpose(sums_t, 0, 1), sums.data);
  F64 nothing({0, 4});
  I32 no_index({0, 4});
  device().gather(nothing, x, no_index, 0);
  device().scatter_add(x, nothing, no_index, 0);
  check(x, {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23});
}

TEST_CASE("reference: unfold and fold") {
  F64 x({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), columns({1, 4, 4});
  ConvOptions two;
  two.kernel_h = two.kernel_w = 2;
  device().unfold(columns, x, two);  // a row holds one tap of the kernel at the four output positions
  check(columns, {1, 2, 4, 5, 2, 3, 5, 6, 4, 5, 7, 8, 5, 6, 8, 9});
  F64 back({1, 1, 3, 3});
  device().fold(back, columns, two);  // each element as often as patches hold it
  check(back, {1, 4, 3, 8, 20, 12, 7, 16, 9});

  ConvOptions wide = two;  // taps (0, 0), (0, 2) at columns -1, 1; stride 2, padding 1 in width alone
  wide.kernel_h = 1, wide.dilation_w = 2, wide.stride_w = 2, wide.pad_w = 1;
  F64 patches({1, 2, 6});
  device().unfold(patches, x, wide);
  check(patches, {0, 2, 0, 5, 0, 8, 2, 0, 5, 0, 8, 0});
  F64 turned({1, 2, 6});
  device().unfold(turned, transpose(x, 2, 3), wide);  // columns are read as rows
  check(turned, {0, 4, 0, 5, 0, 6, 4, 0, 5, 0, 6, 0});
  ConvOptions tall;  // the same in height, over the transposed image
  tall.kernel_h = 2, tall.dilation_h = 2, tall.stride_h = 2, tall.pad_h = 1;
  device().unfold(patches, transpose(x, 2, 3), tall);
  check(patches, {0, 0, 0, 2, 5, 8, 2, 5, 8, 0, 0, 0});

  // fold is the adjoint of unfold: <unfold(x), c> = <x, fold(c)>, here with everything uneven.
  ConvOptions odd_one;
  odd_one.kernel_h = 3, odd_one.kernel_w = 2, odd_one.stride_h = 2, odd_one.pad_h = 2, odd_one.pad_w = 1,
  odd_one.dilation_w = 3;
  F64 image = random({2, 3, 5, 6}, 12), c = random({2, 18, 4 * 5}, 13), unfolded(c.shape), folded({2, 6, 5, 3});
  device().unfold(unfolded, image, odd_one);
  const View strided = transpose(folded, 1, 3);  // (2, 3, 5, 6)
  device().fold(strided, c, odd_one);
  CHECK(near(dot(unfolded.data, c.data), dot(image.data, values(strided)), 1e-13));

  F64 no_batch({0, 1, 3, 3}), no_columns({0, 4, 4}), no_channel({1, 0, 3, 3}), no_taps({1, 0, 4});
  device().unfold(no_columns, no_batch, two);
  device().fold(no_batch, no_columns, two);
  device().unfold(no_taps, no_channel, two);
  device().fold(no_channel, no_taps, two);
}

namespace {

// Attention composed of the other kernels, with the weights stored.
Values composed(View q, View k, View v, const AttentionOptions& options, View hidden, Values* lse = nullptr) {
  const int64_t B = q.shape[0], H = q.shape[1], T = q.shape[2], S = k.shape[2], E = v.shape[3];
  F64 scores({B, H, T, S}), minus_inf({1}, {-kInf}), o({B, H, T, E});
  device().matmul(scores, q, transpose(k, 2, 3), options.scale, 0);
  device().where(scores, hidden, repeat(minus_inf, scores.shape), scores);
  if (lse) {
    F64 logs(scores.shape);
    device().log_softmax(logs, scores);
    for (size_t r = 0; r < static_cast<size_t>(B * H * T); r++) {
      double sum = -kInf;  // any score minus its log_softmax is lse
      for (size_t s = r * S; s < (r + 1) * S; s++) {
        if (logs.data[s] > -kInf) sum = scores.data[s] - logs.data[s];
      }
      lse->push_back(sum);
    }
  }
  device().softmax(scores, scores);
  device().dropout(scores, scores, options.dropout);
  device().matmul(o, scores, v, 1, 0);
  return o.data;
}

struct MaskCase {
  const char* name;
  AttentionMask mask;
  Dropout dropout;
};

// The masks by their definition.
F64 hidden_by(const AttentionMask& mask, int64_t B, int64_t H, int64_t T, int64_t S, const Values& keep,
              const I32& lengths) {
  F64 hidden({B, H, T, S});
  size_t n = 0;
  for (int64_t b = 0; b < B; b++)
    for (int64_t h = 0; h < H; h++)
      for (int64_t i = 0; i < T; i++)
        for (int64_t j = 0; j < S; j++, n++) {
          const int64_t from_last = (T - 1 - i) - (S - 1 - j);  // the last query sits on the last key
          bool hide = mask.causal && from_last > 0;
          hide = hide || (mask.window > 0 && std::abs(from_last) > mask.window);
          hide = hide || (mask.lengths && j >= lengths.data[static_cast<size_t>(b)]);
          hide = hide || (mask.keep && keep[n] == 0);
          hidden.data[n] = hide;
        }
  return hidden;
}

}  // namespace

TEST_CASE("reference: attention by hand") {
  // One query, two keys; scores log 1 and log 3, so weights 1/4 and 3/4.
  F64 q({1, 1, 1, 1}, {2}), k({1, 1, 2, 1}, {0, std::log(3.0)}), v({1, 1, 2, 2}, {4, 8, 0, 4}), o({1, 1, 1, 2}),
      lse({1, 1, 1});
  AttentionOptions options;
  options.scale = 0.5;
  device().attention(o, lse, q, k, v, options);
  check(o, {1, 5});
  check(lse, {std::log(4.0)});

  // With do = {1, 0}: dA = {4, 0}, sum dA A = 1, dS = {1/4 (4 - 1), 3/4 (0 - 1)} = {3/4, -3/4}.
  F64 dout({1, 1, 1, 2}, {1, 0}), dq({1, 1, 1, 1}), dk({1, 1, 2, 1}), dv({1, 1, 2, 2});
  device().attention_grad(dq, dk, dv, dout, q, k, v, o, lse, options);
  check(dq, {-0.375 * std::log(3.0)});
  check(dk, {0.75, -0.75});
  check(dv, {0.25, 0, 0.75, 0});
}

TEST_CASE("reference: attention agrees with its parts, for every mask, and its gradients with differences") {
  const int64_t B = 2, H = 2, T = 3, S = 5, D = 2, E = 3;
  F64 q = random({B, H, T, D}, 20), k = random({B, H, S, D}, 21), v = random({B, H, S, E}, 22),
      dout = random({B, H, T, E}, 23);
  I32 lengths({B}, {2, 5});
  F64 keep({B, H, T, S});
  for (size_t i = 0; i < keep.data.size(); i++) keep.data[i] = i % 3 != 1 && i / S != 4;  // row 4 sees nothing
  AttentionMask none, causal, window, padded, chosen, every;
  causal.causal = every.causal = true;
  window.window = 1, every.window = 2;
  padded.lengths = every.lengths = lengths;
  chosen.keep = every.keep = keep;
  const Dropout no{}, half{0.5, 7, 3};
  for (const MaskCase& c : {MaskCase{"none", none, no}, MaskCase{"causal", causal, no}, MaskCase{"window", window, no},
                            MaskCase{"lengths", padded, no}, MaskCase{"keep", chosen, no}, MaskCase{"all", every, no},
                            MaskCase{"dropout", none, half}, MaskCase{"all, dropout", every, half}}) {
    CAPTURE(c.name);
    const AttentionOptions options{0.7, c.mask, c.dropout};
    F64 hidden = hidden_by(c.mask, B, H, T, S, keep.data, lengths), o({B, H, T, E}), lse({B, H, T});
    Values expected_lse;
    const Values expected = composed(q, k, v, options, hidden, &expected_lse);
    device().attention(o, lse, q, k, v, options);
    check(o, expected, 1e-13);
    check(lse, expected_lse, 1e-13);

    const auto forward = [&] {
      F64 out(o.shape), unused(lse.shape);
      device().attention(out, unused, q, k, v, options);
      return out.data;
    };
    F64 dq(q.shape), dk(k.shape), dv(v.shape);
    device().attention_grad(dq, dk, dv, dout, q, k, v, o, lse, options);
    check(dq, differences(q, dout.data, forward), kDifferences);
    check(dk, differences(k, dout.data, forward), kDifferences);
    check(dv, differences(v, dout.data, forward), kDifferences);
  }

  // Heads as views of (B, T, H D), in and out; a mask that repeats over batch and heads; a gradient that is not wanted.
  F64 wide({B, T, H, D}), result({B, T, H, E}), lse({B, H, T}), o({B, H, T, E}), same(lse.shape), mask({T, S});
  device().copy(transpose(wide, 1, 2), q);
  mask.data = Values(keep.data.begin(), keep.data.begin() + T * S);
  AttentionOptions options;
  options.mask.keep = repeat(mask, {B, H, T, S});
  device().attention(o, lse, q, k, v, options);
  device().attention(transpose(result, 1, 2), same, transpose(wide, 1, 2), k, v, options);
  check(transpose(result, 1, 2), o.data);
  F64 dv(v.shape), dv_alone(v.shape), dq(q.shape), dk(k.shape);
  device().attention_grad(dq, dk, dv, dout, q, k, v, o, lse, options);
  device().attention_grad({}, {}, dv_alone, dout, transpose(wide, 1, 2), k, v, o, lse, options);
  check(dv_alone, dv.data);
}

TEST_CASE("reference: attention never reads what is hidden, and a query that sees nothing gives zeros") {
  const int64_t T = 2, S = 3;
  F64 q({2, 1, T, 1}, {1, 2, 3, 4}), k({2, 1, S, 1}, {1, 2, kNaN, kNaN, kInf, kNaN}),
      v({2, 1, S, 1}, {5, 7, kNaN, kNaN, kNaN, kInf});
  F64 o({2, 1, T, 1}), lse({2, 1, T}), dout({2, 1, T, 1}, {1, 1, 1, 1}), dq(q.shape), dk(k.shape), dv(v.shape);
  I32 lengths({2}, {2, 0});
  AttentionOptions options;
  options.mask.lengths = lengths;
  device().attention(o, lse, q, k, v, options);
  const double p0 = 1 / (1 + std::exp(1.0)), p1 = 1 / (1 + std::exp(2.0));  // the weights of key 0
  check(o, {5 * p0 + 7 * (1 - p0), 5 * p1 + 7 * (1 - p1), 0, 0});
  check(Values(lse.data.begin() + 2, lse.data.end()), {-kInf, -kInf});
  device().attention_grad(dq, dk, dv, dout, q, k, v, o, lse, options);
  check(dv, {p0 + p1, 2 - p0 - p1, 0, 0, 0, 0}, 1e-13);
  check(Values(dq.data.begin() + 2, dq.data.end()), {0, 0});
  check(Values(dk.data.begin() + 2, dk.data.end()), {0, 0, 0, 0});
  options.dropout = {1, 5, 0};
  device().attention(o, lse, q, k, v, options);
  check(o, {0, 0, 0, 0});
  device().attention_grad(dq, dk, dv, dout, q, k, v, o, lse, options);
  check(dq, {0, 0, 0, 0});
  check(dv, Values(6, 0.0));

  // More queries than keys: the last query sees the last key, the first ones see nothing.
  F64 many({1, 1, 3, 1}, {1, 1, 1}), one_k({1, 1, 1, 1}, {1}), one_v({1, 1, 1, 1}, {9}), many_o({1, 1, 3, 1}),
      many_lse({1, 1, 3});
  AttentionOptions causal;
  causal.mask.causal = true;
  device().attention(many_o, many_lse, many, one_k, one_v, causal);
  check(many_o, {0, 0, 9});
  check(many_lse, {-kInf, -kInf, 1});
}

TEST_CASE("reference: attention over nothing") {
  AttentionOptions options;
  F64 q({1, 1, 2, 1}, {1, 2}), no_keys({1, 1, 0, 1}), o({1, 1, 2, 1}, {5, 5}), lse({1, 1, 2}), dq({1, 1, 2, 1}, {5, 5});
  device().attention(o, lse, q, no_keys, no_keys, options);  // S = 0
  check(o, {0, 0});
  check(lse, {-kInf, -kInf});
  device().attention_grad(dq, no_keys, no_keys, q, q, no_keys, no_keys, o, lse, options);
  check(dq, {0, 0});

  F64 k({1, 1, 2, 1}, {1, 2}), no_queries({1, 1, 0, 1}), no_lse({1, 1, 0}), dk({1, 1, 2, 1}, {5, 5}),
      dv({1, 1, 2, 1}, {5, 5});
  device().attention(no_queries, no_lse, no_queries, k, k, options);  // T = 0
  device().attention_grad(no_queries, dk, dv, no_queries, no_queries, k, k, no_queries, no_lse, options);
  check(dk, {0, 0});
  check(dv, {0, 0});

  F64 no_width({1, 1, 2, 0}), v({1, 1, 2, 1}, {4, 8});  // D = 0: all scores are 0
  device().attention(o, lse, no_width, no_width, v, options);
  check(o, {6, 6});
  check(lse, {std::log(2.0), std::log(2.0)});
  device().attention_grad(no_width, no_width, dv, v, no_width, no_width, v, o, lse, options);
  check(dv, {6, 6});
  device().attention(no_width, lse, q, k, no_width, options);  // E = 0
  device().attention_grad(dq, dk, no_width, no_width, q, k, no_width, no_width, lse, options);
  check(dq, {0, 0});
  F64 no_batch({0, 1, 2, 1}), no_batch_lse({0, 1, 2});
  device().attention(no_batch, no_batch_lse, no_batch, no_batch, no_batch, options);
  device().attention_grad(no_batch, no_batch, no_batch, no_batch, no_batch, no_batch, no_batch, no_batch, no_batch_lse,
                          options);
}

TEST_CASE("reference: Adam and AdamW") {
  AdamOptions options{0.1, 0.9, 0.99, 1e-8, 0, false, 1, {}};
  F64 p({2}, {1, 2}), m({2}), v({2}), g({2}, {3, -0.5});
  // The first step is lr * g / (|g| + eps), whatever the size of g.
  device().adam(p, m, v, g, {}, options);
  check(p, {1 - 0.3 / (3 + 1e-8), 2 + 0.05 / (0.5 + 1e-8)});
  check(m, {0.3, -0.05});
  check(v, {0.09, 0.0025});
  // m = 0.27 + 0.1, v = 0.0891 + 0.01; corrected by 1 - 0.81 and 1 - 0.9801
  options.step = 2;
  g.data = {1, 0};
  const double before = p.data[0];
  device().adam(p, m, v, g, {}, options);
  check(m, {0.37, -0.045});
  check(v, {0.0991, 0.002475});
  CHECK(near(p.data[0], before - 0.1 * (0.37 / 0.19) / (std::sqrt(0.0991 / 0.0199) + 1e-8), 1e-14));

  // eps is outside the root, decay is taken from the weight (AdamW) or added to the gradient (Adam), g is scaled first.
  F64 w({1}, {10}), wm({1}), wv({1}), wg({1}, {4}), half({1}, {0.5});
  device().adam(w, wm, wv, wg, {}, {0.1, 0.9, 0.99, 1, 0.01, true, 1, half});
  check(w, {10 - 0.1 * 0.01 * 10 - 0.1 * 2 / (2 + 1)});
  check(wm, {0.2});
  w.data = {10}, wm.data = wv.data = {0};
  device().adam(w, wm, wv, wg, {}, {0.1, 0.9, 0.99, 1, 0.01, false, 1, half});
  check(w, {10 - 0.1 * 2.1 / (2.1 + 1)});
  check(wm, {0.21});
}

TEST_CASE("reference: Adam with a gradient of a few rows is Adam with zeros elsewhere") {
  F64 twice({1}, {2});
  const AdamOptions options{0.1, 0.9, 0.99, 1e-8, 0.1, true, 3, twice};
  F64 p = random({4, 3}, 30), m = random({4, 3}, 31), v({4, 3}, Values(12, 0.5)), g = random({2, 3}, 32), dense({4, 3});
  I32 rows({4}, {-1, 1, -1, 0});
  for (size_t c = 0; c < 3; c++) dense.data[3 + c] = g.data[3 + c], dense.data[9 + c] = g.data[c];
  F64 dense_p = p, dense_m = m, dense_v = v;
  device().adam(p, m, v, g, rows, options);
  device().adam(dense_p, dense_m, dense_v, dense, {}, options);
  check(p, dense_p.data);
  check(m, dense_m.data);
  check(v, dense_v.data);
  F64 no_rows({0, 3});  // no row has a gradient
  I32 nowhere({4}, {-1, -1, -1, -1});
  device().adam(p, m, v, no_rows, nowhere, options);
  device().adam(dense_p, dense_m, dense_v, F64({4, 3}), {}, options);
  check(p, dense_p.data);
  F64 nothing({0, 3});
  device().adam(nothing, nothing, nothing, nothing, {}, options);
}

TEST_CASE("reference: f32 is computed in f64 and rounded once") {
  F64 x = random({2, 2, 3, 4}, 40), k = random({2, 2, 5, 4}, 41);
  F32 fx(x.shape), fk(k.shape), fy(x.shape), flse({2, 2, 3});
  device().copy(fx, x);
  device().copy(fk, k);
  device().copy(x, fx);  // the same numbers in both
  device().copy(k, fk);
  F64 y(x.shape), lse({2, 2, 3});
  const auto rounded = [](const F64& exact) {
    Values out;
    for (double value : exact.data) out.push_back(static_cast<float>(value));
    return out;
  };
  device().softmax(y, x);
  device().softmax(fy, fx);
  check(fy, rounded(y), 0);
  device().unary(Unary::gelu, y, x, 0, 0);
  device().unary(Unary::gelu, fy, fx, 0, 0);
  check(fy, rounded(y), 0);
  device().attention(y, lse, x, k, k, {});
  device().attention(fy, flse, fx, fk, fk, {});
  check(fy, rounded(y), 0);
  check(flse, rounded(lse), 0);
}
