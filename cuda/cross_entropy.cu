// Cross-entropy of logits (N, C) with class targets (N,), softmax and loss in one kernel.
//
// With p = softmax(x), class weights w and label smoothing s:
//   loss = -(1 - s) w_t log p_t - s / C sum_c w_c log p_c,  log p_c = x_c - lse,  lse = max + log sum exp(x - max)
//   dx_c = dloss (p_c ((1 - s) w_t + s / C sum_k w_k) - (1 - s) w_t [c = t] - s / C w_c)
//
// A warp for each row of up to 1024 classes, a block for each longer one. Bytes moved: the logits once forward, twice
// backward.
#include "cuda/device.h"
#include "cuda/log_sum_exp.h"

namespace heed::HEED_GPU {

namespace {

// What both kernels read.
template <class T>
struct Targets {
  Row<const T> weight;  // null: all 1
  Row<const int32_t> target;
  int32_t ignored;
  T smoothing;
  WrongIndex* wrong;

  __device__ T weight_of(int64_t c) const { return weight.first ? weight[c] : T(1); }
  __device__ T sum_of_weights(int64_t classes) const {
    if (!weight.first) return static_cast<T>(classes);
    T sum = 0;
    for (int64_t c = 0; c < classes; c++) sum += weight[c];
    return sum;
  }
};

// sum_c w_c (lse - x_c)
template <int kThreads, class T>
__device__ T smoothing_loss(const Targets<T>& in, Row<const T> x, T lse, int64_t classes) {
  T sum = 0;
  for (int64_t c = this_member<kThreads>(); c < classes; c += kThreads) sum += in.weight_of(c) * (lse - x[c]);
  return team_reduce<kThreads>(sum, Add<T>());
}

template <class T, int kThreads>
__global__ void cross_entropy_rows(T* loss, T* weight, T* lse, const T* logits, Rows<1> rows, Targets<T> in) {
  const int64_t n = this_team<kThreads>();
  if (n >= rows.walk.count) return;
  const Row<const T> x = {logits + rows.walk.at(n).of[0], rows.step[0]};
  const ExpSum<T> s = exp_sum_of_row<kThreads>(x, rows.length);
  const T lse_n = s.max + std::log(s.sum);
  const int32_t t = in.target[n];
  T w_t = 0, loss_n = 0;  // of an ignored row
  if (t != in.ignored && in_range(t, rows.length, Indexed::cross_entropy, in.wrong)) {
    w_t = in.weight_of(t);
    loss_n = (1 - in.smoothing) * w_t * (lse_n - x[t]);
    // Not with s = 0: a class with a logit of -inf would add 0 * inf.
    if (in.smoothing > 0) {
      const T share = in.smoothing / static_cast<T>(rows.length);
      loss_n += share * smoothing_loss<kThreads>(in, x, lse_n, rows.length);
    }
  }
  if (this_member<kThreads>() == 0) loss[n] = loss_n, weight[n] = w_t, lse[n] = lse_n;
}

template <class T, int kThreads>
__global__ void cross_entropy_grad_rows(T* dlogits, Row<const T> dloss, const T* lse, const T* logits, Rows<2> rows,
                                        Targets<T> in) {
  const int64_t n = this_team<kThreads>();
  if (n >= rows.walk.count) return;
  const auto at = rows.walk.at(n);
  const Row<T> dx = {dlogits + at.of[0], rows.step[0]};
  const Row<const T> x = {logits + at.of[1], rows.step[1]};
  const int32_t t = in.target[n];
  const bool counts = t != in.ignored && in_range(t, rows.length, Indexed::cross_entropy, in.wrong);
  const T share = in.smoothing / static_cast<T>(rows.length);
  const T target_weight = counts ? (1 - in.smoothing) * in.weight_of(t) : T(0);
  const T total_weight = target_weight + (in.smoothing > 0 ? share * in.sum_of_weights(rows.length) : T(0));
  for (int64_t c = this_member<kThreads>(); c < rows.length; c += kThreads) {
    const T p = std::exp(x[c] - lse[n]);
    const T dx_c = p * total_weight - (c == t ? target_weight : T(0)) - share * in.weight_of(c);
    dx[c] = counts ? dloss[n] * dx_c : T(0);
  }
}

template <class T>
Targets<T> targets_of(const View& target, const CrossEntropyOptions& options, WrongIndex* wrong) {
  const View& w = options.weight;
  return {{w.as<T>(), w ? w.strides[0] : 0},
          {target.as<int32_t>(), target.strides[0]},
          static_cast<int32_t>(options.ignore_index),
          static_cast<T>(options.smoothing),
          wrong};
}

}  // namespace

void Gpu::cross_entropy(View loss, View weight, View lse, View logits, View target,
                        const CrossEntropyOptions& options) {
  indexed_ = true;
  const Rows<1> rows = rows_of<1>(logits.shape, {logits.strides});
  with_floats(logits.dtype, [&](auto t) {
    with_team(rows.length, [&](auto threads) {
      using T = decltype(t);
      constexpr int kThreads = decltype(threads)::value;
      launch_teams<kThreads>("cross_entropy", cross_entropy_rows<T, kThreads>, rows.walk.count, sizeof(ExpSum<T>),
                             stream_, loss.as<T>(), weight.as<T>(), lse.as<T>(), logits.as<T>(), rows,
                             targets_of<T>(target, options, wrong_index_));
    });
  });
}

void Gpu::cross_entropy_grad(View dlogits, View dloss, View lse, View logits, View target,
                             const CrossEntropyOptions& options) {
  indexed_ = true;
  const Rows<2> rows = rows_of<2>(logits.shape, {dlogits.strides, logits.strides});
  with_floats(logits.dtype, [&](auto t) {
    with_team(rows.length, [&](auto threads) {
      using T = decltype(t);
      constexpr int kThreads = decltype(threads)::value;
      launch_teams<kThreads>("cross_entropy_grad", cross_entropy_grad_rows<T, kThreads>, rows.walk.count, 0, stream_,
                             dlogits.as<T>(), Row<const T>{dloss.as<T>(), dloss.strides[0]}, lse.as<T>(),
                             logits.as<T>(), rows, targets_of<T>(target, options, wrong_index_));
    });
  });
}

}  // namespace heed::HEED_GPU
