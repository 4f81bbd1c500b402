// The random numbers of random.h for many counters at once, in vector registers.
#pragma once
#include <cstdint>

namespace heed::cpu {

// philox() in place: counter i is (c0[i], c1[i], c2[i], c3[i]) and becomes its four words. The rounds are the outer
// loop: compilers vectorise a round over many counters, but not a loop over counters whose body has rounds; that is 2
// to 4 times slower.
inline void philox_many(uint32_t* c0, uint32_t* c1, uint32_t* c2, uint32_t* c3, int64_t count, uint64_t key) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; round++) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
      const uint64_t p0 = 0xD2511F53ull * c0[i], p1 = 0xCD9E8D57ull * c2[i];
      c0[i] = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ k0, c1[i] = static_cast<uint32_t>(p1);
      c2[i] = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ k1, c3[i] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
}

}  // namespace heed::cpu
