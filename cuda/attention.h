// What the attention kernels share: the mask, dropout, and two products of tiles.
//
// A block of 16 x 16 threads computes tiles of 64 x 64 weights; each thread holds 4 x 4 of them in registers, those of
// rows 4 y .. 4 y + 3 and columns 4 x .. 4 x + 3. Operands pass through shared memory in slices of 16: every number
// that is loaded from there is used four times.
#pragma once
#include <cmath>

#include "cuda/gpu.h"
#include "cuda/index_check.h"
#include "cuda/launch.h"
#include "cuda/rows.h"
#include "cuda/team.h"
#include "cuda/walk.h"
#include "tensor/device.h"

namespace heed::HEED_GPU {

constexpr int kSide = 16;              // of the block of threads
constexpr int kMicro = 4;              // rows and columns of a thread
constexpr int kTile = kSide * kMicro;  // rows and columns of a block
constexpr int kSlice = 16;             // of the inner axis of a product

// ---- arguments

// (B, H, rows, columns); the last axis has stride 1.
template <class T>
struct Heads {
  T* data;
  int64_t step_b, step_h, step_row;

  explicit Heads(const View& v) : data(v.as<T>()), step_b(v.strides[0]), step_h(v.strides[1]), step_row(v.strides[2]) {}
};

// The matrix of one head, or the part of it that begins at some row.
template <class T>
struct Matrix {
  T* data;
  int64_t step_row, rows, columns;

  __device__ Matrix from(int64_t row, int64_t column = 0) const {
    return {data + row * step_row + column, step_row, rows - row, columns - column};
  }
  __device__ T& at(int64_t row, int64_t column) const { return data[row * step_row + column]; }
};

struct AttentionMaskView {  // see AttentionMask
  bool causal;
  int64_t window;
  const int32_t* lengths;
  const void* keep;
  int64_t keep_steps[4];
};

template <class T>
struct AttentionCall {
  int64_t B, H, queries, S, D, E;  // S keys
  T scale;
  bool drops;
  T kept_factor;  // of weights that dropout keeps: 1 / (1 - p), or 0 for p = 1
  uint32_t threshold;
  uint64_t key;
  int64_t first_sample;
  AttentionMaskView mask;
  WrongIndex* wrong;

  AttentionCall(const View& q, const View& k, const View& v, const AttentionOptions& o, WrongIndex* wrong)
      : B(q.shape[0]), H(q.shape[1]), queries(q.shape[2]), S(k.shape[2]), D(q.shape[3]), E(v.shape[3]), wrong(wrong) {
    scale = static_cast<T>(o.scale);
    drops = o.dropout.p > 0;
    kept_factor = static_cast<T>(o.dropout.p < 1 ? 1 / (1 - o.dropout.p) : 0);
    threshold = o.dropout.p < 1 ? dropout_threshold(o.dropout.p) : 0;
    key = o.dropout.key, first_sample = o.dropout.first_sample;
    mask = {o.mask.causal, o.mask.window, o.mask.lengths.as<int32_t>(), o.mask.keep.data, {}};
    for (int axis = 0; o.mask.keep && axis < 4; axis++) mask.keep_steps[axis] = o.mask.keep.strides[axis];
  }

  __device__ int64_t length(int64_t b) const {  // keys of sample b
    if (!mask.lengths) return S;
    const int64_t length = mask.lengths[b];
    return length < 0 ? 0 : length < S ? length : S;
  }
  __device__ void check_length(int64_t b) const {
    if (mask.lengths) in_range(mask.lengths[b], S + 1, Indexed::attention, wrong);
  }
  // By how much a key may be behind or ahead of query t's own place t + (S - T).
  __device__ int64_t behind() const { return mask.window > 0 && mask.window < queries + S ? mask.window : queries + S; }
  __device__ int64_t ahead() const { return mask.causal ? 0 : behind(); }

