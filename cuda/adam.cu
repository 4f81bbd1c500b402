// Adam (Kingma & Ba 2014) and AdamW (Loshchilov & Hutter 2017) in one pass:
//
//   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2
//   p -= lr (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps)
//
// One thread for each parameter. Bytes moved: p, m, v read and written, g read: 28 for a parameter of f32.
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/walk.h"
#include "tensor/adam_step.h"

namespace heed::HEED_GPU {

namespace {

template <class T>
struct Parameters {
  T *p, *m, *v;
  const T *g, *grad_scale;  // null: 1
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
__global__ void adam_step(Parameters<T> x, AdamStep<T> step) {
  const int64_t i = this_item();
  if (i < x.count) step.update(x.p[i], x.m[i], x.v[i], gradient(x, i), x.grad_scale ? *x.grad_scale : T(1));
}

}  // namespace

void Gpu::adam(View p, View m, View v, View g, View rows, const AdamOptions& options) {
  const int64_t count = p.numel();
  if (count == 0) return;
  with_floats(p.dtype, [&](auto t) {
    using T = decltype(t);
    const int64_t width = rows ? count / rows.numel() : 1;
    const Parameters<T> x = {p.as<T>(), m.as<T>(), v.as<T>(), g.as<T>(), options.grad_scale.as<T>(), rows.as<int32_t>(), count, width};
    launch_items("adam", adam_step<T>, count, stream_, x, AdamStep<T>(options));
  });
}

}  // namespace heed::HEED_GPU
