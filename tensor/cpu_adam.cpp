// Adam and AdamW on the fast CPU device: one pass over p, m, v and g, vectorised and shared among threads. It is bound
// by memory, so nothing is read or written twice. The square root is a vector instruction only under -fno-math-errno.
#include <cmath>

#include "tensor/cpu.h"
#include "tensor/cpu_loops.h"

namespace heed {

namespace {

// The factors of a step in the dtype of the parameters.
template <class T>
struct Step {
  T beta1, beta2, beta1_rest, beta2_rest;  // the rest is 1 - beta
  T g_scale, l2;                           // g = g_scale g + l2 p
  T keep;                                  // 1 - lr weight_decay if decoupled
  T rate, v_scale, eps;                    // p = keep p - rate m / (v_scale sqrt(v) + eps)

  explicit Step(const AdamOptions& o) {
    const double step = static_cast<double>(o.step);
    beta1 = static_cast<T>(o.beta1), beta1_rest = static_cast<T>(1 - o.beta1);
    beta2 = static_cast<T>(o.beta2), beta2_rest = static_cast<T>(1 - o.beta2);
    g_scale = static_cast<T>(o.grad_scale), l2 = static_cast<T>(o.decoupled ? 0 : o.weight_decay);
    keep = static_cast<T>(o.decoupled ? 1 - o.lr * o.weight_decay : 1);
    rate = static_cast<T>(o.lr / (1 - std::pow(o.beta1, step)));
    v_scale = static_cast<T>(1 / std::sqrt(1 - std::pow(o.beta2, step)));
    eps = static_cast<T>(o.eps);
  }
};

// g(i): the gradient of p[i]
template <class T, class Gradient>
void adam_line(const Step<T>& s, T* p, T* m, T* v, int64_t n, const Gradient& gradient) {
#pragma omp simd  // the arrays do not overlap
  for (int64_t i = 0; i < n; i++) {
    const T g = gradient(i) * s.g_scale + s.l2 * p[i];
    const T m_i = s.beta1 * m[i] + s.beta1_rest * g, v_i = s.beta2 * v[i] + s.beta2_rest * g * g;
    m[i] = m_i;
    v[i] = v_i;
    p[i] = s.keep * p[i] - s.rate * m_i / (s.v_scale * std::sqrt(v_i) + s.eps);
  }
}

template <class T>
void adam_step(const View& p_view, const View& m_view, const View& v_view, const View& g_view, const View& rows,
               const AdamOptions& options) {
  const Step<T> s(options);
  T *p = p_view.as<T>(), *m = m_view.as<T>(), *v = v_view.as<T>();
  const T* g = g_view.as<T>();
  if (!rows) {
    cpu::parallel_for(p_view.numel(), 1, [&](int64_t i, int64_t end) {
      adam_line(s, p + i, m + i, v + i, end - i, [from = g + i](int64_t k) { return from[k]; });
    });
    return;
  }
  const int64_t count = rows.numel(), width = p_view.numel() / std::max<int64_t>(1, count);
  cpu::parallel_for(count, width, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      const int64_t i = r * width, row = rows.as<int32_t>()[r];
      if (row < 0) {
        adam_line(s, p + i, m + i, v + i, width, [](int64_t) { return T(0); });
      } else {
        adam_line(s, p + i, m + i, v + i, width, [from = g + row * width](int64_t k) { return from[k]; });
      }
    }
  });
}

}  // namespace

void Cpu::adam(View p, View m, View v, View g, View rows, const AdamOptions& options) {
  with_floats(p.dtype, [&](auto t) { adam_step<decltype(t)>(p, m, v, g, rows, options); });
}

}  // namespace heed
