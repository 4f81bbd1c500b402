// scatter_add: y[.., index[.., i, ..], ..] += x[.., i, ..], always in order of i.
//
// Atomic additions would come in any order and give other bits at each run. Instead the entries of the index are sorted
// by where they go, those with one goal keeping their order; then one thread adds up all that goes to one element.
//
//   1. one thread for each entry writes down where it goes and where it comes from
//   2. tiles of 256 entries are sorted in shared memory: an entry's rank is the number of entries before it
//   3. sorted runs are merged two by two: a thread finds its entry's place in the other run by binary search
//   4. one thread for each first entry of a goal, and each column, adds the entries in their order
//
// An axis along which the index repeats (a row of an embedding) has one entry for all of its columns. Bytes moved: x
// once, y twice, and 32 bytes an entry for each of log2(entries / 256) merges.
#include <climits>
#include <utility>

#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/walk.h"
#include "tensor/scratch.h"

namespace heed::HEED_GPU {

namespace {

struct Entry {
  int64_t to, from;  // offsets in y and x
};
constexpr int64_t kNowhere = LLONG_MAX;  // of a wrong index

// ---- 1. entries, in row-major order; the walk's operands are the index, x and y, which stands still along the axis

__global__ void list_entries(Entry* entries, const int32_t* index, Walk<3> walk, int64_t y_size, int64_t y_step,
                             WrongIndex* wrong) {
  const int64_t i = this_item();
  if (i >= walk.count) return;
  const auto at = walk.at(i);
  const int32_t j = index[at.of[0]];
  const bool fine = in_range(j, y_size, Indexed::scatter_add, wrong);
  entries[i] = {fine ? at.of[2] + j * y_step : kNowhere, at.of[1]};
}

// ---- 2. and 3. a stable sort

constexpr int kIndexTile = kBlock;

__global__ void sort_tiles(Entry* sorted, const Entry* entries, int64_t count) {
  Entry* tile = gpu::dynamic_shared<Entry>();
  const int64_t start = static_cast<int64_t>(blockIdx.x) * kIndexTile;
  const int size = count - start < kIndexTile ? static_cast<int>(count - start) : kIndexTile;
  const int me = static_cast<int>(threadIdx.x);
  if (me < size) tile[me] = entries[start + me];
  __syncthreads();
  if (me >= size) return;
  int rank = 0;
  for (int j = 0; j < size; j++) rank += tile[j].to < tile[me].to || (tile[j].to == tile[me].to && j < me);
  sorted[start + rank] = tile[me];
}

// How many of the sorted entries go before `to`; with `equal_too`, also those that go there itself.
__device__ int64_t count_before(const Entry* entries, int64_t count, int64_t to, bool equal_too) {
  int64_t low = 0, high = count;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (entries[middle].to < to || (equal_too && entries[middle].to == to)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Runs of `width` entries are sorted; an even run and the odd one behind it become one.
__global__ void merge_runs(Entry* merged, const Entry* entries, int64_t count, int64_t width) {
  const int64_t i = this_item();
  if (i >= count) return;
  const int64_t run = i / width, other = (run ^ 1) * width;
  const bool is_second = run & 1;  // after its equals in the first run
  int64_t rank = i - run * width;
  if (other < count) {
    const int64_t size = count - other < width ? count - other : width;
    rank += count_before(entries + other, size, entries[i].to, is_second);
  }
  merged[run / 2 * 2 * width + rank] = entries[i];
}

// ---- 4. sums; the walk's operands are x and y, along the axes on which the index repeats

template <class T>
__global__ void add_entries(T* y, const T* x, const Entry* entries, int64_t count, Walk<2> columns) {
  const int64_t i = this_item();
  if (i >= count * columns.count) return;
  int64_t column;
  const int64_t first = divide(i, columns.count, column), to = entries[first].to;
  if (to == kNowhere || (first > 0 && entries[first - 1].to == to)) return;
  const auto at = columns.at(column);
  T total = y[to + at.of[1]];
  for (int64_t e = first; e < count && entries[e].to == to; e++) total += x[entries[e].from + at.of[0]];
  y[to + at.of[1]] = total;
}

// Returns whichever of the two arrays holds the result.
Entry* sort(Entry* entries, Entry* spare, int64_t count, cudaStream_t stream) {
  gpu::launch("sort_tiles", sort_tiles, dim3(static_cast<unsigned>(ceil_div(count, kIndexTile))), dim3(kIndexTile),
              kIndexTile * sizeof(Entry), stream, spare, entries, count);
  std::swap(entries, spare);
  for (int64_t width = kIndexTile; width < count; width *= 2) {
    launch_items("merge_runs", merge_runs, count, stream, spare, entries, count, width);
    std::swap(entries, spare);
  }
  return entries;
}

}  // namespace

void Gpu::scatter_add(View y, View x, View index, int axis) {
  if (x.numel() == 0) return;
  indexed_ = true;
  Strides standing = y.strides;
  standing[axis] = 0;
  Walk<3> walk;
  Walk<2> columns;
  for (int a = 0; a < x.rank(); a++) {
    if (a != axis && index.strides[a] == 0) {
      columns.add_axis(x.shape[a], {x.strides[a], y.strides[a]});
    } else {
      walk.add_axis(x.shape[a], {index.strides[a], x.strides[a], standing[a]});
    }
  }
  const int64_t count = walk.count;
  const Scratch scratch(memory(), static_cast<size_t>(2 * count) * sizeof(Entry));
  Entry* entries = scratch.as<Entry>();
  launch_items("list_entries", list_entries, count, stream_, entries, index.as<int32_t>(), walk, y.shape[axis],
               y.strides[axis], wrong_index_);
  entries = sort(entries, entries + count, count, stream_);
  with_floats(y.dtype, [&](auto t) {
    using T = decltype(t);
    launch_items("scatter_add", add_entries<T>, count * columns.count, stream_, y.as<T>(), x.as<T>(), entries, count,
                 columns);
  });
}

}  // namespace heed::HEED_GPU
