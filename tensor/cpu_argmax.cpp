// argmax on the fast CPU device: one row at a time, or many rows side by side when they lie so in memory.
#include <limits>

#include "tensor/cpu.h"
#include "tensor/cpu_rows.h"
#include "tensor/cpu_split.h"

namespace heed {

namespace {

constexpr int64_t kRows = 64;  // that are taken at once

template <class T>
constexpr T kLowest = -std::numeric_limits<T>::infinity();

template <class T>
bool beats(T value, T best) {  // NaN counts as largest
  return (value > best) | ((value != value) & (best == best));
}

template <class T>
int32_t argmax_row(const T* x, int64_t step, int64_t n) {
  if (step == 1) {  // faster in three passes, which are vectorised but for the last one
    const bool nan = cpu::any_nan(x, n);
    const T max = cpu::max_of(x, n);
    int32_t i = 0;
    while (i + 1 < n && (nan ? x[i] == x[i] : x[i] != max)) i++;
    return i;
  }
  T best = kLowest<T>;
  int32_t where = 0;
  for (int64_t i = 0; i < n; i++) {
    if (beats(x[i * step], best)) best = x[i * step], where = static_cast<int32_t>(i);
  }
  return where;
}

// For `width` <= kRows rows, the next one x_step further: vector lanes hold a row each.
template <class T>
void argmax_rows(int32_t* y, int64_t y_step, int64_t width, const T* x, int64_t x_step, int64_t step, int64_t n) {
  T best[kRows];
  int32_t where[kRows];
  std::fill_n(best, width, kLowest<T>);
  std::fill_n(where, width, 0);
  for (int64_t i = 0; i < n; i++) {
#pragma omp simd
    for (int64_t k = 0; k < width; k++) {
      const T value = x[i * step + k * x_step];
      const bool better = beats(value, best[k]);
      best[k] = better ? value : best[k];
      where[k] = better ? static_cast<int32_t>(i) : where[k];
    }
  }
  cpu::unpack(y, y_step, width, where);
}

}  // namespace

void Cpu::argmax(View y, View x) {
  int axis = 0;  // the reduced one
  while (axis < x.rank() && x.shape[axis] == y.shape[axis]) axis++;
  if (axis == x.rank()) return fill(y, 0);  // it has size 1
  const cpu::Split s(y, x);
  const int64_t n = x.shape[axis], step = x.strides[axis], x_step = s.kept.step()[0], y_step = s.kept.step()[1];
  with_floats(x.dtype, [&](auto t) {
    using T = decltype(t);
    const auto rows = [&](int64_t begin, int64_t end) {
      s.kept.each(begin, end, [&](const auto& at, int64_t count) {
        int32_t* to = y.as<int32_t>() + at[1];
        const T* from = x.as<T>() + at[0];
        if (!s.along) return argmax_rows(to, y_step, count, from, x_step, step, n);
        for (int64_t k = 0; k < count; k++) to[k * y_step] = argmax_row(from + k * x_step, step, n);
      });
    };
    const int64_t width = s.along ? 1 : kRows, count = y.numel();
    cpu::parallel_for((count + width - 1) / width, width * n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) rows(i * width, std::min(count, (i + 1) * width));
    });
  });
}

}  // namespace heed
