// fill, copy (with conversion), where.
//
// Elements of one dtype move as bits. Where all operands lie contiguous, a thread takes a pack: 16 bytes of the widest
// operand, and as many elements of the others. A transposition goes through a tile in shared memory, so that both its
// reads and its writes touch whole lines of memory. Everything else takes one thread for each element. All are bound by
// bytes moved, each element once: 4 bytes an element for an f32 fill, 8 for a copy, 6 from f32 to f16, 16 for where.
#include <type_traits>

#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/pack.h"

namespace heed::HEED_GPU {

namespace {

// ---- fill

template <class T>
__global__ void fill_elements(T* y, Walk<1> walk, T value) {
  const int64_t i = this_item();
  if (i < walk.count) y[walk.at(i).of[0]] = value;
}

template <class T>
__global__ void fill_packs(T* y, PackedWalk<1> walk, T value) {
  const int64_t i = this_item();
  if (i >= walk.packs.count) return;
  Pack<T> pack;
  for (int e = 0; e < Pack<T>::kWidth; e++) pack.value[e] = value;
  store_pack(y + walk.packs.at(i).of[0], pack, walk.template elements<Pack<T>::kWidth>(i));
}

// ---- copy

template <class To, class From>
__global__ void copy_packs(To* y, const From* x, PackedWalk<2> walk) {
  constexpr int kWidth = kWidthOf<To, From>;
  const int64_t i = this_item();
  if (i >= walk.packs.count) return;
  const auto at = walk.packs.at(i);
  const int elements = walk.template elements<kWidth>(i);
  const Pack<From, kWidth> in = load_pack<From, kWidth>(x + at.of[1], walk.repeats[1], elements);
  Pack<To, kWidth> out;
  for (int e = 0; e < kWidth; e++) out.value[e] = convert<To>(in.value[e]);
  store_pack(y + at.of[0], out, elements);
}

template <class To, class From>
__global__ void copy_elements(To* y, const From* x, Walk<2> walk) {
  const int64_t i = this_item();
  if (i >= walk.count) return;
  const auto at = walk.at(i);
  y[at.of[0]] = convert<To>(x[at.of[1]]);
}

constexpr int kTile = 32, kTileRows = 8;

// y is contiguous along its columns, x along its rows: y[row][column] = x[row + column * x_step].
struct Transposition {
  int64_t rows, columns, y_step, x_step;
  Walk<2> others;  // the remaining axes

