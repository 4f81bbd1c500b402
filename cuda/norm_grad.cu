// The gradients of layer norm and RMS norm. With n = (x - mean) rstd and g = dy w:
//
//   dx = rstd (g - mean(g) - n mean(g n)), where RMS norm has no mean(g)
//   dw = sum dy n,  db = sum dy, over rows
//
// dx: a warp or a block for each row, as forward; 12 bytes an element of f32. dw and db: a block of 32 x 8 threads
// takes 32 columns of a part of the rows and reads whole lines of memory, 8 bytes an element; the parts' sums go to
// scratch memory and are added by reduce, in an order that depends on sizes alone.
#include "cuda/device.h"
#include "cuda/rows.h"
#include "tensor/scratch.h"

namespace heed::HEED_GPU {

namespace {

template <class T>
struct Inputs {
  const T *dy, *x, *mean, *rstd;  // mean is null: RMS norm
  Row<const T> w;

  __device__ T mean_of(int64_t r) const { return mean ? mean[r] : T(0); }
  __device__ T weight_of(int64_t c) const { return w.first ? w[c] : T(1); }
};

// ---- dx

template <class T, int kThreads>
__global__ void norm_grad_rows(T* dx_data, Inputs<T> in, Rows<3> rows) {
  const int64_t r = this_team<kThreads>();
  if (r >= rows.walk.count) return;
  const auto at = rows.walk.at(r);
  const Row<T> dx = {dx_data + at.of[0], rows.step[0]};
  const Row<const T> dy = {in.dy + at.of[1], rows.step[1]}, x = {in.x + at.of[2], rows.step[2]};
  const T mean = in.mean_of(r), rstd = in.rstd[r], C = static_cast<T>(rows.length);

  Two<T> sum = {0, 0};  // of g and g n
  for (int64_t c = this_member<kThreads>(); c < rows.length; c += kThreads) {
    const T n = (x[c] - mean) * rstd, g = dy[c] * in.weight_of(c);
    sum = Add<T>()(sum, {g, g * n});
  }
  sum = team_reduce<kThreads>(sum, Add<T>());
  const T g_mean = in.mean ? sum.a / C : T(0), gn_mean = sum.b / C;
  for (int64_t c = this_member<kThreads>(); c < rows.length; c += kThreads) {
    const T n = (x[c] - mean) * rstd, g = dy[c] * in.weight_of(c);
    dx[c] = rstd * (g - g_mean - n * gn_mean);
  }
}

// ---- dw, db

constexpr int kColumns = 32, kRowsAtOnce = 8;

// sums: (2, parts, C): of dy n, then of dy.
template <class T>
__global__ void norm_weight_grad(T* sums, Inputs<T> in, Rows<2> rows, int64_t part_rows) {
  Two<T>* shared = gpu::dynamic_shared<Two<T>>();
  const int64_t c = this_item(), part = blockIdx.y;
  const int64_t end = (part + 1) * part_rows < rows.walk.count ? (part + 1) * part_rows : rows.walk.count;
  Two<T> sum = {0, 0};
  for (int64_t r = part * part_rows + threadIdx.y; c < rows.length && r < end; r += kRowsAtOnce) {
    const auto at = rows.walk.at(r);
    const T dy = in.dy[at.of[0] + c * rows.step[0]], x = in.x[at.of[1] + c * rows.step[1]];
    sum = Add<T>()(sum, {dy * (x - in.mean_of(r)) * in.rstd[r], dy});
  }
  shared[threadIdx.y * kColumns + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || c >= rows.length) return;
  for (int row = 1; row < kRowsAtOnce; row++) sum = Add<T>()(sum, shared[row * kColumns + threadIdx.x]);
  sums[part * rows.length + c] = sum.a;
  sums[(gridDim.y + part) * rows.length + c] = sum.b;
}

// (C,) as (1, C)
View as_row(const View& v) { return {v.data, {1, v.shape[0]}, {0, v.strides[0]}, v.dtype}; }

struct NormGradients {
  View dx, dw, db;
};

template <class T>
void norm_grad(Gpu& device, const char* name, cudaStream_t stream, const NormGradients& out, const Inputs<T>& in,
               const View& dy, const View& x) {
  const int64_t C = x.shape.back();
  if (C == 0) return;
  if (out.dx) {
    const Rows<3> rows = rows_of<3>(x.shape, {out.dx.strides, dy.strides, x.strides});
    with_team(C, [&](auto threads) {
      constexpr int kThreads = decltype(threads)::value;
      launch_teams<kThreads>(name, norm_grad_rows<T, kThreads>, rows.walk.count, sizeof(Two<T>), stream, out.dx.as<T>(),
                             in, rows);
    });
  }
  if (!out.dw && !out.db) return;
  const Rows<2> rows = rows_of<2>(x.shape, {dy.strides, x.strides});
  const int64_t blocks = ceil_div(C, kColumns);
  const int64_t parts = std::clamp<int64_t>(1024 / blocks, 1, rows.walk.count / 64 + 1);
  const Scratch scratch(device.memory(), static_cast<size_t>(2 * parts * C) * sizeof(T));
  gpu::launch("norm_weight_grad", norm_weight_grad<T>,
              dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(parts)), dim3(kColumns, kRowsAtOnce),
              kColumns * kRowsAtOnce * sizeof(Two<T>), stream, scratch.as<T>(), in, rows,
              ceil_div(rows.walk.count, parts));
  const View sums = {scratch.as<T>(), {parts, C}, {C, 1}, x.dtype};
  const View second = {scratch.as<T>() + parts * C, {parts, C}, {C, 1}, x.dtype};
  if (out.dw) device.reduce(Reduction::sum, as_row(out.dw), sums);
  if (out.db) device.reduce(Reduction::sum, as_row(out.db), second);
}

template <class T>
Inputs<T> inputs(const View& dy, const View& x, const View& w, const View& mean, const View& rstd) {
  return {dy.as<T>(), x.as<T>(), mean.as<T>(), rstd.as<T>(), {w.as<T>(), w ? w.strides[0] : 0}};
}

}  // namespace

void Gpu::layer_norm_grad(View dx, View dw, View db, View dy, View x, View w, View mean, View rstd) {
  with_floats(x.dtype, [&](auto t) {
    using T = decltype(t);
    norm_grad<T>(*this, "layer_norm_grad", stream_, {dx, dw, db}, inputs<T>(dy, x, w, mean, rstd), dy, x);
  });
}

void Gpu::rms_norm_grad(View dx, View dw, View dy, View x, View w, View rrms) {
  with_floats(x.dtype, [&](auto t) {
    using T = decltype(t);
    norm_grad<T>(*this, "rms_norm_grad", stream_, {dx, dw, View{}}, inputs<T>(dy, x, w, View{}, rrms), dy, x);
  });
}

}  // namespace heed::HEED_GPU
