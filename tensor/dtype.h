// Element types. f32 and f64 compute; f16 and bf16 store (they are widened to f32 to compute); i32 indexes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tensor/host_device.h"

namespace heed {

enum class DType : uint8_t { f32, f64, f16, bf16, i32 };

size_t size_of(DType dtype);
const char* name_of(DType dtype);
inline bool computes(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }
inline bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

// IEEE half precision, rounded to nearest even; written out so that it is the same on every machine.
struct f16 {
  uint16_t bits = 0;
  f16() = default;
  HEED_BOTH explicit f16(float value);
  HEED_BOTH explicit operator float() const;
};

// The upper half of an f32, rounded to nearest even.
struct bf16 {
  uint16_t bits = 0;
  bf16() = default;
  HEED_BOTH explicit bf16(float value);
  HEED_BOTH explicit operator float() const;
};

template <class T> constexpr DType dtype_of();
template <> constexpr DType dtype_of<float>() { return DType::f32; }
template <> constexpr DType dtype_of<double>() { return DType::f64; }
template <> constexpr DType dtype_of<f16>() { return DType::f16; }
template <> constexpr DType dtype_of<bf16>() { return DType::bf16; }
template <> constexpr DType dtype_of<int32_t>() { return DType::i32; }

// Calls fn(T{}) with the C++ type of a computing dtype: with_floats(x.dtype, [&](auto t) { using T = decltype(t); ... }).
// HEED_ONLY_F32: a build that checks the f32 kernels alone, see `make cuda-f32`.
template <class Fn>
void with_floats([[maybe_unused]] DType dtype, Fn&& fn) {
#ifndef HEED_ONLY_F32
  if (dtype == DType::f64) return fn(double{});
#endif
  fn(float{});
}

// The same for every dtype: copies, conversions, gathers.
template <class Fn>
void with_any(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::f32: return fn(float{});
    case DType::f64: return fn(double{});
    case DType::f16: return fn(f16{});
    case DType::bf16: return fn(bf16{});
    case DType::i32: return fn(int32_t{});
  }
}

// Calls fn with an unsigned integer as wide as the dtype: elements that only move.
template <class Fn>
void with_bits(DType dtype, Fn&& fn) {
  switch (size_of(dtype)) {
    case 2: return fn(uint16_t{});
    case 4: return fn(uint32_t{});
    default: return fn(uint64_t{});
  }
}

// Conversion between any two element types; halves go through float.
template <class To, class From>
HEED_BOTH To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, f16> || std::is_same_v<From, bf16>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, f16> || std::is_same_v<To, bf16>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, int32_t>) {  // towards 0; beyond the range the nearest end, NaN gives 0
    return value != value ? 0 : value <= From(INT32_MIN) ? INT32_MIN : value >= From(INT32_MAX) ? INT32_MAX : static_cast<int32_t>(value);
  } else {
    return static_cast<To>(value);
  }
}

HEED_BOTH inline float float_from_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

HEED_BOTH inline uint32_t bits_of_float(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

HEED_BOTH inline f16::f16(float value) {
  const uint32_t x = bits_of_float(value), sign = (x >> 16) & 0x8000, magnitude = x & 0x7fffffff;
  uint32_t half;
  if (magnitude > 0x7f800000) {
    half = 0x7e00;  // NaN
  } else if (magnitude >= 0x477ff000) {
    half = 0x7c00;  // rounds beyond 65504: infinity
  } else if (magnitude >= 0x38800000) {  // normal: drop 13 bits of the mantissa, ties to even
    half = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  } else {  // subnormal: adding 0.5 lets the float unit round at the right bit
    half = bits_of_float(float_from_bits(magnitude) + 0.5f) - 0x3f000000;
  }
  bits = static_cast<uint16_t>(sign | half);
}

HEED_BOTH inline f16::operator float() const {
  const uint32_t sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 31, mantissa = bits & 0x3ffu;
  if (exponent == 31) return float_from_bits(sign | 0x7f800000 | mantissa << 13);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return float_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

HEED_BOTH inline bf16::bf16(float value) {
  const uint32_t x = bits_of_float(value);
  const bool nan = (x & 0x7fffffff) > 0x7f800000;
  bits = static_cast<uint16_t>(nan ? x >> 16 | 0x40 : (x + 0x7fff + ((x >> 16) & 1)) >> 16);
}

HEED_BOTH inline bf16::operator float() const { return float_from_bits(static_cast<uint32_t>(bits) << 16); }

}  // namespace heed
