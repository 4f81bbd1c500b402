// What the two passes of attention share: tiles, the mask, dropout, and working memory.
//
// A tile of weights is kept transposed, (keys, queries): a row for each key, a column for each query. So what is done
// for a query, its largest score, its sum, its random numbers, is done for a whole vector of queries at once.
#pragma once
#include <omp.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "tensor/cpu_math.h"
#include "tensor/cpu_philox.h"
#include "tensor/scratch.h"
#include "tensor/cpu_tile.h"
#include "tensor/device.h"

namespace heed::cpu {

// The largest tile. It stays in the second-level cache together with its keys, values, gradients: 300 KB for D = 64,
// f32.
constexpr int64_t kQueries = 96, kKeys = 128;

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

inline Range clip(Range range, int64_t begin, int64_t end) {
  return {std::clamp(range.begin, begin, end), std::clamp(range.end, begin, end)};
}

// The rows of one (sample, head): (T, D) or the like. Each row is contiguous.
template <class T>
struct Rows {
  T* data;
  int64_t stride;
  Rows(const View& v, int64_t b, int64_t h)
      : data(v.as<T>() + b * v.strides[0] + h * v.strides[1]), stride(v.strides[2]) {}
  T* operator[](int64_t row) const { return data + row * stride; }
};

// One call's sizes and options.
struct AttentionCall {
  const AttentionOptions& options;
  int64_t B, H, T, S, D, E;

  AttentionCall(const View& q, const View& k, const View& v, const AttentionOptions& options)
      : options(options), B(q.shape[0]), H(q.shape[1]), T(q.shape[2]), S(k.shape[2]), D(q.shape[3]), E(v.shape[3]) {}

  int64_t length(int64_t b) const {  // keys of sample b
    const View& lengths = options.mask.lengths;
    return lengths ? std::clamp<int64_t>(lengths.as<int32_t>()[b], 0, S) : S;
  }

  // By how much a key may be ahead of or behind query t's own place t + (S - T).
  int64_t behind() const { return options.mask.window > 0 ? std::min(options.mask.window, T + S) : T + S; }
  int64_t ahead() const { return options.mask.causal ? 0 : behind(); }

  // The keys that at least one of the queries may see, but for `keep`. They begin at a multiple of 4, see drop().
  Range visible_keys(int64_t b, Range queries) const {
    const Range keys = {queries.begin + (S - T) - behind(), queries.end + (S - T) + ahead()};
    const Range present = clip(keys, 0, length(b));
    return {present.begin / 4 * 4, present.end};
  }
  // The queries that may see key s.
  Range queries_seeing(int64_t s) const { return clip({s - (S - T) - ahead(), s - (S - T) + behind() + 1}, 0, T); }
};

// Puts -inf where a query does not see a key. weights: (keys, queries).
template <class T>
void hide(T* weights, const AttentionCall& call, int64_t b, int64_t h, Range queries, Range keys) {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  const View& keep = call.options.mask.keep;
  for (int64_t s = keys.begin; s < keys.end; s++, weights += kQueries) {
    const Range seeing = clip(call.queries_seeing(s), queries.begin, queries.end);
    std::fill(weights, weights + (seeing.begin - queries.begin), hidden);
    std::fill(weights + (seeing.end - queries.begin), weights + queries.size(), hidden);
    if (!keep) continue;
    const T* column = keep.as<T>() + b * keep.strides[0] + h * keep.strides[1] + s * keep.strides[3];
    for (int64_t t = seeing.begin; t < seeing.end; t++) {
      if (column[t * keep.strides[2]] == T(0)) weights[t - queries.begin] = hidden;
    }
  }
}

// out = dropout(weights), both (keys, queries); may be in place. keys.begin is a multiple of 4: the decisions for four
// keys of a query are one block of random numbers.
template <class T>
void drop(T* out, const T* weights, const AttentionCall& call, int64_t b, int64_t h, Range queries, Range keys) {
  const Dropout& dropout = call.options.dropout;
  const T factor = dropout.p < 1 ? static_cast<T>(1 / (1 - dropout.p)) : T(0);
  const uint32_t threshold = dropout.p < 1 ? dropout_threshold(dropout.p) : 0;
  const int64_t width = padded<T>(queries.size());
  uint32_t random[4][kQueries];  // counters, then the words for four keys
  for (int64_t s = keys.begin; s < keys.end; s += 4) {
    for (int64_t i = 0; i < width; i++) {
      random[0][i] = static_cast<uint32_t>(s / 4), random[1][i] = static_cast<uint32_t>(queries.begin + i);
      random[2][i] = static_cast<uint32_t>(h), random[3][i] = static_cast<uint32_t>(dropout.first_sample + b);
    }
    philox_many(random[0], random[1], random[2], random[3], width, dropout.key);
    const int64_t rows = std::min<int64_t>(4, keys.end - s);
    for (int64_t w = 0; w < rows; w++, out += kQueries, weights += kQueries) {
#pragma omp simd
      for (int64_t i = 0; i < width; i++) {
        const T kept = weights[i] * factor;
        out[i] = random[w][i] >= threshold ? kept : T(0);
      }
    }
  }
}

// Cuts a block of memory into arrays, each at the start of a cache line. Without memory it only counts.
template <class T>
struct Cutter {
  T* memory = nullptr;
  int64_t used = 0;

  T* take(int64_t count) {
    T* array = memory ? memory + used : nullptr;
    used += padded<T>(count);
    return array;
  }
};

// Calls body(work, b, h, i) for every head of every sample and every i of [0, parts), on all threads if that is worth
// it. Each thread has a `Work` of its own, which takes its arrays from a Cutter.
template <class T, template <class> class Work, class Body>
void for_each_head(Memory& memory, const AttentionCall& call, int64_t parts, const Body& body) {
  Cutter<T> counter;
  const Work<T> sample(call, counter);
  const int64_t items = call.B * call.H * parts, size = counter.used;
  const bool worth = call.B * call.H * call.T * call.S > 16384;  // weights: some 30 microseconds of work
  const int64_t team = worth ? std::min<int64_t>(omp_get_max_threads(), items) : 1;
  const Scratch scratch(memory, static_cast<size_t>(team * size) * sizeof(T));
#pragma omp parallel for schedule(dynamic) num_threads(static_cast <int>(team)) if (team > 1)
  for (int64_t item = 0; item < items; item++) {
    Cutter<T> cutter{scratch.as<T>() + omp_get_thread_num() * size};
    Work<T> work(call, cutter);
    body(work, item / parts / call.H, item / parts % call.H, item % parts);
  }
}

}  // namespace heed::cpu
