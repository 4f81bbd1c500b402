// Dropout and uniform numbers on the fast CPU device.
//
// The 10 rounds of Philox run on 16 counters side by side, in vector registers: the same words as philox() in random.h.
#include "tensor/cpu.h"
#include "tensor/cpu_rows.h"

namespace heed {

namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kWords = 4 * kLanes;

struct Counter {
  uint32_t c0, c1, c2, c3;
  Counter plus(int64_t i) const { return {c0 + static_cast<uint32_t>(i), c1, c2, c3}; }
};

// word[4 i + j] is word j of counter_of(i).
template <class CounterOf>
void philox_lanes(const CounterOf& counter_of, uint64_t key, uint32_t (&word)[kWords]) {
#pragma omp simd
  for (int64_t i = 0; i < kLanes; i++) {
    const Counter c = counter_of(i);
    const Philox p = philox(c.c0, c.c1, c.c2, c.c3, key);
    word[4 * i] = p.word[0], word[4 * i + 1] = p.word[1], word[4 * i + 2] = p.word[2], word[4 * i + 3] = p.word[3];
  }
}

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
struct Sizes {
  int64_t L = 1, R, C, blocks;

  explicit Sizes(const Shape& shape) {
    const int rank = shape.rank();
    C = rank > 1 ? shape.back() : 1, R = rank > 2 ? shape.back(2) : 1, blocks = (C + 3) / 4;
    for (int axis = 1; axis < rank - 2; axis++) L *= shape[axis];
  }
};

// A block of x. Going through them in order costs no division.
struct Place {
  const Sizes& size;
  int64_t flat_row, sample, lead, row, block;

  Place(const Sizes& size, int64_t first_sample, int64_t index)
      : size(size),
        flat_row(index / size.blocks),
        sample(first_sample + flat_row / (size.R * size.L)),
        lead(flat_row / size.R % size.L),
        row(flat_row % size.R),
        block(index % size.blocks) {}

  Counter counter() const {
    return {static_cast<uint32_t>(block), static_cast<uint32_t>(row), static_cast<uint32_t>(lead),
            static_cast<uint32_t>(sample)};
  }
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
  const Sizes size(x_view.shape);
  if (x_view.rank() == 1) {  // (B,) is (B, 1)
    for (View* v : {&y_view, &x_view}) v->shape.push_back(1), v->strides.push_back(1);
  }
  const cpu::LastAxisRows<T> y(cpu, y_view);
  const cpu::LastAxisRows<const T> x(cpu, x_view);
  const uint32_t threshold = dropout_threshold(dropout.p);
  const T scale = static_cast<T>(1 / (1 - dropout.p));

  const auto drop_in_row = [&](const Place& at, int64_t count, const uint32_t* word) {
    const int64_t c = 4 * at.block, columns = std::min(4 * count, size.C - c);
    drop(y[at.flat_row] + c, x[at.flat_row] + c, columns, word, threshold, scale);
  };
  const auto drop_blocks = [&](Place& place, int64_t count) {  // at most kLanes; goes past them
    alignas(64) uint32_t word[kWords];
    if (place.block + count <= size.blocks) {  // all in one row
      philox_lanes([c = place.counter()](int64_t i) { return c.plus(i); }, dropout.key, word);
      drop_in_row(place, count, word);
      return place.advance(count);
    }
    Counter counters[kLanes] = {};
    Place at = place;
    for (int64_t lane = 0; lane < count; lane++, at.advance(1)) counters[lane] = at.counter();
    philox_lanes([&](int64_t i) { return counters[i]; }, dropout.key, word);
    for (int64_t lane = 0, n; lane < count; lane += n, place.advance(n)) {
      n = std::min(count - lane, size.blocks - place.block);
      drop_in_row(place, n, word + 4 * lane);
    }
  };
  cpu::parallel_for(x.count() * size.blocks, 4 * 4, [&](int64_t begin, int64_t end) {
    Place place(size, dropout.first_sample, begin);
    for (int64_t b = begin; b < end; b += kLanes) drop_blocks(place, std::min(kLanes, end - b));
  });
}

}  // namespace

void Cpu::dropout(View y, View x, const Dropout& dropout) {
  if (dropout.p >= 1) return fill(y, 0);
  with_floats(y.dtype, [&](auto t) { dropout_floats<decltype(t)>(*this, y, x, dropout); });
}

void Cpu::uniform(View y, uint64_t key) {
  const int64_t n = y.numel();
  with_floats(y.dtype, [&](auto t) {
    using T = decltype(t);
    cpu::parallel_for((n + kWords - 1) / kWords, 2 * kWords, [&](int64_t begin, int64_t end) {
      alignas(64) uint32_t word[kWords];
      for (int64_t k = begin; k < end; k++) {
        const uint64_t first = static_cast<uint64_t>(k * kLanes);  // no group of lanes crosses a multiple of 2^32
        const Counter c = {static_cast<uint32_t>(first), static_cast<uint32_t>(first >> 32), 0, 0};
        philox_lanes([c](int64_t i) { return c.plus(i); }, key, word);
        T* to = y.as<T>() + k * kWords;
        for (int64_t i = 0; i < std::min(kWords, n - k * kWords); i++)
          to[i] = static_cast<T>(uniform_from_bits(word[i]));
      }
    });
  });
}

}  // namespace heed
