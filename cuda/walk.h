// How kernels walk over the elements of views: one thread for each element, with as few axes as possible.
#pragma once
#include "cuda/gpu.h"
#include "tensor/view.h"

namespace heed::HEED_GPU {

// 64-bit division takes a GPU some 100 instructions, 32-bit division 20; most sizes fit into 32 bits.
__device__ inline int64_t divide(int64_t a, int64_t b, int64_t& remainder) {
  if (((a | b) >> 32) == 0) {
    const uint32_t quotient = static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
    remainder = static_cast<uint32_t>(a) - quotient * static_cast<uint32_t>(b);
    return quotient;
  }
  remainder = a % b;
  return a / b;
}

// A shape that N operands share, with the strides of each. Neighbouring axes that all operands step through as one are
// merged: contiguous operands have one axis, whatever their rank.
template <int N>
struct Walk {
  int rank = 0;
  int64_t count = 1;               // elements
  int64_t size[kMaxRank] = {};     // of each axis, the outermost first
  int64_t step[N][kMaxRank] = {};  // strides of each operand

  // Where the element with this row-major index lies in each operand.
  struct Offsets {
    int64_t of[N];
  };
  __device__ Offsets at(int64_t index) const {
    Offsets offsets = {};
    for (int axis = rank - 1; axis >= 0; axis--) {
      int64_t coordinate = index;
      if (axis > 0) index = divide(index, size[axis], coordinate);
      for (int n = 0; n < N; n++) offsets.of[n] += coordinate * step[n][axis];
    }
    return offsets;
  }

  // Host: appends an inner axis.
  void add_axis(int64_t length, const int64_t (&steps)[N]) {
    count *= length;
    if (length == 1) return;
    bool merges = rank > 0;
    for (int n = 0; n < N; n++) merges = merges && step[n][rank - 1] == length * steps[n];
    if (merges) {
      size[rank - 1] *= length;
    } else {
      size[rank++] = length;
    }
    for (int n = 0; n < N; n++) step[n][rank - 1] = steps[n];
  }
};

// The walk over axes `first` to `last` - 1 of `shape`.
template <int N>
Walk<N> walk_axes(const Shape& shape, int first, int last, const Strides (&strides)[N]) {
  Walk<N> walk;
  for (int axis = first; axis < last; axis++) {
    int64_t steps[N];
    for (int n = 0; n < N; n++) steps[n] = strides[n][axis];
    walk.add_axis(shape[axis], steps);
  }
  return walk;
}

template <int N>
Walk<N> walk_all(const Shape& shape, const Strides (&strides)[N]) {
  return walk_axes(shape, 0, shape.rank(), strides);
}

}  // namespace heed::HEED_GPU
