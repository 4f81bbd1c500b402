// Attention in tiles with an online softmax: FlashAttention (Dao et al. 2022, algorithm 1).
//
//   o = dropout(softmax(scale q k^T + mask)) v,  lse = log sum exp(scale q k^T + mask)
//
// A block of 256 threads takes 64 queries of one head; the keys pass by in tiles of 64. For each query three things are
// kept in registers: the largest score m so far, l = sum exp(s - m), and the sum of exp(s - m) v. When m grows, the two
// sums are scaled by exp(m_old - m_new). So the weights, (T, S) numbers, never exist but for one tile in shared memory.
// A tile that causality, window or lengths hide altogether costs nothing.
//
// Bytes moved, for each 64 queries: q and o once, k and v once, mostly from the second-level cache.
#include "cuda/attention.h"
#include "cuda/device.h"

namespace heed::HEED_GPU {

namespace {

// Of a thread's four queries; the 16 threads that share them hold the same.
template <class T>
struct OnlineSoftmax {
  T max[kMicro], sum[kMicro];
};

struct Larger {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

// From products q k^T to scores: scaled, -inf where hidden.
template <class T>
__device__ void score(Micro<T>& tile, const AttentionCall<T>& call, const Part& part, int64_t first_key) {
  for (int r = 0; r < kMicro; r++) {
    for (int c = 0; c < kMicro; c++) {
      const int64_t t = part.row + threadIdx.y * kMicro + r, s = first_key + threadIdx.x * kMicro + c;
      tile.at[r][c] = call.sees(part.b, part.h, t, s) ? call.scale * tile.at[r][c] : T(-INFINITY);
    }
  }
}

// From scores s to exp(s - m); brings m, l and the sums of values up to date.
template <class T, int kChunks>
__device__ void pass_softmax(Micro<T>& tile, OnlineSoftmax<T>& softmax, Accumulator<T, kChunks>& out) {
  for (int r = 0; r < kMicro; r++) {
    T max = softmax.max[r], sum = 0;
    for (int c = 0; c < kMicro; c++) max = Larger()(tile.at[r][c], max);
    max = row_reduce(max, Larger());
    const T shift = max == T(-INFINITY) ? T(0) : max;  // every key hidden so far: exp(-inf - 0) = 0
    for (int c = 0; c < kMicro; c++) {
      tile.at[r][c] = std::exp(tile.at[r][c] - shift);
      sum += tile.at[r][c];
    }
    const T factor = std::exp(softmax.max[r] - shift);
    softmax.sum[r] = softmax.sum[r] * factor + row_reduce(sum, Add<T>());
    softmax.max[r] = max;
    for (int chunk = 0; chunk < kChunks; chunk++) {
      for (int c = 0; c < kMicro; c++) out.at[chunk][r][c] *= factor;
    }
  }
}

template <class T>
__device__ void drop(Micro<T>& tile, const AttentionCall<T>& call, const Part& part, int64_t first_key) {
  for (int r = 0; r < kMicro; r++) {
    const int64_t t = part.row + threadIdx.y * kMicro + r, s = first_key + threadIdx.x * kMicro;
    const DropoutFactors<T> factor = dropout_factors(call, part, t, s);
    for (int c = 0; c < kMicro; c++) tile.at[r][c] *= factor.of[c];
  }
}

template <class T, int kChunks>
__global__ void attention_tiles(Heads<T> o_heads, T* lse, Heads<const T> q_heads, Heads<const T> k_heads,
                                Heads<const T> v_heads, AttentionCall<T> call) {
  SharedTiles<T>& shared = *gpu::dynamic_shared<SharedTiles<T>>();
  const Part part(call, call.queries);
  if (threadIdx.x == 0 && threadIdx.y == 0) call.check_length(part.b);
  const int64_t column = part.column(kChunks), length = call.length(part.b);
  const auto q = head(q_heads, part, call.queries, call.D).from(part.row);
  const auto k = head(k_heads, part, length, call.D), v = head(v_heads, part, length, call.E);

  OnlineSoftmax<T> softmax;
  for (int r = 0; r < kMicro; r++) softmax.max[r] = T(-INFINITY), softmax.sum[r] = 0;
  Accumulator<T, kChunks> out;
  const Range keys = keys_seen(call, part.b, part.row);
  for (int64_t s = keys.begin; s < keys.end; s += kTile) {
    Micro<T> tile = tile_of_products(shared, q, k.from(s));
    score(tile, call, part, s);
    pass_softmax(tile, softmax, out);
    if (call.drops) drop(tile, call, part, s);
    store_weights(shared, tile);
    add_weighted(out, shared, v.from(s, column));
  }

  // o = sum / l, lse = m + log l
  T inverse[kMicro];
  for (int r = 0; r < kMicro; r++) {
    inverse[r] = softmax.sum[r] == T(0) ? T(0) : T(1) / softmax.sum[r];
    const int64_t t = part.row + threadIdx.y * kMicro + r;
    if (threadIdx.x == 0 && column == 0 && t < call.queries) {
      lse[(part.b * call.H + part.h) * call.queries + t] = softmax.max[r] + std::log(softmax.sum[r]);
    }
  }
  store_rows(head(o_heads, part, call.queries, call.E).from(part.row, column), out, inverse);
}

}  // namespace

void Gpu::attention(View o, View lse, View q, View k, View v, const AttentionOptions& options) {
  indexed_ = true;
  with_floats(q.dtype, [&](auto t) {
    using T = decltype(t);
    const AttentionCall<T> call(q, k, v, options, wrong_index_);
    with_chunks<T>(call.E, [&](auto chunks) {
      constexpr int kChunks = decltype(chunks)::value;
      launch_tiles("attention", attention_tiles<T, kChunks>, call, call.queries, parts_of(call.E, kChunks), stream_,
                   Heads<T>(o), lse.as<T>(), Heads<const T>(q), Heads<const T>(k), Heads<const T>(v), call);
    });
  });
}

}  // namespace heed::HEED_GPU
