// Adam (Kingma & Ba 2014) and AdamW (Loshchilov & Hutter 2017) in one pass:
//
//   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2
//   p -= lr (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps)
//
// One thread for each parameter. Bytes moved: p, m, v read and written, g read: 28 for a parameter of f32.
#include <cmath>

#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/walk.h"

namespace heed::HEED_GPU {

namespace {

// The factors of a step in the dtype of the parameters; they are found in f64 on the host.
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

template <class T>
struct Parameters {
  T *p, *m, *v;
  const T* g;
  const int32_t* rows;   // null: g is dense
  int64_t count, width;  // of a row
};

template <class T>
__device__ T gradient(const Parameters<T>& x, int64_t i) {
  if (!x.rows) return x.g[i];
  int64_t column;
  const int32_t row = x.rows[divide(i, x.width, column)];
  return row < 0 ? T(0) : x.g[row * x.width + column];
}

template <class T>
__global__ void adam_step(Parameters<T> x, Step<T> s) {
  const int64_t i = this_item();
  if (i >= x.count) return;
  const T g = gradient(x, i) * s.g_scale + s.l2 * x.p[i];
  const T m = s.beta1 * x.m[i] + s.beta1_rest * g, v = s.beta2 * x.v[i] + s.beta2_rest * g * g;
  x.m[i] = m;
  x.v[i] = v;
  x.p[i] = s.keep * x.p[i] - s.rate * m / (s.v_scale * std::sqrt(v) + s.eps);
}

}  // namespace

void Gpu::adam(View p, View m, View v, View g, View rows, const AdamOptions& options) {
  const int64_t count = p.numel();
  if (count == 0) return;
  with_floats(p.dtype, [&](auto t) {
    using T = decltype(t);
    const Parameters<T> x = {
        p.as<T>(), m.as<T>(), v.as<T>(), g.as<T>(), rows.as<int32_t>(), count, rows ? count / rows.numel() : 1};
    launch_items("adam", adam_step<T>, count, stream_, x, Step<T>(options));
  });
}

}  // namespace heed::HEED_GPU
