// The gradient of attention in tiles: FlashAttention (Dao et al. 2022, algorithm 4), which computes the weights again.
//
// With s = scale q k^T and lse from the forward pass:
//   p = exp(s - lse),  a = dropout(p),  da = do v^T,  delta_i = sum_j a_ij da_ij = do_i . o_i,  ds = a da - p delta
//   dv = a^T do,  dk = scale ds^T q,  dq = scale ds k
//
// Three kernels. The first finds delta, a warp for each query. In the second a block takes 64 keys of one head and the
// queries pass by in tiles of 64: dk and dv stay in registers until they are complete. In the third a block takes 64
// queries and the keys pass by, for dq. Weights are thus computed twice, and nothing is ever added to memory that
// another block writes: the order of every sum is fixed. Memory beside the operands: delta, one number for each query.
#include "cuda/attention.h"
#include "cuda/device.h"
#include "cuda/rows.h"
#include "tensor/scratch.h"

namespace heed::HEED_GPU {

namespace {

template <class T>
struct AttentionOperands {
  Heads<const T> q, k, v, dout;
  const T *lse, *delta;  // (B, H, T)
};

// ---- delta

// delta_i = do_i . o_i
template <class T>
__global__ void attention_delta(T* delta, Heads<const T> dout_heads, Heads<const T> o_heads, AttentionCall<T> call) {
  const int64_t row = this_team<kWarp>();
  if (row >= call.B * call.H * call.queries) return;
  int64_t t, h;
  const int64_t b = divide(divide(row, call.queries, t), call.H, h);
  const T* dout = dout_heads.data + b * dout_heads.step_b + h * dout_heads.step_h + t * dout_heads.step_row;
  const T* o = o_heads.data + b * o_heads.step_b + h * o_heads.step_h + t * o_heads.step_row;
  T sum = 0;
  for (int64_t e = this_member<kWarp>(); e < call.E; e += kWarp) sum += dout[e] * o[e];
  sum = team_reduce<kWarp>(sum, Add<T>());
  if (this_member<kWarp>() != 0) return;
  delta[row] = sum;
  call.check_length(b);
}

// ---- a tile of weights and of score gradients

template <class T>
struct WeightsAndGradients {
  Micro<T> a, ds;
};

// Of the keys from first_key on and the queries from first_query on. kKeysAreRows: a row for each key, as dk and dv
// want it; otherwise a row for each query.
template <bool kKeysAreRows, class T>
__device__ WeightsAndGradients<T> weights_and_gradients(SharedTiles<T>& shared, const AttentionCall<T>& call,
                                                        const AttentionOperands<T>& x, const Part& part, int64_t first_query,
                                                        int64_t first_key) {
  const int64_t length = call.length(part.b);
  const auto q = head(x.q, part, call.queries, call.D).from(first_query);
  const auto dout = head(x.dout, part, call.queries, call.E).from(first_query);
  const auto k = head(x.k, part, length, call.D).from(first_key);
  const auto v = head(x.v, part, length, call.E).from(first_key);
  const Micro<T> qk = kKeysAreRows ? tile_of_products(shared, k, q) : tile_of_products(shared, q, k);
  const Micro<T> da = kKeysAreRows ? tile_of_products(shared, v, dout) : tile_of_products(shared, dout, v);

  WeightsAndGradients<T> out;
  const int64_t s = first_key + (kKeysAreRows ? threadIdx.y : threadIdx.x) * kMicro;
#pragma unroll  // so that the tiles stay in registers
  for (int i = 0; i < kMicro; i++) {  // queries
    const int64_t t = first_query + (kKeysAreRows ? threadIdx.x : threadIdx.y) * kMicro + i;
    const int64_t row = (part.b * call.H + part.h) * call.queries + t;
    const DropoutFactors<T> factor = dropout_factors(call, part, t, s);
#pragma unroll
    for (int j = 0; j < kMicro; j++) {  // keys
      const int r = kKeysAreRows ? j : i, c = kKeysAreRows ? i : j;
      const bool sees = call.sees(part.b, part.h, t, s + j);
      const T p = sees ? std::exp(call.scale * qk.at[r][c] - x.lse[row]) : T(0);
      out.a.at[r][c] = p * factor.of[j];
      // 0 where p is, so that a NaN in a hidden value ends here
      out.ds.at[r][c] = p == T(0) ? T(0) : out.a.at[r][c] * da.at[r][c] - p * x.delta[row];
    }
  }
  return out;
}

// ---- dk and dv

template <class T, int kChunks>
__global__ void attention_grad_keys(Heads<T> dk_heads, Heads<T> dv_heads, AttentionOperands<T> x, AttentionCall<T> call) {
  SharedTiles<T>& shared = *gpu::dynamic_shared<SharedTiles<T>>();
  const Part part(call, call.S);
  const int64_t column = part.column(kChunks);
  const auto q = head(x.q, part, call.queries, call.D), dout = head(x.dout, part, call.queries, call.E);
  Accumulator<T, kChunks> dk, dv;
  const Range queries = queries_seeing(call, part.b, part.row);
  for (int64_t t = queries.begin; t < queries.end; t += kTile) {
    const auto tile = weights_and_gradients<true>(shared, call, x, part, t, part.row);
    store_weights(shared, tile.a);
    add_weighted(dv, shared, dout.from(t, column));
    store_weights(shared, tile.ds);
    add_weighted(dk, shared, q.from(t, column));
  }
  const T scale[kMicro] = {call.scale, call.scale, call.scale, call.scale}, one[kMicro] = {1, 1, 1, 1};
  if (dk_heads.data) store_rows(head(dk_heads, part, call.S, call.D).from(part.row, column), dk, scale);
  if (dv_heads.data) store_rows(head(dv_heads, part, call.S, call.E).from(part.row, column), dv, one);
}

// ---- dq

template <class T, int kChunks>
__global__ void attention_grad_queries(Heads<T> dq_heads, AttentionOperands<T> x, AttentionCall<T> call) {
  SharedTiles<T>& shared = *gpu::dynamic_shared<SharedTiles<T>>();
  const Part part(call, call.queries);
  const int64_t column = part.column(kChunks);
  const auto k = head(x.k, part, call.length(part.b), call.D);
  Accumulator<T, kChunks> dq;
  const Range keys = keys_seen(call, part.b, part.row);
  for (int64_t s = keys.begin; s < keys.end; s += kTile) {
    const auto tile = weights_and_gradients<false>(shared, call, x, part, part.row, s);
    store_weights(shared, tile.ds);
    add_weighted(dq, shared, k.from(s, column));
  }
  const T scale[kMicro] = {call.scale, call.scale, call.scale, call.scale};
  store_rows(head(dq_heads, part, call.queries, call.D).from(part.row, column), dq, scale);
}

// ---- the host's side

struct AttentionGradients {
  View dq, dk, dv;
};

template <class T>
void launch_gradients(Memory& memory, cudaStream_t stream, const AttentionGradients& out, AttentionOperands<T> x, const View& o,
                      const AttentionCall<T>& call) {
  const int64_t rows = call.B * call.H * call.queries;
  const Scratch scratch(memory, static_cast<size_t>(rows) * sizeof(T));
  launch_teams<kWarp>("attention_delta", attention_delta<T>, rows, 0, stream, scratch.as<T>(), x.dout,
                      Heads<const T>(o), call);
  x.delta = scratch.as<T>();
  if (out.dk || out.dv) {
    with_chunks<T>(std::max(call.D, call.E), [&](auto chunks) {
      constexpr int kChunks = decltype(chunks)::value;
      launch_tiles("attention_grad_keys", attention_grad_keys<T, kChunks>, call, call.S,
                   parts_of(std::max(call.D, call.E), kChunks), stream, Heads<T>(out.dk), Heads<T>(out.dv), x, call);
    });
  }
  if (out.dq) {
    with_chunks<T>(call.D, [&](auto chunks) {
      constexpr int kChunks = decltype(chunks)::value;
      launch_tiles("attention_grad_queries", attention_grad_queries<T, kChunks>, call, call.queries,
                   parts_of(call.D, kChunks), stream, Heads<T>(out.dq), x, call);
    });
  }
}

}  // namespace

void Gpu::attention_grad(View dq, View dk, View dv, View dout, View q, View k, View v, View o, View lse,
                         const AttentionOptions& options) {
  indexed_ = true;
  with_floats(q.dtype, [&](auto t) {
    using T = decltype(t);
    const AttentionOperands<T> x = {Heads<const T>(q),    Heads<const T>(k), Heads<const T>(v),
                           Heads<const T>(dout), lse.as<T>(),       nullptr};
    launch_gradients<T>(memory(), stream_, {dq, dk, dv}, x, o, AttentionCall<T>(q, k, v, options, wrong_index_));
  });
}

}  // namespace heed::HEED_GPU
