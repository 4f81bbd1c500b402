// Elementwise kernels of the fast CPU device.
//
// Each formula is compiled into one loop over contiguous elements, which becomes vector instructions. Strided and
// repeated operands are brought into that form in tiles that stay in the first-level cache; transpositions are copied
// in square tiles.
#include <cstring>

#include "tensor/cpu.h"
#include "tensor/cpu_loops.h"
#include "tensor/cpu_math.h"
#include "tensor/products.h"

namespace heed {

namespace {

using cpu::FastMath;
using cpu::kTile;
using cpu::Lines;

// ---- y = f(x[0], ..., x[N - 1]), given line(y, x, n) for contiguous elements

// Is x contiguous along another axis than y, as a transposed operand is? Line by line each element would then fetch a
// cache line of its own.
bool lies_across(const View& y, const View& x) {
  if (x.numel() < cpu::kSerial || !y.contiguous()) return false;
  for (int axis = 0; axis < x.rank() - 1; axis++) {
    if (x.strides[axis] == 1 && x.shape[axis] >= 8 && x.strides[x.rank() - 1] > 1) return true;
  }
  return false;
}

template <class T, int N, class Line>
void map(Cpu& cpu, const View& y, std::array<const View*, N> x, const Line& line) {
  for (const View*& operand : x) {
    if (!lies_across(y, *operand)) continue;
    const ScratchCopy copy(cpu, *operand);
    copy.load(cpu);  // in square tiles
    const View near = copy.view();
    operand = &near;
    return map<T, N>(cpu, y, x, line);
  }

  std::array<const View*, N + 1> all = {&y};
  std::copy(x.begin(), x.end(), all.begin() + 1);
  const Lines<N + 1> lines(all);
  const auto& step = lines.step();
  const bool unit_steps = lines.unit_steps();

  lines.parallel([&](const auto& at, int64_t n) {
    const T* in[N];
    T* out = y.as<T>() + at[0];
    for (size_t k = 0; k < N; k++) in[k] = x[k]->template as<T>() + at[k + 1];
    if (unit_steps) return line(out, in, n);

    T buffer[N + 1][kTile];
    for (int64_t i = 0; i < n; i += kTile) {
      const int64_t count = std::min(kTile, n - i);
      const T* tile[N];
      for (size_t k = 0; k < N; k++) {
        const bool repeats = step[k + 1] == 0 && i > 0;  // the buffer still holds it
        tile[k] = repeats ? buffer[k] : cpu::pack(in[k] + i * step[k + 1], step[k + 1], count, buffer[k]);
      }
      if (step[0] == 1) {
        line(out + i, tile, count);
      } else {
        line(buffer[N], tile, count);
        cpu::unpack(out + i * step[0], step[0], count, buffer[N]);
      }
    }
  });
}

// The loops of the formulas. "omp simd": y may be x itself, which the compiler must not take for a dependence between
// different elements.

template <class Formula, class T>
void unary_line(T* y, const T* const* x, int64_t n, T p, T q) {
  const T* x0 = x[0];
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = Formula::template f<FastMath>(x0[i], p, q);
}

template <class Formula, class T>
void unary_grad_line(T* dx, const T* const* dy_x_y, int64_t n, T p, T q) {
  const T *dy = dy_x_y[0], *x = dy_x_y[1], *y = dy_x_y[2];
#pragma omp simd
  for (int64_t i = 0; i < n; i++) dx[i] = dy[i] * Formula::template df<FastMath>(x[i], y[i], p, q);
}

template <class Formula, class T>
void binary_line(T* y, const T* const* a_b, int64_t n) {
  const T *a = a_b[0], *b = a_b[1];
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = Formula::template f<FastMath>(a[i], b[i]);
}

struct Square {  // the powers that are asked for most
  template <class M, class T>
  static T f(T x, T, T) {
    return x * x;
  }
  template <class M, class T>
  static T df(T x, T, T, T) {
    return x + x;
  }
};
struct Cube {
  template <class M, class T>
  static T f(T x, T, T) {
    return x * x * x;
  }
  template <class M, class T>
  static T df(T x, T, T, T) {
    return T(3) * x * x;
  }
};

template <class Fn>
void with_fast_formula(Unary op, double p, const Fn& fn) {
  if (op == Unary::pow && p == 2) return fn(Square{});
  if (op == Unary::pow && p == 3) return fn(Cube{});
  with_formula(op, fn);
}

}  // namespace

void Cpu::unary(Unary op, View y, View x, double p, double q) {
  with_floats(y.dtype, [&](auto t) {
    using T = decltype(t);
    void (*line)(T*, const T* const*, int64_t, T, T) = nullptr;
    with_fast_formula(op, p, [&](auto formula) { line = unary_line<decltype(formula), T>; });
    map<T, 1>(*this, y, {&x},
              [=](T* to, const T* const* from, int64_t n) { line(to, from, n, static_cast<T>(p), static_cast<T>(q)); });
  });
}

void Cpu::unary_grad(Unary op, View dx, View dy, View x, View y, double p, double q) {
  const View *x_or_any = x ? &x : &dy, *y_or_any = y ? &y : &dy;  // an absent operand is not read, only walked along
  with_floats(dx.dtype, [&](auto t) {
    using T = decltype(t);
    void (*line)(T*, const T* const*, int64_t, T, T) = nullptr;
    with_fast_formula(op, p, [&](auto formula) { line = unary_grad_line<decltype(formula), T>; });
    map<T, 3>(*this, dx, {&dy, x_or_any, y_or_any},
              [=](T* to, const T* const* from, int64_t n) { line(to, from, n, static_cast<T>(p), static_cast<T>(q)); });
  });
}

void Cpu::binary(Binary op, View y, View a, View b) {
  with_floats(y.dtype, [&](auto t) {
    using T = decltype(t);
    void (*line)(T*, const T* const*, int64_t) = nullptr;
    with_formula(op, [&](auto formula) { line = binary_line<decltype(formula), T>; });
    map<T, 2>(*this, y, {&a, &b}, line);
  });
}

}  // namespace heed
