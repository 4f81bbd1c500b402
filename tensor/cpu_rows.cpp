// Softmax, log-softmax and cross-entropy of the fast CPU device.
//
// Rows are shared among threads; a row stays in the cache from its first pass to its last, and each pass is one
// vectorised loop
// ("omp simd": outputs may be the inputs themselves).
#include "tensor/cpu_rows.h"
#include "tensor/cpu.h"
#include "tensor/cpu_math.h"

namespace heed {

namespace {

using cpu::FastMath;
using cpu::LastAxisRows;

template <class T>
constexpr T kInfinityOf = std::numeric_limits<T>::infinity();

// What is subtracted from a row before exp. A row of only -inf has nothing to subtract: its exponentials are 0, not
// NaN.
template <class T>
T shift_of(const T* x, int64_t n) {
  const T max = cpu::max_of(x, n);
  return max == -kInfinityOf<T> ? T(0) : max;
}

// log sum_i exp(x_i) = shift + log_sum: in two parts, since x - shift - log_sum keeps digits that x - lse loses.
template <class T>
struct LogSumExp {
  T shift, log_sum;  // log_sum is -inf if every x_i is

  LogSumExp(const T* x, int64_t n) : shift(shift_of(x, n)) {
    const double sum = cpu::sum_of<T>(n, [&](int64_t i) { return FastMath::exp(x[i] - shift); });
    log_sum = static_cast<T>(std::log(sum));
  }
  T value() const { return shift + log_sum; }
};

template <class T>
void softmax_row(T* y, const T* x, int64_t n) {
  const T shift = shift_of(x, n);
  const double sum = cpu::sum_of<T>(n, [=](int64_t i) { return y[i] = FastMath::exp(x[i] - shift); });
  const T scale = sum == 0 ? T(0) : static_cast<T>(1 / sum);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] *= scale;
}

template <class T>
void softmax_grad_row(T* dx, const T* dy, const T* y, int64_t n) {
  const T sum = static_cast<T>(cpu::sum_of<T>(n, [=](int64_t i) { return dy[i] * y[i]; }));
#pragma omp simd
  for (int64_t i = 0; i < n; i++) dx[i] = y[i] * (dy[i] - sum);
}

template <class T>
void log_softmax_row(T* y, const T* x, int64_t n) {
  const LogSumExp<T> lse(x, n);
  const T shift = lse.shift, log_sum = lse.log_sum == -kInfinityOf<T> ? T(0) : lse.log_sum;  // only -inf: so is y
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = x[i] - shift - log_sum;
}

template <class T>
void log_softmax_grad_row(T* dx, const T* dy, const T* y, int64_t n) {
  const T sum = static_cast<T>(cpu::sum_of<T>(n, [=](int64_t i) { return dy[i]; }));
#pragma omp simd
  for (int64_t i = 0; i < n; i++) dx[i] = dy[i] - FastMath::exp(y[i]) * sum;
}

// Calls row(to, from..., n) for each row.
template <class T, class Row>
void map_rows(Cpu& cpu, const View& to, const View& from, const Row& row) {
  const LastAxisRows<T> y(cpu, to);
  const LastAxisRows<const T> x(cpu, from);
  const int64_t n = x.length();
  cpu::parallel_for(x.count(), n, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) row(y[r], x[r], n);
  });
}

template <class T, class Row>
void map_rows(Cpu& cpu, const View& to, const View& from1, const View& from2, const Row& row) {
  const LastAxisRows<T> dx(cpu, to);
  const LastAxisRows<const T> dy(cpu, from1), y(cpu, from2);
  const int64_t n = y.length();
  cpu::parallel_for(y.count(), n, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) row(dx[r], dy[r], y[r], n);
  });
}

// ---- cross-entropy

// The class weights and their sum; without weights, all are 1.
template <class T>
struct ClassWeights {
  const T* w;
  int64_t step;
  T one = 1;

  explicit ClassWeights(const View& view)
      : w(view ? view.as<T>() : &one), step(view && view.shape[0] > 1 ? view.strides[0] : 0) {}
  T operator[](int64_t c) const { return w[c * step]; }
  T sum(int64_t n) const {
    return static_cast<T>(cpu::sum_of<T>(n, [this](int64_t c) { return w[c * step]; }));
  }
};