  __device__ bool sees(int64_t b, int64_t h, int64_t t, int64_t s) const {
    const int64_t distance = s - (t + S - queries);
    if (t >= queries || s >= length(b) || distance > ahead() || distance < -behind()) return false;
    if (!mask.keep) return true;
    const T* keep = static_cast<const T*>(mask.keep);
    const int64_t* step = mask.keep_steps;
    return keep[b * step[0] + h * step[1] + t * step[2] + s * step[3]] != 0;
  }
};

// The part of the work that a block does: a tile of the rows of one head, and a part of the columns.
struct Part {
  int64_t b, h, row;
  template <class T>
  __device__ Part(const AttentionCall<T>& call, int64_t rows) {
    int64_t tile;
    b = divide(divide(blockIdx.x, (rows + kTile - 1) / kTile, tile), call.H, h);
    row = tile * kTile;
  }
  __device__ int64_t column(int chunks) const { return static_cast<int64_t>(blockIdx.y) * chunks * kTile; }
};

template <class T>
__device__ Matrix<T> head(const Heads<T>& x, const Part& part, int64_t rows, int64_t columns) {
  return {x.data + part.b * x.step_b + part.h * x.step_h, x.step_row, rows, columns};
}

struct Range {
  int64_t begin, end;
};
__device__ inline int64_t clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x < high ? x : high; }

// The keys that at least one of these queries may see but for `keep`, from a multiple of kTile on.
template <class T>
__device__ Range keys_seen(const AttentionCall<T>& call, int64_t b, int64_t first_query) {
  const int64_t last = clamp(first_query + kTile, 0, call.queries) - 1, place = call.S - call.queries;
  const int64_t end = clamp(last + place + call.ahead() + 1, 0, call.length(b));
  return {clamp(first_query + place - call.behind(), 0, end) / kTile * kTile, end};
}

// The queries that may see at least one of these keys, from a multiple of kTile on.
template <class T>
__device__ Range queries_seeing(const AttentionCall<T>& call, int64_t b, int64_t first_key) {
  const int64_t last = clamp(first_key + kTile, 0, call.length(b)) - 1, place = call.S - call.queries;
  if (last < first_key) return {0, 0};
  const int64_t end = clamp(last - place + call.behind() + 1, 0, call.queries);
  return {clamp(first_key - place - call.ahead(), 0, end) / kTile * kTile, end};
}

// ---- tiles

template <class T>
struct Micro {  // a thread's part of a tile of weights
  T at[kMicro][kMicro];
};

// What dropout multiplies the weights of query t and the keys s .. s + 3 by; s is a multiple of 4.
template <class T>
struct DropoutFactors {
  T of[kMicro];
};
template <class T>
__device__ DropoutFactors<T> dropout_factors(const AttentionCall<T>& call, const Part& part, int64_t t, int64_t s) {
  if (!call.drops) return {{1, 1, 1, 1}};
  const Philox four = dropout_block(call.key, call.first_sample + part.b, part.h, t, s / 4);
  DropoutFactors<T> factors;
  for (int i = 0; i < kMicro; i++) factors.of[i] = four.word[i] >= call.threshold ? call.kept_factor : T(0);
  return factors;
}

// Shared memory of a block.
template <class T>
struct SharedTiles {
  T left[kSlice][kTile], right[kSlice][kTile];  // slices of the operands, the inner axis first
  T weights[kTile][kTile];                      // a tile of weights, transposed: (columns, rows)
};

// slice[i][row] = x[row, first + i], 0 beyond the matrix. Neighbouring threads read neighbouring columns.
template <class T>
__device__ void load_slice(T (&slice)[kSlice][kTile], Matrix<const T> x, int64_t first) {
  for (int n = static_cast<int>(threadIdx.y * kSide + threadIdx.x); n < kTile * kSlice; n += kSide * kSide) {
    const int row = n / kSlice, i = n % kSlice;
    slice[i][row] = row < x.rows && first + i < x.columns ? x.at(row, first + i) : T(0);
  }
}

// weights = a b^T for the first kTile rows of each.
template <class T>
__device__ Micro<T> tile_of_products(SharedTiles<T>& shared, Matrix<const T> a, Matrix<const T> b) {
  Micro<T> sum = {};
  for (int64_t first = 0; first < a.columns; first += kSlice) {
    __syncthreads();  // the slices are no longer read
    load_slice(shared.left, a, first);
    load_slice(shared.right, b, first);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kSlice; i++) {
#pragma unroll
      for (int r = 0; r < kMicro; r++) {
#pragma unroll
        for (int c = 0; c < kMicro; c++) {
          sum.at[r][c] += shared.left[i][threadIdx.y * kMicro + r] * shared.right[i][threadIdx.x * kMicro + c];
        }
      }
    }
  }
  return sum;
}

