// Adam (Kingma & Ba 2014) and AdamW (Loshchilov & Hutter 2017) in one pass:
//
//   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2
//   p -= lr (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps)
//
// One thread for each 16 bytes of parameters if g is dense, for each parameter if it has rows. Bytes moved: p, m, v
// read and written, g read: 28 for a parameter of f32.
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/pack.h"
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

template <class T>
__global__ void adam_packs(Parameters<T> x, AdamStep<T> step) {
  constexpr int kWidth = Pack<T>::kWidth;
  const int64_t i = this_item() * kWidth, rest = x.count - i;
  if (rest <= 0) return;
  const int elements = rest < kWidth ? static_cast<int>(rest) : kWidth;
  Pack<T> p = load_pack(x.p + i, false, elements), m = load_pack(x.m + i, false, elements),
          v = load_pack(x.v + i, false, elements);
  const Pack<T> g = load_pack(x.g + i, false, elements);
  const T scale = x.grad_scale ? *x.grad_scale : T(1);
  for (int e = 0; e < kWidth; e++) step.update(p.value[e], m.value[e], v.value[e], g.value[e], scale);
  store_pack(x.p + i, p, elements);
  store_pack(x.m + i, m, elements);
  store_pack(x.v + i, v, elements);
}

}  // namespace

void Gpu::adam(View p, View m, View v, View g, View rows, const AdamOptions& options) {
  const int64_t count = p.numel();
  if (count == 0) return;
  with_floats(p.dtype, [&](auto t) {
    using T = decltype(t);
    const int64_t width = rows ? count / rows.numel() : 1;
    const Parameters<T> x = {p.as<T>(), m.as<T>(), v.as<T>(), g.as<T>(), options.grad_scale.as<T>(), rows.as<int32_t>(),
                             count,     width};
    const bool packs =
        !rows && aligned_for_packs(x.p) && aligned_for_packs(x.m) && aligned_for_packs(x.v) && aligned_for_packs(x.g);
    if (packs) {
      launch_items("adam", adam_packs<T>, ceil_div(count, Pack<T>::kWidth), stream_, x, AdamStep<T>(options));
    } else {
      launch_items("adam", adam_step<T>, count, stream_, x, AdamStep<T>(options));
    }
  });
}

}  // namespace heed::HEED_GPU
