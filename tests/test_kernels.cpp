// The kernels of `cpu` and of CUDA against the plain loops of `reference`: every layout of the operands, sizes around
// the blocks and tiles, in place, and the same bits for one, two and three threads. Products are in
// test_kernels_matmul.cpp, attention in test_kernels_attention.cpp.
#include "tests/compare_devices.h"

using namespace heed;
using compare::agree;
using compare::Array;
using compare::kInfinity;
using compare::kInputLayouts;
using compare::kLayouts;
using compare::kNaN;
using compare::Layout;
using compare::random;
using Views = std::vector<View>;

namespace {

const std::vector<DType> kFloats = {DType::f32, DType::f64};
const std::vector<DType> kDTypes = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32};

// f64: the order of sums and products differs. f32: the formulas' functions are accurate to 2e-7, and some formulas
// subtract two of their results.
double tolerance(DType dtype) { return dtype == DType::f64 ? 1e-12 : 2e-6; }

constexpr int64_t kLarge = 40'000;  // more than one thread works on it

const std::vector<Unary> kUnary = {Unary::affine,  Unary::reciprocal, Unary::exp,  Unary::log,       Unary::sqrt,
                                   Unary::rsqrt,   Unary::pow,        Unary::sin,  Unary::cos,       Unary::tanh,
                                   Unary::sigmoid, Unary::relu,       Unary::gelu, Unary::gelu_tanh, Unary::silu,
                                   Unary::erf,     Unary::abs,        Unary::clamp};
const std::vector<Binary> kBinary = {Binary::add,     Binary::sub,     Binary::mul, Binary::div, Binary::pow,
                                     Binary::maximum, Binary::minimum, Binary::eq,  Binary::ne,  Binary::lt,
                                     Binary::le,      Binary::gt,      Binary::ge};

bool needs_positive(Unary op) {
  return op == Unary::log || op == Unary::sqrt || op == Unary::rsqrt || op == Unary::pow || op == Unary::reciprocal;
}

}  // namespace

// ---- elementwise

TEST_CASE("kernels: unary formulas and their derivatives") {
  for (DType dtype : kFloats) {
    for (Unary op : kUnary) {
      const double low = needs_positive(op) ? 0.3 : -4;
      for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{33, 7}, Shape{3, 1025}, Shape{0}, Shape{kLarge}}) {
        const Array x = random(shape, dtype, Layout::contiguous, low, 4),
                    dy = random(shape, dtype, Layout::contiguous, -1, 1, 2);
        const double p = op == Unary::clamp ? -0.5 : 1.7;
        agree(text("unary ", static_cast<int>(op), " ", shape), {Array(shape, dtype), x, dy, Array(shape, dtype)},
              tolerance(dtype), [&](Device& d, const Views& v) {
                d.unary(op, v[0], v[1], p, 0.6);
                d.unary_grad(op, v[3], v[2], v[1], v[0], p, 0.6);
                d.unary_grad(op, v[2], v[2], v[1], v[0], p, 0.6);  // in place
              });
      }
    }
  }
}

TEST_CASE("kernels: unary over every layout, in place, and with absent operands") {
  for (Layout from : kInputLayouts) {
    for (Layout to : kLayouts) {
      for (const Shape& shape : {Shape{5, 3}, Shape{3, 4, 33}, Shape{600, 2}, Shape{70, 515}}) {
        agree(text("layouts ", static_cast<int>(from), " to ", static_cast<int>(to), " ", shape),
              {random(shape, DType::f32, to), random(shape, DType::f32, from, -2, 2, 2)}, 2e-6,
              [](Device& d, const Views& v) {
                d.unary(Unary::affine, v[0], v[0], 0.5, 0.25);
                d.unary_grad(Unary::tanh, v[0], v[0], View{}, v[1], 0, 0);
                d.unary_grad(Unary::relu, v[0], v[0], v[1], View{}, 0, 0);
                d.unary_grad(Unary::affine, v[0], v[0], View{}, View{}, 3, 0);
                d.unary(Unary::gelu, v[0], v[0], 0, 0);
              });
      }
    }
  }
}

