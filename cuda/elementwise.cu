// Elementwise kernels: y = f(x), dx = dy df(x, y), y = f(a, b), for the formulas of tensor/formulas.h.
//
// One thread for each pack of 16 bytes where all operands lie contiguous or repeat one element along the last axis;
// otherwise one thread for each element, which divides to find its coordinates. Nothing is read or written twice:
// 8 bytes an element for f32 unary, 12 for binary, 16 for a gradient that reads x and y.
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/pack.h"

namespace heed::HEED_GPU {

namespace {

// ---- what a kernel computes from the N elements of its inputs

template <class Formula, class T>
struct Value {  // y = f(x)
  T p, q;
  __device__ T operator()(const T (&x)[1]) const { return Formula::template f<ExactMath>(x[0], p, q); }
};

template <class Formula, class T>
struct Derivative {  // dx = dy df(x, y)
  T p, q;
  __device__ T operator()(const T (&in)[3]) const {
    return in[0] * Formula::template df<ExactMath>(in[1], in[2], p, q);
  }
};

template <class Formula, class T>
struct Combination {  // y = f(a, b)
  __device__ T operator()(const T (&x)[2]) const { return Formula::template f<ExactMath>(x[0], x[1]); }
};

// ---- kernels

template <class T, int N>
struct Operands {
  T* y;
  const T* x[N];  // null: absent, all 0
};

template <class T, int N, class Fn>
__global__ void map_elements(Operands<T, N> data, Walk<N + 1> walk, Fn fn) {
  const int64_t i = this_item();
  if (i >= walk.count) return;
  const auto at = walk.at(i);
  T x[N];
  for (int n = 0; n < N; n++) x[n] = data.x[n] ? data.x[n][at.of[n + 1]] : T(0);
  data.y[at.of[0]] = fn(x);
}

template <class T, int N, class Fn>
__global__ void map_packs(Operands<T, N> data, PackedWalk<N + 1> walk, Fn fn) {
  const int64_t i = this_item();
  if (i >= walk.packs.count) return;
  const auto at = walk.packs.at(i);
  const int elements = walk.template elements<Pack<T>::kWidth>(i);
  Pack<T> in[N], y;
  for (int n = 0; n < N; n++) {
    in[n] = data.x[n] ? load_pack(data.x[n] + at.of[n + 1], walk.repeats[n + 1], elements) : Pack<T>{};
  }
  for (int e = 0; e < Pack<T>::kWidth; e++) {
    T x[N];
    for (int n = 0; n < N; n++) x[n] = in[n].value[e];
    y.value[e] = fn(x);
  }
  store_pack(data.y + at.of[0], y, elements);
}

// ---- the host's side

template <class T, int N, class Fn>
void map(const char* name, cudaStream_t stream, const View& y, const View (&x)[N], const Fn& fn) {
  Operands<T, N> data = {y.as<T>(), {}};
  Strides strides[N + 1] = {y.strides};
  const void* pointers[N + 1] = {y.data};
  for (int n = 0; n < N; n++) {
    data.x[n] = x[n].template as<T>();
    strides[n + 1] = x[n] ? x[n].strides : Strides::filled(y.rank(), 0);
    pointers[n + 1] = x[n].data;
  }
  const Walk<N + 1> walk = walk_all(y.shape, strides);
  PackedWalk<N + 1> packed;
  if (pack_walk(packed, walk, pointers, Pack<T>::kWidth)) {
    launch_items(name, map_packs<T, N, Fn>, packed.packs.count, stream, data, packed, fn);
  } else {
    launch_items(name, map_elements<T, N, Fn>, walk.count, stream, data, walk, fn);
  }
}

}  // namespace

void Gpu::unary(Unary op, View y, View x, double p, double q) {
  if (y.numel() == 0) return;
  with_formula(op, [&](auto formula) {
    with_floats(y.dtype, [&](auto t) {
      using T = decltype(t);
      map<T>("unary", stream_, y, {x}, Value<decltype(formula), T>{static_cast<T>(p), static_cast<T>(q)});
    });
  });
}

void Gpu::unary_grad(Unary op, View dx, View dy, View x, View y, double p, double q) {
  if (dx.numel() == 0) return;
  with_formula(op, [&](auto formula) {
    with_floats(dx.dtype, [&](auto t) {
      using T = decltype(t);
      map<T>("unary_grad", stream_, dx, {dy, x, y},
             Derivative<decltype(formula), T>{static_cast<T>(p), static_cast<T>(q)});
    });
  });
}

void Gpu::binary(Binary op, View y, View a, View b) {
  if (y.numel() == 0) return;
  with_formula(op, [&](auto formula) {
    with_floats(y.dtype, [&](auto t) {
      using T = decltype(t);
      map<T>("binary", stream_, y, {a, b}, Combination<decltype(formula), T>{});
    });
  });
}

}  // namespace heed::HEED_GPU
