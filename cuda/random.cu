// Random numbers: dropout and uniform, from the counter-based generator of tensor/random.h. Bits are those of every
// other device.
//
// One thread for each block of four random words: ten rounds of integer multiplication for four elements, less work
// than their 32 bytes take to move.
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/walk.h"

namespace heed::HEED_GPU {

namespace {

// x as (B, L, R, C), see Dropout.
struct Places {
  int64_t B, L, R, C;

  explicit Places(const Shape& shape) : L(1) {
    const int rank = shape.rank();
    B = rank > 0 ? shape[0] : 1;
    C = rank > 1 ? shape.back() : 1;
    R = rank > 2 ? shape.back(2) : 1;
    for (int axis = 1; axis < rank - 2; axis++) L *= shape[axis];
  }
  __host__ __device__ int64_t blocks_of_a_row() const { return (C + 3) / 4; }
};

template <class T>
struct Rule {
  uint64_t key;
  int64_t first_sample;
  uint32_t threshold;
  T factor;  // 1 / (1 - p)
};

// y = keep ? x / (1 - p) : 0
template <class T>
__global__ void drop_elements(T* y, const T* x, Walk<2> walk, Places places, Rule<T> rule) {
  const int64_t i = this_item();
  if (i >= places.B * places.L * places.R * places.blocks_of_a_row()) return;
  int64_t c4, r, l;
  const int64_t row = divide(i, places.blocks_of_a_row(), c4);
  const int64_t b = divide(divide(row, places.R, r), places.L, l);
  const Philox four = dropout_block(rule.key, rule.first_sample + b, l, r, c4);
#pragma unroll  // so that the words stay in registers
  for (int j = 0; j < 4; j++) {
    const int64_t c = 4 * c4 + j;
    if (c >= places.C) return;
    const auto at = walk.at(row * places.C + c);
    y[at.of[0]] = four.word[j] >= rule.threshold ? x[at.of[1]] * rule.factor : T(0);
  }
}

// y_i = word i % 4 of counter i / 4, in [0, 1)
template <class T>
__global__ void uniform_numbers(T* y, int64_t count, uint64_t key) {
  const int64_t block = this_item();
  if (4 * block >= count) return;
  const uint64_t counter = static_cast<uint64_t>(block);
  const Philox four = philox(static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0, key);
#pragma unroll
  for (int j = 0; j < 4; j++) {
    if (4 * block + j < count) y[4 * block + j] = uniform_from_bits(four.word[j]);
  }
}

}  // namespace

void Gpu::dropout(View y, View x, const Dropout& dropout) {
  if (y.numel() == 0) return;
  if (dropout.p == 1) return fill(y, 0);
  const Places places(x.shape);
  const int64_t blocks = places.B * places.L * places.R * places.blocks_of_a_row();
  const Walk<2> walk = walk_all<2>(x.shape, {y.strides, x.strides});
  with_floats(y.dtype, [&](auto t) {
    using T = decltype(t);
    const Rule<T> rule = {dropout.key, dropout.first_sample, dropout_threshold(dropout.p),
                          static_cast<T>(1 / (1 - dropout.p))};
    launch_items("dropout", drop_elements<T>, blocks, stream_, y.as<T>(), x.as<T>(), walk, places, rule);
  });
}

void Gpu::uniform(View y, uint64_t key) {
  with_floats(y.dtype, [&](auto t) {
    using T = decltype(t);
    launch_items("uniform", uniform_numbers<T>, ceil_div(y.numel(), 4), stream_, y.as<T>(), y.numel(), key);
  });
}

}  // namespace heed::HEED_GPU