TEST_CASE("kernels: squares, infinities and NaN in the formulas") {
  for (DType dtype : kFloats) {
    Array x({9}, dtype), dy = random({9}, dtype);
    const double values[] = {0, -0.0, 1, -1, kInfinity, -kInfinity, kNaN, 100, -100};
    for (size_t i = 0; i < 9; i++) x.set(i, values[i]);
    for (double p : {2.0, 3.0}) {
      agree("powers", {x, dy, Array({9}, dtype)}, tolerance(dtype), [&](Device& d, const Views& v) {
        d.unary_grad(Unary::pow, v[1], v[1], v[0], View{}, p, 0);
        d.unary(Unary::pow, v[2], v[0], p, 0);
      });
    }
    for (Unary op : kUnary) {
      if (op == Unary::gelu_tanh || op == Unary::pow) continue;  // x^3 overflows in f32 alone; pow is the C library's
      agree(text("special values ", static_cast<int>(op)), {x, Array({9}, dtype)}, tolerance(dtype),
            [&](Device& d, const Views& v) { d.unary(op, v[1], v[0], 0.5, 1); });
    }
  }
}

TEST_CASE("kernels: binary formulas, broadcast and in place") {
  for (DType dtype : kFloats) {
    for (Binary op : kBinary) {
      for (const Shape& shape : {Shape{}, Shape{33, 7}, Shape{3, 1025}, Shape{0, 4}, Shape{80, 513}}) {
        const Array a = random(shape, dtype, Layout::contiguous, 0.5, 3),
                    b = random(shape, dtype, Layout::contiguous, 0.5, 3, 2);
        agree(text("binary ", static_cast<int>(op), " ", shape), {Array(shape, dtype), a, b}, tolerance(dtype),
              [&](Device& d, const Views& v) { d.binary(op, v[0], v[1], v[2]); });
      }
    }
    for (Layout la : kInputLayouts) {
      for (Layout lb : kInputLayouts) {
        for (const Shape& shape : {Shape{6, 5}, Shape{2, 3, 700}, Shape{257, 3}}) {
          const Array a = random(shape, dtype, la), b = random(shape, dtype, lb, -2, 2, 2);
          agree(text("layouts ", static_cast<int>(la), " and ", static_cast<int>(lb), " ", shape),
                {Array(shape, dtype), a, b}, tolerance(dtype),
                [](Device& d, const Views& v) { d.binary(Binary::sub, v[0], v[1], v[2]); });
        }
      }
    }
    for (Layout layout : kLayouts) {
      const Shape shape = {70, 31};
      agree("in place", {random(shape, dtype, layout), random(shape, dtype, Layout::row, -2, 2, 2)}, tolerance(dtype),
            [](Device& d, const Views& v) {
              d.binary(Binary::mul, v[0], v[0], v[1]);
              d.binary(Binary::sub, v[0], v[1], v[0]);
              d.binary(Binary::add, v[0], v[0], v[0]);
            });
    }
    Array a = random({4, 4}, dtype), b = random({4, 4}, dtype, Layout::contiguous, -2, 2, 2);
    a.set(1, kNaN), b.set(2, kNaN), a.set(3, kInfinity), b.set(3, kInfinity), a.set(4, b.get(4));
    for (Binary op : kBinary) {
      agree("NaN", {Array({4, 4}, dtype), a, b}, tolerance(dtype),
            [&](Device& d, const Views& v) { d.binary(op, v[0], v[1], v[2]); });
    }
  }
}

TEST_CASE("kernels: where, with a condition of any dtype") {
  for (DType dtype : kDTypes) {
    for (DType of_condition : kDTypes) {
      for (Layout layout : kInputLayouts) {
        for (const Shape& shape : {Shape{5, 3}, Shape{2, 1025}, Shape{3, 40}, Shape{1025}}) {
          const Array condition = random(shape, of_condition, layout, 0, 2);  // an i32 is 0 or 1
          const Array a = random(shape, dtype, Layout::column, -9, 9, 2), b = random(shape, dtype, layout, -9, 9, 3);
          agree(text("where ", name_of(dtype), " ", name_of(of_condition)), {random(shape, dtype), condition, a, b}, 0,
                [](Device& d, const Views& v) {
                  d.where(v[0], v[1], v[2], v[3]);
                  d.where(v[0], v[1], v[0], v[2]);  // in place
                });
        }
      }
    }
  }
  Array condition({4}, DType::f32), b({4}, DType::f32);
  condition.set(0, kNaN), condition.set(1, -0.0), condition.set(2, 0x1p-149), b.set(2, kNaN);
  agree("a condition of NaN", {Array({4}, DType::f32), condition, random({4}, DType::f32), b}, 0,
        [](Device& d, const Views& v) { d.where(v[0], v[1], v[2], v[3]); });
}

