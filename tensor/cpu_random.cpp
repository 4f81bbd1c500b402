// Dropout and uniform numbers on the fast CPU device: the words of philox() in random.h, made for many counters at
// once.
#include "tensor/cpu.h"
#include "tensor/cpu_philox.h"
#include "tensor/cpu_rows.h"

namespace heed {

namespace {

constexpr int64_t kCounters = 128;

// Up to 128 counters, and their words in order: word j of counter i is word[4 i + j].
struct Words {
  uint32_t c0[kCounters], c1[kCounters], c2[kCounters], c3[kCounters], word[4 * kCounters];

  void make(int64_t count, uint64_t key) {
    cpu::philox_many(c0, c1, c2, c3, count, key);
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
      word[4 * i] = c0[i], word[4 * i + 1] = c1[i], word[4 * i + 2] = c2[i], word[4 * i + 3] = c3[i];
    }
  }
};

// y = x scale where the word is at least the threshold, 0 elsewhere (also for x = inf). In two loops: a product under a
// condition would not be vectorised everywhere.
template <class T>
void drop(T* y, const T* x, int64_t n, const uint32_t* word, uint32_t threshold, T scale) {
#pragma omp simd  // y may be x itself
  for (int64_t i = 0; i < n; i++) y[i] = x[i] * scale;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = word[i] >= threshold ? y[i] : T(0);
}

// x seen as (B, L, R, C), see random.h; a block is four columns of a row.
struct DropoutSizes {
  int64_t L = 1, R, C, blocks;

  explicit DropoutSizes(const Shape& shape) {
    const int rank = shape.rank();
    C = rank > 1 ? shape.back() : 1, R = rank > 2 ? shape.back(2) : 1, blocks = (C + 3) / 4;
    for (int axis = 1; axis < rank - 2; axis++) L *= shape[axis];
  }
};

// A block of x. Going through them in order costs no division.
struct Place {
  const DropoutSizes& size;
  int64_t flat_row, sample, lead, row, block;

  Place(const DropoutSizes& size, int64_t first_sample, int64_t index)
      : size(size),
        flat_row(index / size.blocks),
        sample(first_sample + flat_row / (size.R * size.L)),
        lead(flat_row / size.R % size.L),
        row(flat_row % size.R),
        block(index % size.blocks) {}

  void advance(int64_t n) {  // not beyond the end of the row
    if ((block += n) < size.blocks) return;
    block = 0, flat_row++;
    if (++row < size.R) return;
    row = 0;
    if (++lead < size.L) return;
    lead = 0, sample++;
  }
};

template <class T>
void dropout_floats(Cpu& cpu, View y_view, View x_view, const Dropout& dropout) {
  const DropoutSizes size(x_view.shape);
  if (x_view.rank() == 1) {  // (B,) is (B, 1)
    for (View* v : {&y_view, &x_view}) v->shape.push_back(1), v->strides.push_back(1);
  }
  const cpu::LastAxisRows<T> y(cpu, y_view);
  const cpu::LastAxisRows<const T> x(cpu, x_view);
  const uint32_t threshold = dropout_threshold(dropout.p);
  const T scale = static_cast<T>(1 / (1 - dropout.p));

  const auto drop_blocks = [&](Place& place, int64_t count) {  // at most kCounters; goes past them
    Words words;
    Place at = place;
    for (int64_t i = 0, n; i < count; i += n, at.advance(n)) {  // n blocks of one row
      n = std::min(count - i, size.blocks - at.block);
      for (int64_t k = 0; k < n; k++) words.c0[i + k] = static_cast<uint32_t>(at.block + k);
      std::fill_n(words.c1 + i, n, static_cast<uint32_t>(at.row));
      std::fill_n(words.c2 + i, n, static_cast<uint32_t>(at.lead));
      std::fill_n(words.c3 + i, n, static_cast<uint32_t>(at.sample));
    }
    words.make(count, dropout.key);
    for (int64_t i = 0, n; i < count; i += n, place.advance(n)) {
      n = std::min(count - i, size.blocks - place.block);
      const int64_t c = 4 * place.block, columns = std::min(4 * n, size.C - c);
      drop(y[place.flat_row] + c, x[place.flat_row] + c, columns, words.word + 4 * i, threshold, scale);
    }
  };
  cpu::parallel_for(x.count() * size.blocks, 4 * 4, [&](int64_t begin, int64_t end) {
    Place place(size, dropout.first_sample, begin);
    for (int64_t b = begin; b < end; b += kCounters) drop_blocks(place, std::min(kCounters, end - b));
  });
}

}  // namespace

void Cpu::dropout(View y, View x, const Dropout& dropout) {
  if (dropout.p >= 1) return fill(y, 0);
  with_floats(y.dtype, [&](auto t) { dropout_floats<decltype(t)>(*this, y, x, dropout); });
}

void Cpu::uniform(View y, uint64_t key) {
  const int64_t n = y.numel(), tile = 4 * kCounters;
  with_floats(y.dtype, [&](auto t) {
    using T = decltype(t);
    cpu::parallel_for((n + tile - 1) / tile, 2 * tile, [&](int64_t begin, int64_t end) {
      Words words;
      for (int64_t k = begin; k < end; k++) {
        for (int64_t i = 0; i < kCounters; i++) {
          const uint64_t counter = static_cast<uint64_t>(k * kCounters + i);
          words.c0[i] = static_cast<uint32_t>(counter), words.c1[i] = static_cast<uint32_t>(counter >> 32);
          words.c2[i] = words.c3[i] = 0;
        }
        words.make(kCounters, key);
        T* to = y.as<T>() + k * tile;
        const int64_t count = std::min(tile, n - k * tile);
        for (int64_t i = 0; i < count; i++) to[i] = static_cast<T>(uniform_from_bits(words.word[i]));
      }
    });
  });
}

}  // namespace heed
