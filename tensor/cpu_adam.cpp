// Adam and AdamW on the fast CPU device: one pass over p, m, v and g, vectorised and shared among threads. It is bound
// by memory, so nothing is read or written twice. The square root is a vector instruction only under -fno-math-errno,
// which the Makefile gives.
#include "tensor/adam_step.h"
#include "tensor/cpu.h"
#include "tensor/cpu_loops.h"

namespace heed {

namespace {

// g(i): the gradient of p[i]
template <class T, class Gradient>
void adam_line(const AdamStep<T>& step, T* p, T* m, T* v, int64_t n, T grad_scale, const Gradient& gradient) {
#pragma omp simd  // the arrays do not overlap
  for (int64_t i = 0; i < n; i++) step.update(p[i], m[i], v[i], gradient(i), grad_scale);
}

template <class T>
void adam_step(const View& p_view, const View& m_view, const View& v_view, const View& g_view, const View& rows,
               const AdamOptions& options) {
  const AdamStep<T> step(options);
  const T grad_scale = options.grad_scale ? *options.grad_scale.as<T>() : 1;
  T *p = p_view.as<T>(), *m = m_view.as<T>(), *v = v_view.as<T>();
  const T* g = g_view.as<T>();
  if (!rows) {
    cpu::parallel_for(p_view.numel(), 1, [&](int64_t i, int64_t end) {
      adam_line(step, p + i, m + i, v + i, end - i, grad_scale, [from = g + i](int64_t k) { return from[k]; });
    });
    return;
  }
  const int64_t count = rows.numel(), width = p_view.numel() / std::max<int64_t>(1, count);
  cpu::parallel_for(count, width, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      const int64_t i = r * width, row = rows.as<int32_t>()[r];
      if (row < 0) {
        adam_line(step, p + i, m + i, v + i, width, grad_scale, [](int64_t) { return T(0); });
      } else {
        adam_line(step, p + i, m + i, v + i, width, grad_scale, [from = g + row * width](int64_t k) { return from[k]; });
      }
    }
  });
}

}  // namespace

void Cpu::adam(View p, View m, View v, View g, View rows, const AdamOptions& options) {
  with_floats(p.dtype, [&](auto t) { adam_step<decltype(t)>(p, m, v, g, rows, options); });
}

}  // namespace heed