TEST_CASE("kernels: fill and copy, every dtype to every other, every layout") {
  const auto copy = [](Device& d, const Views& v) { d.copy(v[0], v[1]); };
  for (DType to : kDTypes) {
    for (Layout y : kLayouts) {
      for (const Shape& shape : {Shape{}, Shape{0}, Shape{7}, Shape{3, 5, 66}, Shape{50, 1025}}) {
        agree("fill", {random(shape, to, y)}, 0, [](Device& d, const Views& v) { d.fill(v[0], 3); });
      }
      for (Layout x : kInputLayouts) {
        for (const Shape& shape : {Shape{6, 5}, Shape{3, 5, 66}, Shape{70, 515}}) {
          const Array source = random(shape, to, x, -300, 300, 2);
          agree(text("copy ", name_of(to), " ", static_cast<int>(x), " ", static_cast<int>(y), " ", shape),
                {random(shape, to, y), source}, 0, copy);
        }
      }
    }
    for (DType from : kDTypes) {
      for (Layout layout : kInputLayouts) {
        for (const Shape& shape : {Shape{33, 40}, Shape{5, 7}}) {
          Array source = random(shape, from, layout, -300, 300, 2);
          const double special[] = {kNaN, kInfinity, -kInfinity, 1e9};
          for (size_t i = 0; i < 4 && i + 1 < source.size(); i++) source.set(i, special[i]);
          agree(text("convert ", name_of(from), " to ", name_of(to), " ", static_cast<int>(layout), " ", shape),
                {random(shape, to, Layout::padded), random(shape, to), source}, 0, [](Device& d, const Views& v) {
                  d.copy(v[0], v[2]);
                  d.copy(v[1], v[2]);
                });
        }
      }
    }
  }
  // (B, T, H, D) as (B, H, T, D), and a transposition large enough for two threads
  const auto swapped = [](View v, int a, int b) {
    std::swap(v.shape[a], v.shape[b]), std::swap(v.strides[a], v.strides[b]);
    return v;
  };
  agree("heads", {Array({3, 9, 50, 40}, DType::f32), random({3, 50, 9, 40}, DType::f32)}, 0,
        [&](Device& d, const Views& v) { d.copy(v[0], swapped(v[1], 1, 2)); });
  agree("transposed operands",
        {Array({333, 601}, DType::f32), random({601, 333}, DType::f32), random({601, 333}, DType::f32)}, 1e-6,
        [&](Device& d, const Views& v) { d.binary(Binary::sub, v[0], swapped(v[1], 0, 1), swapped(v[2], 0, 1)); });
  agree("transposition", {Array({333, 601}, DType::f32), random({601, 333}, DType::f32)}, 0,
        [&](Device& d, const Views& v) { d.copy(v[0], swapped(v[1], 0, 1)); });
}

// ---- random numbers

TEST_CASE("kernels: dropout and uniform make the reference's bits") {
  for (DType dtype : kFloats) {
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{kLarge}, Shape{33, 7}, Shape{4, 3, 65}, Shape{3, 2, 5, 66},
                               Shape{2, 3, 2, 4, 130}, Shape{3, 0, 4}, Shape{40, 70, 64}}) {
      for (double p : {0.0, 0.3, 1.0}) {
        for (Layout layout : {Layout::contiguous, Layout::transposed, Layout::padded}) {
          if (layout != Layout::contiguous && shape.numel() > 30'000) continue;
          Array x = random(shape, dtype, layout, 1, 2);  // no zeros: an element that is 0 was dropped
          if (x.size() > 3) x.set(3, kInfinity);
          agree(text("dropout ", p, " ", shape), {Array(shape, dtype, layout), x}, 3e-7,
                [&](Device& d, const Views& v) {
                  d.dropout(v[0], v[1], {p, 0x123456789abcdefull, int64_t{7}});
                  d.dropout(v[1], v[1], {p, 5, int64_t{1} << 31});  // in place
                });
        }
      }
      agree(text("uniform ", shape), {Array(shape, dtype)}, 0,
            [](Device& d, const Views& v) { d.uniform(v[0], 0xfedcba9876543210ull); });
    }
  }
}

// ---- reductions

