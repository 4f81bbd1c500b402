// The gradient of attention in tiles: FlashAttention (Dao et al. 2022, algorithm 4), which computes the weights again.
//
// For a tile of keys, the queries pass by tile after tile. With s = scale q k^T and lse from the forward pass:
//   p = exp(s - lse),  a = dropout(p),  da = do v^T,  delta_i = sum_j a_ij da_ij = do_i . o_i,  ds = a da - p delta
//   dv += a^T do,  dk += scale ds^T q,  dq += scale ds k
// dk and dv are complete when the queries have passed; dq grows from one tile of keys to the next.
//
// Every sum is taken in an order that the tiles fix: the result does not depend on the number of threads.
// A NaN or infinity in a hidden key or value goes nowhere, whichever kind of mask hides it.
#include "tensor/cpu.h"
#include "tensor/cpu_attention.h"

namespace heed {

namespace {

using namespace cpu;

struct Operands {
  View dq, dk, dv, dout, q, k, v, o, lse;
};

// One thread's working memory. Rows of D and E columns are padded to width_d and width_e.
template <class T>
struct GradWork {
  int64_t width_d, width_e;
  T *q, *dout, *dq;                                // copies of all: (T, D), (T, E), (T, D)
  T *q_columns, *dout_columns;                     // scale q^T and do^T, tile after tile: (D, queries), (E, queries)
  T *lse, *delta;                                  // of all: (T,)
  T *k, *dk, *dv;                                  // of a tile: (keys, D), (keys, D), (keys, E)
  T *p, *a, *ds;                                   // of a tile: (keys, queries)
  bool finite_queries = true, finite_keys = true;  // q, do; k

