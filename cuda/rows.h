// The rows of N operands that have the same shape: all axes but the last number them.
#pragma once
#include "cuda/team.h"
#include "cuda/walk.h"
#include "tensor/view.h"

namespace heed::HEED_GPU {

template <int N>
struct Rows {
  Walk<N> walk;
  int64_t length;   // of a row
  int64_t step[N];  // from one element of a row to the next
};

template <int N>
Rows<N> rows_of(const Shape& shape, const Strides (&strides)[N]) {
  const int last = shape.rank() - 1;
  Rows<N> rows = {walk_axes(shape, 0, last, strides), shape[last], {}};
  for (int n = 0; n < N; n++) rows.step[n] = strides[n][last];
  return rows;
}

// A row as an array.
template <class T>
struct Row {
  T* first;
  int64_t step;
  __device__ T& operator[](int64_t i) const { return first[i * step]; }
};

// Rows up to this length are work for a warp, longer ones for a block.
constexpr int64_t kLongestWarpRow = 1024;

// Calls fn(std::integral_constant<int, n>{}) with the number of threads for a row.
template <class Fn>
void with_team(int64_t length, const Fn& fn) {
  if (length <= kLongestWarpRow) {
    fn(std::integral_constant<int, kWarp>{});
  } else {
    fn(std::integral_constant<int, kBlock>{});
  }
}

// Two sums that a team finds together.
template <class T>
struct Two {
  T a, b;
};
template <class T>
__device__ Two<T> shuffle_xor(Two<T> value, int distance) {
  return {__shfl_xor_sync(kAllLanes, value.a, distance), __shfl_xor_sync(kAllLanes, value.b, distance)};
}
template <class T>
struct Add {
  __device__ T operator()(T a, T b) const { return a + b; }
  __device__ Two<T> operator()(Two<T> a, Two<T> b) const { return {a.a + b.a, a.b + b.b}; }
};

}  // namespace heed::HEED_GPU