namespace {

std::vector<Shape> reduced_shapes(const Shape& shape) {  // each subset of the axes
  std::vector<Shape> all;
  for (int subset = 0; subset < 1 << shape.rank(); subset++) {
    Shape s = shape;
    for (int i = 0; i < shape.rank(); i++) s[i] = subset >> i & 1 ? 1 : s[i];
    all.push_back(s);
  }
  return all;
}

}  // namespace

TEST_CASE("kernels: reductions over any axes of any layout") {
  for (DType dtype : kFloats) {
    for (Reduction op : {Reduction::sum, Reduction::max, Reduction::min, Reduction::sum_squares}) {
      const DType of_y = op == Reduction::sum_squares ? DType::f64 : dtype;
      for (Layout layout : kInputLayouts) {
        for (const Shape& shape :
             {Shape{}, Shape{7}, Shape{4, 1, 5}, Shape{33, 3}, Shape{3, 5, 66}, Shape{2, 3, 4, 5}, Shape{3, 0}}) {
          for (const Shape& to : reduced_shapes(shape)) {
            agree(text("reduce ", static_cast<int>(op), " ", shape, " to ", to, " layout ", static_cast<int>(layout)),
                  {Array(to, of_y), random(shape, dtype, layout)}, 10 * tolerance(dtype),
                  [&](Device& d, const Views& v) { d.reduce(op, v[0], v[1]); });
          }
        }
      }
      const bool try_large = op == Reduction::sum || (op != Reduction::min && dtype == DType::f32);
      for (const Shape& shape : {Shape{200'000}, Shape{300, 300}, Shape{30'000, 3}, Shape{10, 100, 100}}) {
        if (!try_large) continue;
        for (const Shape& to : reduced_shapes(shape)) {
          agree(text("reduce ", static_cast<int>(op), " ", shape, " to ", to), {Array(to, of_y), random(shape, dtype)},
                10 * tolerance(dtype), [&](Device& d, const Views& v) { d.reduce(op, v[0], v[1]); });
        }
      }
      Array x = random({40, 50}, dtype);
      x.set(60, kNaN), x.set(205, kInfinity), x.set(310, -kInfinity);
      for (const Shape& to : reduced_shapes({40, 50})) {
        agree("NaN and infinities", {Array(to, of_y, Layout::reversed), x}, tolerance(dtype),
              [&](Device& d, const Views& v) { d.reduce(op, v[0], v[1]); });
      }
    }
  }
}

TEST_CASE("kernels: long f32 sums are accurate, and squares do not overflow") {
  Array tenths({1'000'000}, DType::f32), huge({1000}, DType::f32);
  tenths.fill([] { return 0.1; });
  huge.fill([] { return 1e30; });
  agree("0.1 a million times", {Array({1}, DType::f32), tenths}, 3e-7,
        [](Device& d, const Views& v) { d.reduce(Reduction::sum, v[0], v[1]); });
  agree("1e30 squared", {Array({1}, DType::f64), huge}, 1e-12,
        [](Device& d, const Views& v) { d.reduce(Reduction::sum_squares, v[0], v[1]); });
}

TEST_CASE("kernels: argmax takes the first of equals, and NaN before any number") {
  for (DType dtype : kFloats) {
    for (Layout layout : kInputLayouts) {
      for (const Shape& shape : {Shape{1}, Shape{33}, Shape{5, 7}, Shape{3, 4, 66}, Shape{1100, 3}, Shape{300, 200}}) {
        for (int axis = 0; axis < shape.rank(); axis++) {
          Random source(3);
          const Array x = Array(shape, dtype, layout).fill([&] {  // many ties, some NaN
            const double value = std::floor(source.uniform(0, 20));
            return value == 7 ? kNaN : value == 8 ? -kInfinity : value;
          });
          Shape to = shape;
          to[axis] = 1;
          agree(text("argmax ", shape, " axis ", axis), {Array(to, DType::i32), x}, 0,
                [](Device& d, const Views& v) { d.argmax(v[0], v[1]); });
        }
      }
    }
  }
  Array low({3, 5}, DType::f32);
  low.fill([] { return -kInfinity; });
  agree("all -inf", {Array({3, 1}, DType::i32), low}, 0, [](Device& d, const Views& v) { d.argmax(v[0], v[1]); });
}

// ---- along the last axis

