// Layer norm (Ba et al. 2016) and RMS norm (Zhang & Sennrich 2019) along the last axis.
//
//   layer norm:  mean = sum x / C,  rstd = 1 / sqrt(sum (x - mean)^2 / C + eps),  y = (x - mean) rstd w + b
//   RMS norm:    mean = 0,          rstd = 1 / sqrt(sum x^2 / C + eps),           y = x rstd w
//
// A warp for each row of up to 1024 elements, a block for each longer one. x is read three times (RMS norm: twice),
// from cache but for the first time, and y written: 8 bytes an element of f32.
#include "cuda/device.h"
#include "cuda/rows.h"

namespace heed::HEED_GPU {

namespace {

template <class T>
struct Norm {
  T* y;
  T* mean;  // null: RMS norm
  T* rstd;
  const T* x;
  Row<const T> w, b;  // null: 1 and 0
  T eps;
};

template <class T, int kThreads>
__global__ void norm_rows(Norm<T> norm, Rows<2> rows) {
  const int64_t r = this_team<kThreads>();
  if (r >= rows.walk.count) return;
  const auto at = rows.walk.at(r);
  const Row<T> y = {norm.y + at.of[0], rows.step[0]};
  const Row<const T> x = {norm.x + at.of[1], rows.step[1]};
  const T C = static_cast<T>(rows.length);

  T mean = 0;
  if (norm.mean) {
    T sum = 0;
    for (int64_t c = this_member<kThreads>(); c < rows.length; c += kThreads) sum += x[c];
    mean = team_reduce<kThreads>(sum, Add<T>()) / C;
  }
  T squares = 0;
  for (int64_t c = this_member<kThreads>(); c < rows.length; c += kThreads) squares += (x[c] - mean) * (x[c] - mean);
  const T rstd = 1 / std::sqrt(team_reduce<kThreads>(squares, Add<T>()) / C + norm.eps);
  for (int64_t c = this_member<kThreads>(); c < rows.length; c += kThreads) {
    const T n = (x[c] - mean) * rstd;
    y[c] = n * (norm.w.first ? norm.w[c] : T(1)) + (norm.b.first ? norm.b[c] : T(0));
  }
  if (this_member<kThreads>() == 0) {
    if (norm.mean) norm.mean[r] = mean;
    norm.rstd[r] = rstd;
  }
}

void norm(const char* name, cudaStream_t stream, const View& y, const View& mean, const View& rstd, const View& x,
          const View& w, const View& b, double eps) {
  const Rows<2> rows = rows_of<2>(x.shape, {y.strides, x.strides});
  with_floats(x.dtype, [&](auto t) {
    with_team(rows.length, [&](auto threads) {
      using T = decltype(t);
      constexpr int kThreads = decltype(threads)::value;
      const Norm<T> norm = {y.as<T>(),
                            mean.as<T>(),
                            rstd.as<T>(),
                            x.as<T>(),
                            {w.as<T>(), w ? w.strides[0] : 0},
                            {b.as<T>(), b ? b.strides[0] : 0},
                            static_cast<T>(eps)};
      launch_teams<kThreads>(name, norm_rows<T, kThreads>, rows.walk.count, sizeof(T), stream, norm, rows);
    });
  });
}

}  // namespace

void Gpu::layer_norm(View y, View mean, View rstd, View x, View w, View b, double eps) {
  norm("layer_norm", stream_, y, mean, rstd, x, w, b, eps);
}

void Gpu::rms_norm(View y, View rrms, View x, View w, double eps) {
  norm("rms_norm", stream_, y, View{}, rrms, x, w, View{}, eps);
}

}  // namespace heed::HEED_GPU