  GradWork(const AttentionCall& call, Cutter<T>& memory) : width_d(padded<T>(call.D)), width_e(padded<T>(call.E)) {
    const int64_t whole_tiles = (call.T + kQueries - 1) / kQueries * kQueries;
    q = memory.take(call.T * width_d), dout = memory.take(call.T * width_e), dq = memory.take(call.T * width_d);
    q_columns = memory.take(whole_tiles * call.D), dout_columns = memory.take(whole_tiles * call.E);
    lse = memory.take(whole_tiles), delta = memory.take(whole_tiles);
    k = memory.take(kKeys * width_d), dk = memory.take(kKeys * width_d), dv = memory.take(kKeys * width_e);
    p = memory.take(kKeys * kQueries), a = memory.take(kKeys * kQueries), ds = memory.take(kKeys * kQueries);
  }
};

template <class T>
T dot(const T* a, const T* b, int64_t n) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

// Copies a tile of q and do, as rows and as columns, and finds delta. Columns past the last query get p = 0.
template <class T>
void pack_queries(const AttentionCall& call, GradWork<T>& work, const Operands& x, int64_t b, int64_t h,
                  Range queries) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const Rows<T> q(x.q, b, h), dout(x.dout, b, h), o(x.o, b, h);
  const int64_t t = queries.begin, n = queries.size(), width = padded<T>(n);
  T *q_t = work.q + t * work.width_d, *dout_t = work.dout + t * work.width_e;
  work.finite_queries &= pack_rows(q_t, work.width_d, q[t], q.stride, n, call.D);
  work.finite_queries &= pack_rows(dout_t, work.width_e, dout[t], dout.stride, n, call.E);
  pack_transposed(work.q_columns + t * call.D, kQueries, q_t, work.width_d, n, call.D,
                  static_cast<T>(call.options.scale));
  pack_transposed(work.dout_columns + t * call.E, kQueries, dout_t, work.width_e, n, call.E, T(1));
  const T* lse = x.lse.as<T>() + (b * call.H + h) * call.T + t;
  for (int64_t i = 0; i < width; i++) {
    const bool blind = i >= n || lse[i] == -infinity;  // a query that sees no key: p = exp(s - inf) = 0
    work.lse[t + i] = blind ? infinity : lse[i];
    work.delta[t + i] = i < n ? dot(dout_t + i * work.width_e, o[t + i], call.E) : T(0);
  }
}

template <class T>
void store_rows(const View& out, int64_t b, int64_t h, Range range, const T* from, int64_t width, double factor) {
  if (!out) return;
  const Rows<T> rows(out, b, h);
  for (int64_t r = range.begin; r < range.end; r++, from += width) {
    T* to = rows[r];
    for (int64_t c = 0; c < out.shape[3]; c++) to[c] = static_cast<T>(factor) * from[c];
  }
}

// From the scores in work.p: p = exp(s - lse) and a = dropout(p). Returns a, which is work.p itself without dropout.
template <class T>
const T* weights(const AttentionCall& call, GradWork<T>& work, int64_t b, int64_t h, Range queries, Range keys) {
  const T* lse = work.lse + queries.begin;
  hide(work.p, call, b, h, queries, keys);
  for (int64_t j = 0; j < keys.size(); j++) {
    T* p = work.p + j * kQueries;
#pragma omp simd
    for (int64_t i = 0; i < padded<T>(queries.size()); i++) p[i] = FastMath::exp(p[i] - lse[i]);
  }
  if (call.options.dropout.p == 0) return work.p;
  drop(work.a, work.p, call, b, h, queries, keys);
  return work.a;
}

// From da in work.ds: ds = a da - p delta; 0 where p is, so that a NaN in a hidden value ends here.
template <class T>
void score_grad(GradWork<T>& work, const T* a, Range queries, int64_t n) {
  const T* delta = work.delta + queries.begin;
  for (int64_t j = 0; j < n; j++, a += kQueries) {
    const T* p = work.p + j * kQueries;
    T* ds = work.ds + j * kQueries;
#pragma omp simd
    for (int64_t i = 0; i < padded<T>(queries.size()); i++) {
      const T value = a[i] * ds[i] - p[i] * delta[i];
      ds[i] = p[i] == T(0) ? T(0) : value;
    }
  }
}

enum class Wanted { dq, dk_dv, all };

// Adds what the weights between a tile of queries and a tile of keys give to dq, dk and dv.
template <class T>
void grad_tile(const AttentionCall& call, GradWork<T>& work, Rows<T> v, int64_t b, int64_t h, Range queries, Range tile,
               Wanted wanted) {
  const Range keys = clip(call.visible_keys(b, queries), tile.begin, tile.end);
  const int64_t t = queries.begin, rows = queries.size(), width = padded<T>(rows), n = keys.size();
  if (n == 0) return;
  const int64_t wd = work.width_d, we = work.width_e, skip = keys.begin - tile.begin;
  const T *q = work.q + t * wd, *dout = work.dout + t * we, *k = work.k + skip * wd;
  const auto weighted_sum = work.finite_queries && work.finite_keys ? tile_product<T> : careful_product<T>;

  // s^T = k (scale q^T), then da^T = v do^T
  tile_product<T>(n, width, call.D, work.p, kQueries, {k, wd, 1}, work.q_columns + t * call.D, kQueries, false);
  const T* a = weights(call, work, b, h, queries, keys);
  tile_product<T>(n, width, call.E, work.ds, kQueries, {v[keys.begin], v.stride, 1}, work.dout_columns + t * call.E,
                  kQueries, false);
  score_grad(work, a, queries, n);
  if (wanted != Wanted::dq) {
    weighted_sum(n, we, rows, work.dv + skip * we, we, {a, kQueries, 1}, dout, we, true);
    weighted_sum(n, wd, rows, work.dk + skip * wd, wd, {work.ds, kQueries, 1}, q, wd, true);
  }
  if (wanted != Wanted::dk_dv) weighted_sum(rows, wd, n, work.dq + t * wd, wd, {work.ds, 1, kQueries}, k, wd, true);
}

// All weights between some queries and some keys of one head: dq of these queries, dk and dv of these keys, or all.
template <class T>
void sweep(const AttentionCall& call, GradWork<T>& work, const Operands& x, int64_t b, int64_t h, Range queries,
           Range keys, Wanted wanted) {
  const Rows<T> k(x.k, b, h), v(x.v, b, h);
  const auto query_tile = [&](int64_t t) { return Range{t, std::min(t + kQueries, queries.end)}; };
  work.finite_queries = true;
  for (int64_t t = queries.begin; t < queries.end; t += kQueries) pack_queries(call, work, x, b, h, query_tile(t));
  T* dq = work.dq + queries.begin * work.width_d;
  std::fill_n(dq, queries.size() * work.width_d, T(0));
  for (int64_t s = keys.begin; s < keys.end; s += kKeys) {
    const Range tile = {s, std::min(s + kKeys, keys.end)}, present = clip(tile, 0, call.length(b));
    work.finite_keys = pack_rows(work.k, work.width_d, k[s], k.stride, present.end - s, call.D);
    std::fill_n(work.dk, tile.size() * work.width_d, T(0));
    std::fill_n(work.dv, tile.size() * work.width_e, T(0));
    for (int64_t t = queries.begin; t < queries.end; t += kQueries) {
      grad_tile(call, work, v, b, h, query_tile(t), present, wanted);
    }
    if (wanted == Wanted::dq) continue;
    store_rows(x.dk, b, h, tile, work.dk, work.width_d, call.options.scale);
    store_rows(x.dv, b, h, tile, work.dv, work.width_e, 1);
  }
  if (wanted != Wanted::dk_dv) store_rows(x.dq, b, h, queries, dq, work.width_d, call.options.scale);
}

template <class T>
void attention_grad(Memory& memory, const AttentionCall& call, const Operands& x) {
  using Work = GradWork<T>;
  const Range queries = {0, call.T}, keys = {0, call.S};
  if (call.B * call.H >= omp_get_max_threads()) {
    for_each_head<T, GradWork>(memory, call, 1, [&](Work& work, int64_t b, int64_t h, int64_t) {
      sweep(call, work, x, b, h, queries, keys, Wanted::all);
    });
    return;
  }
  // Fewer heads than threads: the weights are computed twice, for dk and dv by tiles of keys and for dq by tiles of
  // queries.
  for_each_head<T, GradWork>(
      memory, call, (call.S + kKeys - 1) / kKeys, [&](Work& work, int64_t b, int64_t h, int64_t i) {
        sweep(call, work, x, b, h, queries, clip({i * kKeys, (i + 1) * kKeys}, 0, call.S), Wanted::dk_dv);
      });
  constexpr int64_t part = 4 * kQueries;  // more than one tile, so that copying the keys does not count
  for_each_head<T, GradWork>(
      memory, call, (call.T + part - 1) / part, [&](Work& work, int64_t b, int64_t h, int64_t i) {
        sweep(call, work, x, b, h, clip({i * part, (i + 1) * part}, 0, call.T), keys, Wanted::dq);
      });
}

}  // namespace

void Cpu::attention_grad(View dq, View dk, View dv, View dout, View q, View k, View v, View o, View lse,
                         const AttentionOptions& options) {
  const AttentionCall call(q, k, v, options);
  if (call.B * call.H == 0) return;
  with_floats(q.dtype, [&](auto t) {
    heed::attention_grad<decltype(t)>(memory(), call, {dq, dk, dv, dout, q, k, v, o, lse});
  });
}

}  // namespace heed