TEST_CASE("kernels: softmax and log_softmax, and their derivatives") {
  for (DType dtype : kFloats) {
    for (Layout layout : kLayouts) {
      for (const Shape& shape : {Shape{1}, Shape{7}, Shape{4, 33}, Shape{2, 3, 66}, Shape{3, 2500}, Shape{0, 4},
                                 Shape{3, 0}, Shape{300, 257}}) {
        const Array x = random(shape, dtype, layout, -9, 9), dy = random(shape, dtype, layout, -1, 1, 2);
        agree(text("softmax ", shape, " layout ", static_cast<int>(layout)),
              {x, dy, Array(shape, dtype, layout), Array(shape, dtype, layout)}, tolerance(dtype),
              [](Device& d, const Views& v) {
                d.softmax(v[2], v[0]);
                d.softmax_grad(v[3], v[1], v[2]);
                d.softmax_grad(v[1], v[1], v[2]);  // in place
                d.softmax(v[0], v[0]);             // in place
              });
        agree(text("log_softmax ", shape, " layout ", static_cast<int>(layout)),
              {x, dy, Array(shape, dtype, layout), Array(shape, dtype, layout)}, tolerance(dtype),
              [](Device& d, const Views& v) {
                d.log_softmax(v[2], v[0]);
                d.log_softmax_grad(v[3], v[1], v[2]);
                d.log_softmax_grad(v[1], v[1], v[2]);  // in place
                d.log_softmax(v[0], v[0]);             // in place
              });
      }
    }
    Array x = random({6, 40}, dtype, Layout::contiguous, -9, 9);
    for (size_t i = 0; i < 40; i++)
      x.set(i, -kInfinity), x.set(40 + i, i == 3 ? 5 : -kInfinity), x.set(80 + i, i % 2 ? 1e4 : -1e4);
    x.set(125, kNaN), x.set(165, kInfinity), x.set(205, -kInfinity);
    agree("special rows", {x, Array({6, 40}, dtype), Array({6, 40}, dtype)}, tolerance(dtype),
          [](Device& d, const Views& v) {
            d.softmax(v[1], v[0]);
            d.log_softmax(v[2], v[0]);
          });
  }
}