  __host__ __device__ int64_t row_tiles() const { return (rows + kTile - 1) / kTile; }
  __host__ __device__ int64_t column_tiles() const { return (columns + kTile - 1) / kTile; }
  int64_t blocks() const { return others.count * row_tiles() * column_tiles(); }
};

// A block of 32 x 8 threads moves a tile of 32 x 32. The tile's rows are one element longer: a column of it then lies
// in 32 different banks of shared memory.
template <class T>
__global__ void copy_transposed(T* y, const T* x, Transposition t) {
  T* tile = gpu::dynamic_shared<T>();
  int64_t row_tile, column_tile;
  const auto at = t.others.at(divide(divide(blockIdx.x, t.column_tiles(), column_tile), t.row_tiles(), row_tile));
  const int64_t first_row = row_tile * kTile, first_column = column_tile * kTile;
  x += at.of[1], y += at.of[0];

  for (int j = static_cast<int>(threadIdx.y); j < kTile; j += kTileRows) {
    const int64_t row = first_row + threadIdx.x, column = first_column + j;
    if (row < t.rows && column < t.columns) tile[threadIdx.x * (kTile + 1) + j] = x[row + column * t.x_step];
  }
  __syncthreads();
  for (int j = static_cast<int>(threadIdx.y); j < kTile; j += kTileRows) {
    const int64_t row = first_row + j, column = first_column + threadIdx.x;
    if (row < t.rows && column < t.columns) y[row * t.y_step + column] = tile[j * (kTile + 1) + threadIdx.x];
  }
}

// Is this copy a transposition? The axis along which x is contiguous must be another one than y's.
bool find_transposition(const Walk<2>& walk, Transposition& t) {
  const int last = walk.rank - 1;
  if (walk.rank < 2 || walk.step[0][last] != 1 || walk.step[1][last] == 1 || walk.size[last] < 8) return false;
  int axis = last - 1;
  while (axis >= 0 && (walk.step[1][axis] != 1 || walk.size[axis] < 8)) axis--;
  if (axis < 0) return false;
  t = {walk.size[axis], walk.size[last], walk.step[0][axis], walk.step[1][last], {}};
  for (int other = 0; other < last; other++) {
    if (other != axis) t.others.add_axis(walk.size[other], {walk.step[0][other], walk.step[1][other]});
  }
  return true;
}

template <class T>
bool copy_as_transposition(cudaStream_t stream, const View& y, const View& x, const Walk<2>& walk) {
  Transposition t;
  if (!find_transposition(walk, t)) return false;
  gpu::launch("copy_transposed", copy_transposed<T>, dim3(static_cast<unsigned>(t.blocks())), dim3(kTile, kTileRows),
              kTile * (kTile + 1) * sizeof(T), stream, y.as<T>(), x.as<T>(), t);
  return true;
}

template <class To, class From>
void copy_any(const char* name, cudaStream_t stream, const View& y, const View& x, const Walk<2>& walk) {
  PackedWalk<2> packed;
  if (pack_walk(packed, walk, {y.data, x.data}, kWidthOf<To, From>)) {
    launch_items(name, copy_packs<To, From>, packed.packs.count, stream, y.as<To>(), x.as<From>(), packed);
    return;
  }
  if constexpr (std::is_same_v<To, From>) {
    if (copy_as_transposition<To>(stream, y, x, walk)) return;
  }
  launch_items(name, copy_elements<To, From>, walk.count, stream, y.as<To>(), x.as<From>(), walk);
}

// ---- where

__device__ bool holds(f16 condition) { return static_cast<float>(condition) != 0; }
__device__ bool holds(bf16 condition) { return static_cast<float>(condition) != 0; }
template <class T>
__device__ bool holds(T condition) {
  return condition != 0;
}

template <class T, class Condition>
__global__ void where_elements(T* y, const Condition* condition, const T* a, const T* b, Walk<4> walk) {
  const int64_t i = this_item();
  if (i >= walk.count) return;
  const auto at = walk.at(i);
  y[at.of[0]] = holds(condition[at.of[1]]) ? a[at.of[2]] : b[at.of[3]];
}

template <class T, class Condition>
__global__ void where_packs(T* y, const Condition* condition, const T* a, const T* b, PackedWalk<4> walk) {
  constexpr int kWidth = kWidthOf<T, Condition>;
  const int64_t i = this_item();
  if (i >= walk.packs.count) return;
  const auto at = walk.packs.at(i);
  const int elements = walk.template elements<kWidth>(i);
  const auto c = load_pack<Condition, kWidth>(condition + at.of[1], walk.repeats[1], elements);
  Pack<T, kWidth> out = load_pack<T, kWidth>(a + at.of[2], walk.repeats[2], elements);
  const Pack<T, kWidth> otherwise = load_pack<T, kWidth>(b + at.of[3], walk.repeats[3], elements);
  for (int e = 0; e < kWidth; e++) out.value[e] = holds(c.value[e]) ? out.value[e] : otherwise.value[e];
  store_pack(y + at.of[0], out, elements);
}

}  // namespace

void Gpu::fill(View y, double value) {
  if (y.numel() == 0) return;
  const Walk<1> walk = walk_all<1>(y.shape, {y.strides});
  with_any(y.dtype, [&](auto t) {
    using T = decltype(t);
    const T element = convert<T>(value);
    PackedWalk<1> packed;
    if (pack_walk(packed, walk, {y.data}, Pack<T>::kWidth)) {
      launch_items("fill", fill_packs<T>, packed.packs.count, stream_, y.as<T>(), packed, element);
    } else {
      launch_items("fill", fill_elements<T>, walk.count, stream_, y.as<T>(), walk, element);
    }
  });
}

void Gpu::copy(View y, View x) {
  if (y.numel() == 0) return;
  const Walk<2> walk = walk_all<2>(y.shape, {y.strides, x.strides});
  if (y.dtype == x.dtype) {
    with_bits(y.dtype, [&](auto t) { copy_any<decltype(t), decltype(t)>("copy", stream_, y, x, walk); });
    return;
  }
  with_any(y.dtype, [&](auto to) {
    with_any(x.dtype, [&](auto from) { copy_any<decltype(to), decltype(from)>("convert", stream_, y, x, walk); });
  });
}

void Gpu::where(View y, View condition, View a, View b) {
  if (y.numel() == 0) return;
  const Walk<4> walk = walk_all<4>(y.shape, {y.strides, condition.strides, a.strides, b.strides});
  with_bits(y.dtype, [&](auto t) {
    using T = decltype(t);
    with_any(condition.dtype, [&](auto c) {
      using C = decltype(c);
      PackedWalk<4> packed;
      if (pack_walk(packed, walk, {y.data, condition.data, a.data, b.data}, kWidthOf<T, C>)) {
        launch_items("where", where_packs<T, C>, packed.packs.count, stream_, y.as<T>(), condition.as<C>(), a.as<T>(),
                     b.as<T>(), packed);
      } else {
        launch_items("where", where_elements<T, C>, walk.count, stream_, y.as<T>(), condition.as<C>(), a.as<T>(),
                     b.as<T>(), walk);
      }
    });
  });
}

}  // namespace heed::HEED_GPU
