// max + log sum_i exp(x_i - max) in one pass (Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018).
#pragma once
#include <cmath>

#include "cuda/rows.h"

namespace heed::HEED_GPU {

// Of the elements seen so far: the largest, and sum exp(x - max). NaN or +inf among them makes the sum NaN.
template <class T>
struct ExpSum {
  T max = T(-INFINITY), sum = 0;
};

template <class T>
__device__ ExpSum<T> shuffle_xor(ExpSum<T> s, int distance) {
  return {__shfl_xor_sync(kAllLanes, s.max, distance), __shfl_xor_sync(kAllLanes, s.sum, distance)};
}

// When the largest grows from m to m', sum exp(x - m) must be scaled by exp(m - m').
struct CombineExpSums {
  template <class T>
  __device__ ExpSum<T> operator()(ExpSum<T> a, ExpSum<T> b) const {
    const T max = a.max > b.max ? a.max : b.max;
    const T shift = max == T(-INFINITY) ? T(0) : max;  // only -inf so far: exp(-inf - 0) = 0
    return {max, a.sum * std::exp(a.max - shift) + b.sum * std::exp(b.max - shift)};
  }
};

// Of a whole row, known to every thread of its team.
template <int kThreads, class T>
__device__ ExpSum<T> exp_sum_of_row(Row<const T> x, int64_t length) {
  ExpSum<T> s;
  for (int64_t i = this_member<kThreads>(); i < length; i += kThreads) s = CombineExpSums()(s, ExpSum<T>{x[i], T(1)});
  return team_reduce<kThreads>(s, CombineExpSums());
}

}  // namespace heed::HEED_GPU