TEST_CASE("kernels: layer norm and RMS norm, and their derivatives") {
  for (DType dtype : kFloats) {
    for (Layout layout : kLayouts) {
      for (const Shape& shape :
           {Shape{7}, Shape{5, 1}, Shape{4, 33}, Shape{2, 3, 66}, Shape{3, 1025}, Shape{0, 4}, Shape{700, 130}}) {
        if (layout != Layout::contiguous && shape.numel() > 10'000) continue;
        Shape statistic = shape;
        statistic[shape.rank() - 1] = 1;
        const Shape row = {shape.back()};
        const std::vector<Array> arrays = {random(shape, dtype, layout),
                                           random(shape, dtype, layout, -1, 1, 2),
                                           random(row, dtype),
                                           random(row, dtype, Layout::stepped),
                                           Array(shape, dtype, layout),
                                           Array(statistic, dtype),
                                           Array(statistic, dtype),
                                           Array(shape, dtype, layout),
                                           Array(row, dtype),
                                           Array(row, dtype)};
        // Sums over rows grow with their number; a row of one element has a variance of 0, so that rstd is large.
        const double tol = tolerance(dtype) * (shape.numel() > 10'000 ? 20 : 5);
        agree(text("layer norm ", shape, " layout ", static_cast<int>(layout)), arrays, tol,
              [](Device& d, const Views& v) {
                d.layer_norm(v[4], v[5], v[6], v[0], v[2], v[3], 1e-3);
                d.layer_norm_grad(v[7], v[8], v[9], v[1], v[0], v[2], v[5], v[6]);
              });
        agree(text("layer norm without weights ", shape), arrays, tol, [](Device& d, const Views& v) {
          d.layer_norm(v[4], v[5], v[6], v[0], View{}, View{}, 1e-3);
          d.layer_norm_grad(v[7], View{}, View{}, v[1], v[0], View{}, v[5], v[6]);
        });
        agree(text("layer norm, gradient of the weights alone ", shape), arrays, tol, [](Device& d, const Views& v) {
          d.layer_norm(v[4], v[5], v[6], v[0], v[2], View{}, 1e-3);
          d.layer_norm_grad(View{}, v[8], View{}, v[1], v[0], v[2], v[5], v[6]);
          d.layer_norm_grad(View{}, View{}, v[9], v[1], v[0], v[2], v[5], v[6]);
        });
        agree(text("RMS norm ", shape), arrays, tol, [](Device& d, const Views& v) {
          d.rms_norm(v[4], v[6], v[0], v[2], 1e-3);
          d.rms_norm_grad(v[7], v[8], v[1], v[0], v[2], v[6]);
        });
        agree(text("RMS norm without a weight ", shape), arrays, tol, [](Device& d, const Views& v) {
          d.rms_norm(v[4], v[6], v[0], View{}, 1e-3);
          d.rms_norm_grad(v[7], View{}, v[1], v[0], View{}, v[6]);
        });
      }
    }
  }
}

TEST_CASE("kernels: cross-entropy with every option") {
  for (DType dtype : kFloats) {
    for (Layout layout : {Layout::contiguous, Layout::transposed, Layout::stepped}) {
      for (const Shape& shape : {Shape{1, 1}, Shape{5, 7}, Shape{33, 1025}, Shape{300, 130}, Shape{0, 4}}) {
        for (int choice = 0; choice < 4; choice++) {
          const int64_t N = shape[0], C = shape[1];
          const bool weighted = choice & 1;
          const double smoothing = choice & 2 ? 0.1 : 0;
          Array target = random({N}, DType::i32, Layout::stepped, 0, static_cast<double>(C));
          if (N > 3) target.set(4, -100);  // row 1
          Array dloss = random({N}, dtype, Layout::stepped);
          for (int64_t row = 2; row < std::min<int64_t>(N, 4); row++)
            dloss.set(3 * row + 1, row == 2 ? kInfinity : kNaN);
          const std::vector<Array> arrays = {random(shape, dtype, layout, -9, 9),
                                             target,
                                             random({C}, dtype, Layout::stepped, 0, 2),
                                             dloss,
                                             Array({N}, dtype),
                                             Array({N}, dtype),
                                             Array({N}, dtype),
                                             Array(shape, dtype, layout)};
          agree(text("cross-entropy ", shape, " choice ", choice), arrays, 10 * tolerance(dtype),
                [&](Device& d, const Views& v) {
                  const CrossEntropyOptions options = {-100, smoothing, weighted ? v[2] : View{}};
                  d.cross_entropy(v[4], v[5], v[6], v[0], v[1], options);
                  d.cross_entropy_grad(v[7], v[3], v[6], v[0], v[1], options);
                });
        }
      }
    }
  }
}

// ---- by index

TEST_CASE("kernels: gather and scatter_add along any axis") {
  for (DType dtype : kDTypes) {
    for (Layout layout : kLayouts) {
      for (Layout of_index : kInputLayouts) {
        for (const Shape& shape : {Shape{9}, Shape{6, 5}, Shape{5, 6, 7}}) {
          for (int axis = 0; axis < shape.rank(); axis++) {
            Shape picked = shape;
            picked[axis] = 11;
            const Array index = random(picked, DType::i32, of_index, 0, static_cast<double>(shape[axis]));
            const auto gather = [&](Device& d, const Views& v) { d.gather(v[0], v[1], v[2], axis); };
            agree(text("gather ", shape, " axis ", axis),
                  {Array(picked, dtype), random(shape, dtype, layout, -9, 9), index}, 0, gather);
            if (!computes(dtype)) continue;
            const auto scatter = [&](Device& d, const Views& v) { d.scatter_add(v[0], v[1], v[2], axis); };
            agree(text("scatter_add ", shape, " axis ", axis),
                  {random(shape, dtype, layout), random(picked, dtype), index}, 0, scatter);
          }
        }
      }
    }
  }
}

TEST_CASE("kernels: embedding lookup and its gradient, in order of the index") {
  struct Sizes {
    int64_t N, V, D;
  };
  for (const Sizes& size : {Sizes{3000, 50, 96}, Sizes{3000, 50, 5}, Sizes{100'000, 7, 1}, Sizes{40, 900, 1000}}) {
    const int64_t N = size.N, V = size.V, D = size.D;
    Array index({N}, DType::i32);
    Random source(1);
    index.fill(
        [&] { return std::floor(static_cast<double>(V) * std::pow(source.uniform(), 3)); });  // low words are frequent
    const auto spread = [D](View v) { return View{v.data, {v.shape[0], D}, {1, 0}, v.dtype}; };
    agree(text("lookup ", N, " ", V, " ", D), {Array({N, D}, DType::f32), random({V, D}, DType::f32), index}, 0,
          [&](Device& d, const Views& v) { d.gather(v[0], v[1], spread(v[2]), 0); });
    // Not associative in f32: any other order would show.
    agree(text("gradient ", N, " ", V, " ", D),
          {random({V, D}, DType::f32), random({N, D}, DType::f32, Layout::padded, -1e4, 1e4), index}, 0,
          [&](Device& d, const Views& v) { d.scatter_add(v[0], v[1], spread(v[2]), 0); });
  }
}

TEST_CASE("kernels: unfold and fold") {
  for (DType dtype : kFloats) {
    for (const ConvOptions& o :
         {ConvOptions{}, ConvOptions{3, 3, 1, 1, 1, 1, 1, 1}, ConvOptions{2, 3, 2, 1, 1, 0, 1, 1},
          ConvOptions{3, 2, 2, 3, 3, 4, 2, 2}, ConvOptions{1, 1, 3, 2, 0, 0, 1, 1}}) {
      for (const Shape& shape : {Shape{1, 1, 7, 7}, Shape{2, 3, 9, 8}, Shape{0, 2, 7, 7}, Shape{4, 5, 40, 41}}) {
        const int64_t OH = (shape[2] + 2 * o.pad_h - o.dilation_h * (o.kernel_h - 1) - 1) / o.stride_h + 1;
        const int64_t OW = (shape[3] + 2 * o.pad_w - o.dilation_w * (o.kernel_w - 1) - 1) / o.stride_w + 1;
        const Shape columns = {shape[0], shape[1] * o.kernel_h * o.kernel_w, OH * OW};
        for (Layout layout : {Layout::contiguous, Layout::transposed, Layout::stepped}) {
          agree(text("unfold ", shape), {random(columns, dtype), random(shape, dtype, layout)}, 0,
                [&](Device& d, const Views& v) { d.unfold(v[0], v[1], o); });
          agree(text("fold ", shape), {random(shape, dtype, layout), random(columns, dtype)}, tolerance(dtype),
                [&](Device& d, const Views& v) { d.fold(v[0], v[1], o); });
        }
      }
    }
  }
}

// ---- optimizers

TEST_CASE("kernels: Adam and AdamW, dense and by rows") {
  for (DType dtype : kFloats) {
    for (bool decoupled : {false, true}) {
      for (const Shape& shape : {Shape{1}, Shape{33, 7}, Shape{0, 3}, Shape{300, 350}}) {
        const int64_t count = shape[0];
        Array rows({count}, DType::i32);  // every third row has a gradient
        for (int64_t r = 0; r < count; r++)
          rows.set(static_cast<size_t>(r), r % 3 ? -1 : static_cast<double>((count - 1 - r) / 3));
        const std::vector<Array> arrays = {random(shape, dtype), random(shape, dtype, Layout::contiguous, -1, 1, 2),
                                           random(shape, dtype, Layout::contiguous, 0, 1, 3),
                                           random(shape, dtype, Layout::contiguous, -1, 1, 4), rows,
                                           random({1}, dtype, Layout::contiguous, 0, 1, 5)};
        const auto steps = [&](Device& d, const View& p, const View& m, const View& v, const View& g,
                               const View& rows, const View& scale) {
          for (int64_t step = 1; step <= 3; step++)
            d.adam(p, m, v, g, rows, {0.1, 0.9, 0.999, 1e-8, 0.01, decoupled, step, scale});
        };
        agree(text("dense ", shape), arrays, tolerance(dtype),
              [&](Device& d, const Views& v) { steps(d, v[0], v[1], v[2], v[3], View{}, View{}); });
        agree(text("rows ", shape), arrays, tolerance(dtype),
              [&](Device& d, const Views& v) { steps(d, v[0], v[1], v[2], v[3], v[4], v[5]); });
        if (count < 2) continue;
        agree(text("dense, not at multiples of 16 bytes ", shape), arrays, tolerance(dtype), [&](Device& d, Views v) {
          for (int k = 0; k < 4; k++)
            v[k].shape = {count - 1}, v[k].strides = {1}, v[k].data = v[k].as<char>() + size_of(v[k].dtype);
          steps(d, v[0], v[1], v[2], v[3], View{}, v[5]);
        });
      }
    }
  }
}
