// Rows along the last axis, and sums over a row: what softmax, norms and dropout share.
#pragma once
#include <cmath>
#include <limits>
#include <type_traits>

#include "tensor/cpu_loops.h"
#include "tensor/device.h"

namespace heed::cpu {

// The rows of a view (..., C); a row's elements lie side by side. If those of the view do not, then a contiguous copy
// stands in for it: filled at the start for LastAxisRows<const T>, which are read, and written back at the end for
// LastAxisRows<T>.
template <class T>
class LastAxisRows {
 public:
  LastAxisRows(Device& device, const View& view) : device_(device), view_(view), rows_(view) {
    const int last = view.rank() - 1;
    if (last >= 0 && view.strides[last] != 1 && view.shape[last] != 1) {
      rows_.strides = contiguous_strides(view.shape);
      rows_.data = device.memory().take(bytes());
      if (std::is_const_v<T>) device.copy(rows_, view);
    }
    set_row_step();
  }
  ~LastAxisRows() {
    if (rows_.data == view_.data) return;
    if (!std::is_const_v<T>) device_.copy(view_, rows_);
    device_.memory().give(rows_.data, bytes());
  }
  LastAxisRows(const LastAxisRows&) = delete;
  LastAxisRows& operator=(const LastAxisRows&) = delete;

  int64_t length() const { return rows_.rank() == 0 ? 1 : rows_.shape.back(); }
  int64_t count() const { return lead_.numel(); }
  T* operator[](int64_t row) const {
    return static_cast<T*>(rows_.data) + (row_step_ >= 0 ? row * row_step_ : offset_of(lead_, row));
  }

 private:
  size_t bytes() const { return static_cast<size_t>(view_.numel()) * size_of(view_.dtype); }

  // One step from row to row if the axes before the last can be merged, -1 if not.
  void set_row_step() {
    lead_ = rows_;
    if (lead_.rank() > 0) {
      lead_.shape.erase(lead_.rank() - 1);
      lead_.strides.erase(lead_.rank());
    }
    int64_t size = 1;  // of the axes merged so far
    for (int i = lead_.rank() - 1; i >= 0 && row_step_ >= 0; i--) {
      if (lead_.shape[i] == 1) continue;
      if (size == 1) row_step_ = lead_.strides[i];
      if (lead_.strides[i] != row_step_ * size) row_step_ = -1;
      size *= lead_.shape[i];
    }
  }

  Device& device_;
  View view_, rows_, lead_;
  int64_t row_step_ = 0;
};

constexpr int64_t kLanes = 64;  // partial results side by side: a few vector registers, whatever their width

// The sum of x[0 .. n), n a power of two, added in pairs: one order for vector registers of any width. x is used up.
template <int64_t n, class T>
T add_pairs(T* x) {
  if constexpr (n == 1) return x[0];
#pragma omp simd
  for (int64_t k = 0; k < n / 2; k++) x[k] += x[k + n / 2];
  return add_pairs<(n + 1) / 2>(x);
}

// The sum of f(i) over 0 <= i < n. Each lane sums at most 16 terms, the lanes are added in pairs, and these sums in
// f64: the error does not grow with n.
template <class T, class F>
double sum_of(int64_t n, const F& f) {
  double total = 0;
  for (int64_t i = 0; i < n;) {
    const int64_t end = std::min(n, i + 16 * kLanes);
    T lane[kLanes] = {};
    for (; i + kLanes <= end; i += kLanes) {
#pragma omp simd  // f may write to elements that it reads, for its i alone
      for (int64_t k = 0; k < kLanes; k++) lane[k] += f(i + k);
    }
#pragma omp simd
    for (int64_t k = 0; k < end - i; k++) lane[k] += f(i + k);
    i = end;
    total += static_cast<double>(add_pairs<kLanes>(lane));
  }
  return total;
}

// The largest x; NaN counts as nothing. -inf for n = 0.
template <class T>
T max_of(const T* x, int64_t n) {
  T lane[kLanes], max = -std::numeric_limits<T>::infinity();
  std::fill_n(lane, kLanes, max);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t k = 0; k < kLanes; k++) lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
  }
  for (int64_t k = 0; k < n - i; k++) lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
#pragma omp simd reduction(max : max)
  for (int64_t k = 0; k < kLanes; k++) max = lane[k] > max ? lane[k] : max;
  return max;
}

template <class T>
bool any_nan(const T* x, int64_t n) {
  int found = 0;
#pragma omp simd reduction(| : found)
  for (int64_t i = 0; i < n; i++) found |= x[i] != x[i];
  return found;
}

}  // namespace heed::cpu