template <class T>
__device__ void store_weights(SharedTiles<T>& shared, const Micro<T>& weights) {
  __syncthreads();  // the weights before these are no longer read
  for (int c = 0; c < kMicro; c++) {
    for (int r = 0; r < kMicro; r++) {
      shared.weights[threadIdx.x * kMicro + c][threadIdx.y * kMicro + r] = weights.at[r][c];
    }
  }
}

// A thread's part of a tile of 64 rows and kChunks * 64 columns: 4 rows, and 4 columns of each chunk.
template <class T, int kChunks>
struct Accumulator {
  T at[kChunks][kMicro][kMicro] = {};
};

// sum += weights x[0:64, :], the weights being those in shared memory. Where a weight is 0 nothing is added: a NaN in a
// hidden key or value goes nowhere.
template <class T, int kChunks>
__device__ void add_weighted(Accumulator<T, kChunks>& sum, SharedTiles<T>& shared, Matrix<const T> x) {
  for (int first = 0; first < kTile && first < x.rows; first += kSlice) {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; chunk++) {
      __syncthreads();  // the slice is no longer read; at first: the weights are written
      for (int n = static_cast<int>(threadIdx.y * kSide + threadIdx.x); n < kSlice * kTile; n += kSide * kSide) {
        const int i = n / kTile, column = n % kTile + chunk * kTile;
        shared.right[i][n % kTile] = first + i < x.rows && column < x.columns ? x.at(first + i, column) : T(0);
      }
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kSlice; i++) {
#pragma unroll
        for (int r = 0; r < kMicro; r++) {
          const T weight = shared.weights[first + i][threadIdx.y * kMicro + r];
          if (weight == T(0)) continue;
#pragma unroll
          for (int c = 0; c < kMicro; c++) {
            sum.at[chunk][r][c] += weight * shared.right[i][threadIdx.x * kMicro + c];
          }
        }
      }
    }
  }
}

// out[row, column] = factor[r] sum for the rows and columns that exist.
template <class T, int kChunks>
__device__ void store_rows(Matrix<T> out, const Accumulator<T, kChunks>& sum, const T (&factor)[kMicro]) {
  for (int chunk = 0; chunk < kChunks; chunk++) {
    for (int r = 0; r < kMicro; r++) {
      for (int c = 0; c < kMicro; c++) {
        const int row = static_cast<int>(threadIdx.y) * kMicro + r;
        const int column = chunk * kTile + static_cast<int>(threadIdx.x) * kMicro + c;
        if (row < out.rows && column < out.columns) out.at(row, column) = factor[r] * sum.at[chunk][r][c];
      }
    }
  }
}

// Combines the values of the 16 threads that share rows; each gets the result.
template <class T, class Combine>
__device__ T row_reduce(T value, Combine combine) {
  for (int distance = kSide / 2; distance > 0; distance /= 2) value = combine(value, shuffle_xor(value, distance));
  return value;
}

// ---- the host's side

// Calls fn(std::integral_constant<int, n>{}) with the number of chunks of 64 columns that a block accumulates: one, or
// two where registers allow it. Wider heads are cut into parts, each the work of blocks of its own.
template <class T, class Fn>
void with_chunks(int64_t columns, const Fn& fn) {
  if (sizeof(T) == 4 && columns > kTile) return fn(std::integral_constant < int, sizeof(T) == 4 ? 2 : 1 > {});
  fn(std::integral_constant<int, 1>{});
}

inline int64_t parts_of(int64_t columns, int chunks) {
  return std::max<int64_t>(1, ceil_div(columns, static_cast<int64_t>(chunks) * kTile));
}

template <class T, class... Params, class... Args>
void launch_tiles(const char* name, void (*kernel)(Params...), const AttentionCall<T>& call, int64_t rows,
                  int64_t parts, cudaStream_t stream, const Args&... args) {
  const int64_t blocks = call.B * call.H * ceil_div(rows, kTile);
  gpu::launch(name, kernel, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(parts)), dim3(kSide, kSide),
              sizeof(SharedTiles<T>), stream, args...);
}

}  // namespace heed::HEED_GPU
