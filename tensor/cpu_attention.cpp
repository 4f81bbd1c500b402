// Attention in tiles with an online softmax: FlashAttention (Dao et al. 2022, algorithm 1).
//
// For a tile of queries, the keys pass by tile after tile. For each query three things are kept: the largest score m so
// far, l = sum exp(s - m), and the sum of exp(s - m) v. When m grows, the two sums are scaled by exp(m_old - m_new). So
// the weights, (T, S) numbers, never exist but for one tile. A tile that the mask hides altogether costs nothing.
//
// Every sum is taken in an order that the tiles fix: the result does not depend on the number of threads.
// A NaN or infinity in a hidden key or value goes nowhere, whichever kind of mask hides it.
#include <cmath>

#include "tensor/cpu.h"
#include "tensor/cpu_attention.h"

namespace heed {

namespace {

using namespace cpu;

// One thread's working memory.
template <class T>
struct ForwardWork {
  int64_t width;       // E, padded
  T* values;           // a copy of all: (S, E)
  T* queries;          // of a tile, transposed and scaled: (D, queries)
  T *weights, *sum;    // of a tile: (keys, queries), (queries, E)
  T *max, *total;      // m and l: (queries,)
  bool finite = true;  // all values

  ForwardWork(const AttentionCall& call, Cutter<T>& memory) : width(padded<T>(call.E)) {
    values = memory.take(call.S * width);
    queries = memory.take(call.D * kQueries);
    weights = memory.take(kKeys * kQueries), sum = memory.take(kQueries * width);
    max = memory.take(kQueries), total = memory.take(kQueries);
  }
};

// Turns n scores of each query into exp(s - m), and brings m, l and the sum up to date.
template <class T>
void online_softmax(ForwardWork<T>& work, int64_t n, int64_t queries) {
  const int64_t width = padded<T>(queries);
  T max[kQueries], factor[kQueries], total[kQueries];
  std::copy_n(work.max, width, max);
  for (int64_t j = 0; j < n; j++) {
    const T* s = work.weights + j * kQueries;
#pragma omp simd
    for (int64_t i = 0; i < width; i++) max[i] = s[i] > max[i] ? s[i] : max[i];
  }
  for (int64_t i = 0; i < width; i++) {
    const T old = work.max[i];
    work.max[i] = max[i];
    if (max[i] == -std::numeric_limits<T>::infinity()) max[i] = 0;  // every key hidden so far: exp(-inf - 0) = 0
    factor[i] = FastMath::exp(old - max[i]);
    total[i] = 0;
  }
  for (int64_t j = 0; j < n; j++) {
    T* s = work.weights + j * kQueries;
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
      s[i] = FastMath::exp(s[i] - max[i]);
      total[i] += s[i];
    }
  }
  for (int64_t i = 0; i < width; i++) work.total[i] = work.total[i] * factor[i] + total[i];
  for (int64_t i = 0; i < queries; i++) {
    if (factor[i] == T(1)) continue;
    for (int64_t e = 0; e < work.width; e++) work.sum[i * work.width + e] *= factor[i];
  }
}

template <class T>
void forward_tile(const AttentionCall& call, ForwardWork<T>& work, Rows<T> q, Rows<T> k, int64_t b, int64_t h,
                  Range queries) {
  const int64_t rows = queries.size(), width = padded<T>(rows);
  pack_transposed(work.queries, kQueries, q[queries.begin], q.stride, rows, call.D, static_cast<T>(call.options.scale));
  std::fill_n(work.max, width, -std::numeric_limits<T>::infinity());
  std::fill_n(work.total, width, T(0));
  std::fill_n(work.sum, rows * work.width, T(0));
  const Range visible = call.visible_keys(b, queries);
  const auto weighted_sum = work.finite ? tile_product<T> : careful_product<T>;
  for (int64_t s = visible.begin; s < visible.end; s += kKeys) {
    const Range keys = {s, std::min(s + kKeys, visible.end)};
    tile_product<T>(keys.size(), width, call.D, work.weights, kQueries, {k[s], k.stride, 1}, work.queries, kQueries,
                    false);
    hide(work.weights, call, b, h, queries, keys);
    online_softmax(work, keys.size(), rows);
    if (call.options.dropout.p > 0) drop(work.weights, work.weights, call, b, h, queries, keys);
    weighted_sum(rows, work.width, keys.size(), work.sum, work.width, {work.weights, 1, kQueries},
                 work.values + s * work.width, work.width, true);
  }
}

// o = sum / l, lse = m + log l
template <class T>
void store_tile(const ForwardWork<T>& work, Rows<T> o, T* lse, int64_t E, Range queries) {
  for (int64_t i = 0; i < queries.size(); i++) {
    const T* sum = work.sum + i * work.width;
    const T inverse = work.total[i] == T(0) ? T(0) : T(1) / work.total[i];
    T* o_i = o[queries.begin + i];
    for (int64_t e = 0; e < E; e++) o_i[e] = sum[e] * inverse;
    lse[queries.begin + i] = work.max[i] + std::log(work.total[i]);
  }
}

}  // namespace

void Cpu::attention(View o, View lse, View q, View k, View v, const AttentionOptions& options) {
  const AttentionCall call(q, k, v, options);
  if (call.B * call.H * call.T == 0) return;
  // With few heads the queries of each are cut too, but not so small that copying the values counts.
  const int64_t wanted = 4 * omp_get_max_threads() / (call.B * call.H);
  const int64_t parts = std::clamp<int64_t>(wanted, 1, (call.T + 255) / 256);
  const int64_t part = (call.T + parts * kQueries - 1) / (parts * kQueries) * kQueries;
  with_floats(q.dtype, [&](auto t) {
    using T = decltype(t);
    for_each_head<T, ForwardWork>(memory(), call, parts, [&](ForwardWork<T>& work, int64_t b, int64_t h, int64_t i) {
      const Range queries = clip({i * part, (i + 1) * part}, 0, call.T), keys = call.visible_keys(b, queries);
      const Rows<T> values(v, b, h);
      work.finite = pack_rows(work.values + keys.begin * work.width, work.width, values[keys.begin], values.stride,
                              keys.size(), call.E);
      for (int64_t tile = queries.begin; tile < queries.end; tile += kQueries) {
        const Range some = {tile, std::min(tile + kQueries, queries.end)};
        forward_tile(call, work, Rows<T>(q, b, h), Rows<T>(k, b, h), b, h, some);
        store_tile(work, Rows<T>(o, b, h), lse.as<T>() + (b * call.H + h) * call.T, call.E, some);
      }
    });
  });
}

}  // namespace heed
