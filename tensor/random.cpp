#include "tensor/random.h"

#include <cmath>

#include "tensor/error.h"

namespace heed {

uint32_t Random::bits() {
  const uint64_t block = position_ / 4;
  const Philox p = philox(static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0, key_);
  return p.word[position_++ % 4];
}

double Random::uniform() {
  const uint64_t high = bits() >> 5, low = bits() >> 6;  // 27 + 26 bits
  return static_cast<double>(high * 67108864 + low) * 0x1p-53;
}

double Random::uniform(double low, double high) { return low + (high - low) * uniform(); }

double Random::normal() {
  const double u = 1.0 - uniform();  // (0, 1]: the logarithm stays finite
  const double v = uniform();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * M_PI * v);
}

uint64_t Random::below(uint64_t n) {
  if (n == 0) throw UsageError("Random::below: there is no number below 0");
  // Numbers in the incomplete last stretch of length n are drawn again, so that none is favoured.
  const uint64_t limit = UINT64_MAX - UINT64_MAX % n;
  for (;;) {
    const uint64_t high = bits(), low = bits();
    const uint64_t r = high << 32 | low;
    if (r < limit) return r % n;
  }
}

}  // namespace heed
