// Kernels by index on the fast CPU device: gather and scatter_add (embedding lookup and its gradient).
//
// An index that repeats along the trailing axes moves whole rows: one memcpy, or one vectorised addition. scatter_add
// shares its outputs among threads, never its inputs: each output is summed by one thread in order, without atomics.
#include <omp.h>

#include <cstring>

#include "tensor/cpu.h"
#include "tensor/cpu_loops.h"

namespace heed {

namespace {

using cpu::Lines;

// v with the shape of the index, standing still along `axis`: where the index points is added to it.
View start_of(View v, const View& index, int axis) {
  v.shape = index.shape;
  v.strides[axis] = 0;
  return v;
}

// ---- gather

template <class T>
void gather_bits(const View& y, const View& x, const View& index, int axis) {
  const View start = start_of(x, index, axis);
  const Lines<3> lines({&y, &start, &index});
  const int64_t jump = x.strides[axis];
  lines.parallel([&, step = lines.step()](const auto& at, int64_t n) {
    T* to = y.as<T>() + at[0];
    const T* from = x.as<T>() + at[1];
    const int32_t* where = index.as<int32_t>() + at[2];
    if (step[2] != 0) {
      for (int64_t i = 0; i < n; i++) to[i * step[0]] = from[i * step[1] + where[i * step[2]] * jump];
      return;
    }
    from += *where * jump;
    if (step[0] == 1 && step[1] == 1) {
      std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
    } else {
      for (int64_t i = 0; i < n; i++) to[i * step[0]] = from[i * step[1]];
    }
  });
}

// ---- scatter_add

// Adds all of x, as far as its index lies in [low, high).
template <class T>
void scatter_range(const View& y, const View& x, const View& index, int axis, int64_t low, int64_t high) {
  const View start = start_of(y, index, axis);
  const Lines<3> lines({&x, &start, &index});
  const auto step = lines.step();
  const int64_t jump = y.strides[axis];
  lines.each(0, lines.numel(), [&](const auto& at, int64_t n) {
    const T* from = x.as<T>() + at[0];
    T* to = y.as<T>() + at[1];
    const int32_t* where = index.as<int32_t>() + at[2];
    if (step[2] != 0) {
      for (int64_t i = 0; i < n; i++) {
        const int64_t j = where[i * step[2]];
        if (j >= low && j < high) to[i * step[1] + j * jump] += from[i * step[0]];
      }
      return;
    }
    if (*where < low || *where >= high) return;
    to += *where * jump;
    if (step[0] == 1 && step[1] == 1) {
#pragma omp simd  // x and y do not overlap
      for (int64_t i = 0; i < n; i++) to[i] += from[i];
    } else {
      for (int64_t i = 0; i < n; i++) to[i * step[1]] += from[i * step[0]];
    }
  });
}

// The elements [begin, end) of v along an axis.
View cut(View v, int axis, int64_t begin, int64_t end) {
  v.data = v.as<char>() + begin * v.strides[axis] * static_cast<int64_t>(size_of(v.dtype));
  v.shape[axis] = end - begin;
  return v;
}

// The longest axis other than `axis`; -1 if there is none.
int longest_other_axis(const Shape& shape, int axis) {
  int longest = -1;
  for (int i = 0; i < shape.rank(); i++) {
    if (i != axis && (longest < 0 || shape[i] > shape[longest])) longest = i;
  }
  return longest;
}

template <class T>
void scatter_add_shared(const View& y, const View& x, const View& index, int axis) {
  constexpr int64_t line = 64 / sizeof(T);  // threads should not write to one cache line
  const int64_t threads = x.numel() < cpu::kSerial ? 1 : omp_get_max_threads();
  const int other = longest_other_axis(x.shape, axis);
  const bool by_columns = other >= 0 && x.shape[other] >= threads * line;  // even work, whatever the index
  const int64_t size = by_columns ? x.shape[other] : y.shape[axis];
  const int64_t share = (size + threads * line - 1) / (threads * line) * line;
  cpu::parallel_for(threads, x.numel() / threads, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
      const int64_t begin = std::min(size, i * share), end = std::min(size, begin + share);
      if (!by_columns) {
        scatter_range<T>(y, x, index, axis, begin, end);
      } else if (begin < end) {
        scatter_range<T>(cut(y, other, begin, end), cut(x, other, begin, end), cut(index, other, begin, end), axis, 0,
                         y.shape[axis]);
      }
    }
  });
}

}  // namespace

void Cpu::gather(View y, View x, View index, int axis) {
  with_bits(y.dtype, [&](auto bits) { gather_bits<decltype(bits)>(y, x, index, axis); });
}

void Cpu::scatter_add(View y, View x, View index, int axis) {
  with_floats(y.dtype, [&](auto t) { scatter_add_shared<decltype(t)>(y, x, index, axis); });
}

}  // namespace heed
