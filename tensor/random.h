// Random numbers by counter: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
//
// A counter-based generator has no state to advance: number i of stream (key) is a function of (key, i). So every
// device, any number of threads and any tile order make the same bits.
#pragma once
#include <cstdint>
#include <utility>

#include "tensor/host_device.h"

namespace heed {

struct Philox {
  uint32_t word[4];  // four independent uniform 32-bit numbers
};

// counter: 128 bits in four words; key: 64 bits.
HEED_BOTH inline Philox philox(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint64_t key) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; round++) {
    const uint64_t p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1), c3 = static_cast<uint32_t>(p0), c0 = n0, c2 = n2;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Uniform in [0, 1) with 24 bits, exact in f32: the same value in f32 and f64.
HEED_BOTH inline float uniform_from_bits(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// One key from several numbers (SplitMix64's finaliser), so that streams of different purposes do not overlap.
HEED_BOTH inline uint64_t mix_key(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9E3779B97F4A7C15ull * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// Dropout decides by coordinates, not by memory offset: the element at (sample, lead, row, column) is kept or not whatever
// the padding or the tile that computes it. For a tensor (B, ..., R, C): sample is first_sample + b, column and row
// are the last two indices, lead is the flat index of the axes between. Axes that are absent count as 0: axis 0 is the
// sample first of all, so (B, C) has no row and (B,) no column.
struct Dropout {
  double p = 0;              // probability of 0; the others are scaled by 1 / (1 - p)
  uint64_t key = 0;          // one stream for each (seed, step, call)
  int64_t first_sample = 0;  // the global number of the batch's sample 0
};

// The four decisions of columns 4 c4 .. 4 c4 + 3 are one Philox block: column c is kept if word[c % 4] >= threshold.
HEED_BOTH inline Philox dropout_block(uint64_t key, int64_t sample, int64_t lead, int64_t row, int64_t c4) {
  return philox(static_cast<uint32_t>(c4), static_cast<uint32_t>(row), static_cast<uint32_t>(lead),
                static_cast<uint32_t>(sample), key);
}
HEED_BOTH inline uint32_t dropout_threshold(double p) {  // p in [0, 1); the caller treats p = 1 by itself
  return static_cast<uint32_t>(p * 4294967296.0);
}

// A plain sequential generator on top, for the host: shuffles, initial weights, the built-in reviews.
// The state is two numbers, so it can be saved and restored exactly.
class Random {
 public:
  explicit Random(uint64_t seed = 0) : key_(seed) {}

  uint32_t bits();
  double uniform();                      // [0, 1), 53 bits
  double uniform(double low, double high);
  double normal();                       // mean 0, variance 1 (Box-Muller)
  uint64_t below(uint64_t n);            // uniform in [0, n), without bias; UsageError for n = 0

  template <class Vector>
  void shuffle(Vector& v) {  // Fisher-Yates
    for (uint64_t i = v.size(); i > 1; i--) std::swap(v[i - 1], v[below(i)]);
  }

  uint64_t key() const { return key_; }
  uint64_t position() const { return position_; }  // how many 32-bit words were drawn
  void seek(uint64_t position) { position_ = position; }

 private:
  uint64_t key_, position_ = 0;
};

}  // namespace heed
