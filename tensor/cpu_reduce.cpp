// Reductions of the fast CPU device: sum, max, min, sum of squares.
//
// x is walked as it lies in memory: if its contiguous axis is reduced, each line becomes one number; if it is kept,
// whole lines are added to a line of totals. At most 1024 terms are combined in the dtype of x, then in f64: so f32
// stays accurate.
#include "tensor/cpu.h"
#include "tensor/cpu_rows.h"
#include "tensor/scratch.h"
#include "tensor/cpu_split.h"

namespace heed {

namespace {

using cpu::kTile;
using cpu::Lines;
using cpu::Split;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// ---- what is computed: `add` takes one element into a partial result, `block` combines n contiguous ones, `merge` two
// results

struct Sum {
  static constexpr double start = 0;
  template <class T>
  static T add(T total, T x) {
    return total + x;
  }
  template <class T>
  static double block(const T* x, int64_t n) {
    return cpu::sum_of<T>(n, [=](int64_t i) { return x[i]; });
  }
  static double merge(double a, double b) { return a + b; }
};

struct SumSquares {
  static constexpr double start = 0;
  static double add(double total, double x) { return total + x * x; }
  template <class T>
  static double block(const T* x, int64_t n) {
    return cpu::sum_of<double>(n, [=](int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(x[i]); });
  }
  static double merge(double a, double b) { return a + b; }
};

template <class T>
double nan_or(T otherwise, const T* x, int64_t n) {  // NaN if one is among x
  return cpu::any_nan(x, n) ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(otherwise);
}

struct Max {
  static constexpr double start = -kInfinity;
  template <class T>
  static T add(T total, T x) {
    return formula::Maximum::f<ExactMath>(x, total);
  }
  template <class T>
  static double block(const T* x, int64_t n) {
    return nan_or(cpu::max_of(x, n), x, n);
  }
  static double merge(double a, double b) { return add(a, b); }
};

struct Min {
  static constexpr double start = kInfinity;
  template <class T>
  static T add(T total, T x) {
    return formula::Minimum::f<ExactMath>(x, total);
  }
  template <class T>
  static double block(const T* x, int64_t n) {
    T min = std::numeric_limits<T>::infinity();
#pragma omp simd reduction(min : min)
    for (int64_t i = 0; i < n; i++) min = x[i] < min ? x[i] : min;
    return nan_or(min, x, n);
  }
  static double merge(double a, double b) { return add(a, b); }
};

// ---- the two loops, for each reduction and dtype

// The result of n elements x[0], x[step], ...
template <class Op, class T>
double reduce_line(const void* data, int64_t at, int64_t step, int64_t n) {
  constexpr int64_t block = 1024;
  const T* x = static_cast<const T*>(data) + at;
  T buffer[block];
  double total = Op::start;
  for (int64_t i = 0; i < n; i += block) {
    const int64_t count = std::min(block, n - i);
    total = Op::merge(total, Op::block(cpu::pack(x + i * step, step, count, buffer), count));
  }
  return total;
}

// total[k] = the result of total[k] and x[k step], for each of n lines of x that are line_step apart; width <= kTile.
template <class Op, class T>
void reduce_lines(double* total, int64_t width, const void* data, int64_t at, int64_t step, int64_t line_step,
                  int64_t n) {
  constexpr int64_t block = 128;  // lines: fewer than the terms of a block above, which the lanes of a register share
  using Partial = decltype(Op::add(T(0), T(0)));
  Partial partial[kTile];
  for (int64_t begin = 0; begin < n; begin += block) {
    std::fill_n(partial, width, static_cast<Partial>(Op::start));
    for (int64_t i = begin; i < std::min(n, begin + block); i++) {
      const T* x = static_cast<const T*>(data) + at + i * line_step;
      if (step == 1) {
        for (int64_t k = 0; k < width; k++) partial[k] = Op::add(partial[k], static_cast<Partial>(x[k]));
      } else {
        for (int64_t k = 0; k < width; k++) partial[k] = Op::add(partial[k], static_cast<Partial>(x[k * step]));
      }
    }
    for (int64_t k = 0; k < width; k++) total[k] = Op::merge(total[k], static_cast<double>(partial[k]));
  }
}

struct Loops {
  double start;
  double (*merge)(double a, double b);
  double (*line)(const void* x, int64_t at, int64_t step, int64_t n);
  void (*lines)(double* total, int64_t width, const void* x, int64_t at, int64_t step, int64_t line_step, int64_t n);
};

template <class Op>
Loops loops_for(DType dtype) {
  if (dtype == DType::f64) return {Op::start, Op::merge, reduce_line<Op, double>, reduce_lines<Op, double>};
  return {Op::start, Op::merge, reduce_line<Op, float>, reduce_lines<Op, float>};
}

Loops loops_of(Reduction op, DType dtype) {
  switch (op) {
    case Reduction::sum:
      return loops_for<Sum>(dtype);
    case Reduction::max:
      return loops_for<Max>(dtype);
    case Reduction::min:
      return loops_for<Min>(dtype);
    default:
      return loops_for<SumSquares>(dtype);
  }
}

// ---- walking over x; y may be any float

void store(const View& y, int64_t at, double value) {
  if (y.dtype == DType::f64) {
    y.as<double>()[at] = value;
  } else {
    y.as<float>()[at] = static_cast<float>(value);
  }
}

// The outputs [k0, k1), at most kTile unless s.along, over the terms [r0, r1); those before y_offset belong to others.
void reduce_range(const Loops& loops, const Split& s, const View& y, int64_t y_offset, const View& x, int64_t k0,
                  int64_t k1, int64_t r0, int64_t r1) {
  const auto [x_step, y_step] = s.kept.step();
  const int64_t term_step = s.reduced.step()[0];
  s.kept.each(k0, k1, [&, x_step = x_step, y_step = y_step](const auto& k, int64_t width) {
    double total[kTile];
    if (!s.along) {
      std::fill_n(total, width, loops.start);
      s.reduced.each(r0, r1, [&](const auto& r, int64_t n) {
        loops.lines(total, width, x.data, k[0] + r[0], x_step, term_step, n);
      });
      for (int64_t i = 0; i < width; i++) store(y, y_offset + k[1] + i * y_step, total[i]);
      return;
    }
    for (int64_t i = 0; i < width; i++) {
      const int64_t from = k[0] + i * x_step;
      double result = loops.start;
      if (s.reduced.is_one_line()) {
        result = loops.line(x.data, from + r0 * term_step, term_step, r1 - r0);
      } else {
        s.reduced.each(r0, r1, [&](const auto& r, int64_t n) {
          result = loops.merge(result, loops.line(x.data, from + r[0], term_step, n));
        });
      }
      store(y, y_offset + k[1] + i * y_step, result);
    }
  });
}

// How many outputs make a piece of work, if each has so many terms.
int64_t piece_of(const Split& s, int64_t terms) {
  return s.along ? std::max<int64_t>(1, cpu::kPiece / std::max<int64_t>(1, terms)) : kTile;
}

// The terms are cut into `parts`, of which part p gives its results to the elements of y from p * outputs on.
void reduce_parts(const Loops& loops, const Split& s, const View& y, const View& x, int64_t parts) {
  const int64_t outputs = s.kept.numel(), terms = s.reduced.numel(), part = (terms + parts - 1) / parts;
  const int64_t width = piece_of(s, part), pieces = (outputs + width - 1) / width;
  cpu::parallel_for(parts * pieces, std::min(width, outputs) * part, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t p = i / pieces, k0 = i % pieces * width, r0 = std::min(terms, p * part);
      reduce_range(loops, s, y, p * outputs, x, k0, std::min(outputs, k0 + width), r0, std::min(terms, r0 + part));
    }
  });
}

}  // namespace

void Cpu::reduce(Reduction op, View y, View x) {
  const Loops loops = loops_of(op, x.dtype);
  const Split s(y, x);
  // Few outputs of many terms: the terms are shared among threads too. How, depends on the shapes alone.
  const int64_t outputs = y.numel(), pieces = outputs / piece_of(s, s.reduced.numel()) + 1;
  const int64_t parts = std::max<int64_t>(1, std::min(64 / pieces, x.numel() / cpu::kSerial));
  if (parts == 1) return reduce_parts(loops, s, y, x, 1);

  const Scratch scratch(memory(), static_cast<size_t>(parts * outputs) * sizeof(double));
  const View partial = {scratch.as<double>(), y.shape, contiguous_strides(y.shape), DType::f64};
  reduce_parts(loops, Split(partial, x), partial, x, parts);
  const Lines<2> lines({&y, &partial});
  lines.each(0, outputs, [&, step = lines.step()](const auto& at, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
      const double* from = partial.as<double>() + at[1] + k * step[1];
      double total = loops.start;
      for (int64_t p = 0; p < parts; p++) total = loops.merge(total, from[p * outputs]);
      store(y, at[0] + k * step[0], total);
    }
  });
}

}  // namespace heed
