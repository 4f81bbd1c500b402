// Copies of the fast CPU device: fill, copy with conversion, where.
//
// Elements of the same dtype move as bits: contiguous lines by memcpy, transpositions in square tiles. Conversions and
// conditions pass through f64, which holds every dtype exactly: ten loops instead of one for each pair of dtypes.
#include <cstring>

#include "tensor/cpu.h"
#include "tensor/cpu_loops.h"

namespace heed {

namespace {

using cpu::kTile;
using cpu::Lines;

// An axis along which v has stride 1 and more than a few elements; -1 if there is none.
int unit_axis(const View& v) {
  for (int axis = 0; axis < v.rank(); axis++) {
    if (v.strides[axis] == 1 && v.shape[axis] >= 8) return axis;
  }
  return -1;
}

// y is contiguous along axis i and x along axis j. Whatever the order, one of the two jumps; in square tiles the cache
// lines that it touches are all used before they are dropped.
template <class T>
void copy_transposed(const View& y, const View& x, int i, int j) {
  constexpr int64_t tile = 32;
  const int64_t I = y.shape[i], J = y.shape[j], bands = (J + tile - 1) / tile;
  View y_planes = y, x_planes = x;
  y_planes.shape[i] = y_planes.shape[j] = x_planes.shape[i] = x_planes.shape[j] = 1;
  const Lines<2> planes({&y_planes, &x_planes});
  const int64_t y_step = y.strides[j], x_step = x.strides[i];

  const auto copy_band = [&](T* to, const T* from, int64_t first) {
    const int64_t last = std::min(J, first + tile);
    for (int64_t i0 = 0; i0 < I; i0 += tile) {
      const int64_t i1 = std::min(I, i0 + tile);
      for (int64_t b = first; b < last; b++) {
        for (int64_t a = i0; a < i1; a++) to[b * y_step + a] = from[a * x_step + b];
      }
    }
  };
  cpu::parallel_for(planes.numel() * bands, I * std::min(J, tile), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++) {
      planes.each(n / bands, n / bands + 1,
                  [&](const auto& at, int64_t) { copy_band(y.as<T>() + at[0], x.as<T>() + at[1], n % bands * tile); });
    }
  });
}

template <class T>
void copy_bits(const View& y, const View& x) {
  const int i = unit_axis(y), j = unit_axis(x);
  if (i >= 0 && j >= 0 && y.strides[j] != 1 && x.strides[i] != 1) return copy_transposed<T>(y, x, i, j);
  const Lines<2> lines({&y, &x});
  lines.parallel([&, step = lines.step()](const auto& at, int64_t n) {
    T* to = y.as<T>() + at[0];
    const T* from = x.as<T>() + at[1];
    if (step[0] == 1 && step[1] == 1) {
      std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
    } else if (step[0] == 1 && step[1] == 0) {
      std::fill_n(to, n, *from);
    } else {
      for (int64_t k = 0; k < n; k++) to[k * step[0]] = from[k * step[1]];
    }
  });
}

// ---- any dtype to and from f64

template <class T>
void load_line(double* to, const void* data, int64_t at, int64_t step, int64_t n) {
  const T* from = static_cast<const T*>(data) + at;
  if (step == 1) {
    for (int64_t i = 0; i < n; i++) to[i] = convert<double>(from[i]);
  } else {
    for (int64_t i = 0; i < n; i++) to[i] = convert<double>(from[i * step]);
  }
}

template <class T>
void store_line(void* data, int64_t at, int64_t step, int64_t n, const double* from) {
  T* to = static_cast<T*>(data) + at;
  if (step == 1) {
    for (int64_t i = 0; i < n; i++) to[i] = convert<T>(from[i]);
  } else {
    for (int64_t i = 0; i < n; i++) to[i * step] = convert<T>(from[i]);
  }
}

using LoadLine = void (*)(double* to, const void* data, int64_t at, int64_t step, int64_t n);
using StoreLine = void (*)(void* data, int64_t at, int64_t step, int64_t n, const double* from);

LoadLine load_line_of(DType dtype) {
  LoadLine load = nullptr;
  with_any(dtype, [&](auto t) { load = load_line<decltype(t)>; });
  return load;
}

StoreLine store_line_of(DType dtype) {
  StoreLine store = nullptr;
  with_any(dtype, [&](auto t) { store = store_line<decltype(t)>; });
  return store;
}

void copy_converted(const View& y, const View& x) {
  const LoadLine load = load_line_of(x.dtype);
  const StoreLine store = store_line_of(y.dtype);
  const Lines<2> lines({&y, &x});
  lines.parallel([&, step = lines.step()](const auto& at, int64_t n) {
    double buffer[kTile];
    for (int64_t i = 0; i < n; i += kTile) {
      const int64_t count = std::min(kTile, n - i);
      load(buffer, x.data, at[1] + i * step[1], step[1], count);
      store(y.data, at[0] + i * step[0], step[0], count, buffer);
    }
  });
}

template <class T>
void select(const View& y, const View& condition, const View& a, const View& b) {
  const LoadLine load = load_line_of(condition.dtype);
  const Lines<4> lines({&y, &condition, &a, &b});
  lines.parallel([&, step = lines.step()](const auto& at, int64_t n) {
    double choice[kTile];
    T buffer[3][kTile];
    for (int64_t i = 0; i < n; i += kTile) {
      const int64_t count = std::min(kTile, n - i);
      load(choice, condition.data, at[1] + i * step[1], step[1], count);
      const T* if_true = cpu::pack(a.as<T>() + at[2] + i * step[2], step[2], count, buffer[0]);
      const T* if_false = cpu::pack(b.as<T>() + at[3] + i * step[3], step[3], count, buffer[1]);
      T *to = y.as<T>() + at[0] + i * step[0], *out = step[0] == 1 ? to : buffer[2];
#pragma omp simd  // y may be a or b itself
      for (int64_t k = 0; k < count; k++) out[k] = choice[k] != 0 ? if_true[k] : if_false[k];
      if (step[0] != 1) cpu::unpack(to, step[0], count, out);
    }
  });
}

}  // namespace

// ---- the kernels

void Cpu::fill(View y, double value) {
  const Lines<1> lines({&y});
  with_any(y.dtype, [&](auto t) {
    using T = decltype(t);
    lines.parallel([&, step = lines.step()[0], element = convert<T>(value)](const auto& at, int64_t n) {
      T* to = y.as<T>() + at[0];
      if (step == 1) {
        std::fill_n(to, n, element);
      } else {
        for (int64_t i = 0; i < n; i++) to[i * step] = element;
      }
    });
  });
}

void Cpu::copy(View y, View x) {
  if (y.dtype != x.dtype) return copy_converted(y, x);
  with_bits(y.dtype, [&](auto t) { copy_bits<decltype(t)>(y, x); });
}

void Cpu::where(View y, View condition, View a, View b) {
  with_bits(y.dtype, [&](auto t) { select<decltype(t)>(y, condition, a, b); });
}

}  // namespace heed