template <class T>
void cross_entropy_rows(Cpu& cpu, const View& loss, const View& weight, const View& lse, const View& logits,
                        const View& target, const CrossEntropyOptions& options) {
  const LastAxisRows<const T> x(cpu, logits);
  const ClassWeights<T> w(options.weight);
  const int64_t C = x.length();
  const T s = static_cast<T>(options.smoothing), share = s / static_cast<T>(C);
  cpu::parallel_for(x.count(), C, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++) {
      const T* row = x[n];
      const int64_t t = target.as<int32_t>()[n * target.strides[0]];
      const bool ignored = t == options.ignore_index;
      const LogSumExp<T> lse_n(row, C);
      const auto cost = [&](int64_t c) { return w[c] * (lse_n.shift - row[c] + lse_n.log_sum); };  // -w_c log p_c
      T total = ignored ? T(0) : (1 - s) * cost(t);
      if (s > 0 && !ignored) total += share * static_cast<T>(cpu::sum_of<T>(C, cost));
      loss.as<T>()[n] = total, weight.as<T>()[n] = ignored ? T(0) : w[t], lse.as<T>()[n] = lse_n.value();
    }
  });
}

template <class T>
void cross_entropy_grad_rows(Cpu& cpu, const View& dlogits, const View& dloss, const View& lse, const View& logits,
                             const View& target, const CrossEntropyOptions& options) {
  const LastAxisRows<T> dx(cpu, dlogits);
  const LastAxisRows<const T> x(cpu, logits);
  const ClassWeights<T> w(options.weight);
  const int64_t C = x.length();
  const T s = static_cast<T>(options.smoothing), share = s / static_cast<T>(C), w_sum = s > 0 ? w.sum(C) : T(0);
  cpu::parallel_for(x.count(), C, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++) {
      T* to = dx[n];
      const T* row = x[n];
      const int64_t t = target.as<int32_t>()[n * target.strides[0]];
      if (t == options.ignore_index) {
        std::fill_n(to, C, T(0));
        continue;
      }
      const T lse_n = lse.as<T>()[n * lse.strides[0]], g = dloss.as<T>()[n * dloss.strides[0]];
      const T total = (1 - s) * w[t] + share * w_sum;
      // g last of all: an infinite one would make inf - inf of the terms.
      if (s > 0) {
        for (int64_t c = 0; c < C; c++) to[c] = g * (FastMath::exp(row[c] - lse_n) * total - share * w[c]);
      } else {
        const T factor = g * total;
#pragma omp simd
        for (int64_t c = 0; c < C; c++) to[c] = FastMath::exp(row[c] - lse_n) * factor;
      }
      to[t] = g * (FastMath::exp(row[t] - lse_n) * total - share * w[t] - (1 - s) * w[t]);
    }
  });
}

}  // namespace

void Cpu::softmax(View y, View x) {
  with_floats(x.dtype, [&](auto t) { map_rows<decltype(t)>(*this, y, x, softmax_row<decltype(t)>); });
}

void Cpu::softmax_grad(View dx, View dy, View y) {
  with_floats(y.dtype, [&](auto t) { map_rows<decltype(t)>(*this, dx, dy, y, softmax_grad_row<decltype(t)>); });
}

void Cpu::log_softmax(View y, View x) {
  with_floats(x.dtype, [&](auto t) { map_rows<decltype(t)>(*this, y, x, log_softmax_row<decltype(t)>); });
}

void Cpu::log_softmax_grad(View dx, View dy, View y) {
  with_floats(y.dtype, [&](auto t) { map_rows<decltype(t)>(*this, dx, dy, y, log_softmax_grad_row<decltype(t)>); });
}

void Cpu::cross_entropy(View loss, View weight, View lse, View logits, View target,
                        const CrossEntropyOptions& options) {
  with_floats(logits.dtype,
              [&](auto t) { cross_entropy_rows<decltype(t)>(*this, loss, weight, lse, logits, target, options); });
}

void Cpu::cross_entropy_grad(View dlogits, View dloss, View lse, View logits, View target,
                             const CrossEntropyOptions& options) {
  with_floats(logits.dtype, [&](auto t) {
    cross_entropy_grad_rows<decltype(t)>(*this, dlogits, dloss, lse, logits, target, options);
  });
}

}  // namespace heed
