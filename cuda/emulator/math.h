// Device functions that C++ lacks: numbers, bits, atomics.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "cuda/emulator/types.h"

namespace heed::emulated {

inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float rsqrt(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }

template <class T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
  return a < b ? b : a;
}
// A NaN operand gives the other one.
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }

inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32); }

template <class T>
T __ldg(const T* p) {
  return *p;
}
inline void __threadfence() {}
inline void __threadfence_block() {}

// Atomics return the old value. One thread runs at a time; that these are atomic instructions is what tells the race
// detector that they do not race.
template <class T, class Change>
T change_atomically(T* p, Change change) {
  T old, next;
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  do next = change(old);
  while (!__atomic_compare_exchange(p, &old, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}

inline float atomicAdd(float* p, float value) {
  return change_atomically(p, [=](float x) { return x + value; });
}
inline double atomicAdd(double* p, double value) {
  return change_atomically(p, [=](double x) { return x + value; });
}
inline int atomicAdd(int* p, int value) { return __atomic_fetch_add(p, value, __ATOMIC_RELAXED); }
inline unsigned atomicAdd(unsigned* p, unsigned value) { return __atomic_fetch_add(p, value, __ATOMIC_RELAXED); }
inline unsigned long long atomicAdd(unsigned long long* p, unsigned long long value) {
  return __atomic_fetch_add(p, value, __ATOMIC_RELAXED);
}
inline int atomicMax(int* p, int value) {
  return change_atomically(p, [=](int x) { return x < value ? value : x; });
}
inline int atomicMin(int* p, int value) {
  return change_atomically(p, [=](int x) { return value < x ? value : x; });
}
inline int atomicExch(int* p, int value) { return __atomic_exchange_n(p, value, __ATOMIC_RELAXED); }
template <class T>
T atomicCAS(T* p, T expected, T value) {
  __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

}  // namespace heed::emulated
