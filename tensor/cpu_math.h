// exp, log, tanh and erf of an f32 without branches or tables: a loop that calls them becomes vector instructions.
//
// Each is a polynomial on a short interval (minimax: fitted so that the largest relative error is as small as can be)
// and exact steps that lead there. The relative error stays below 2e-7, less than two units in the last place;
// infinities, NaN, denormals and signed zeros come out as from the C library. Other dtypes and functions use the C
// library.
//
// Both sides of a condition are computed and one is chosen by its bits. After "?:" the compiler would move the work
// under the condition, and a loop with conditional work that might raise a floating-point flag is not vectorised.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tensor/formulas.h"

namespace heed::cpu {

struct FastMath : ExactMath {
  using ExactMath::erf;
  using ExactMath::exp;
  using ExactMath::log;
  using ExactMath::tanh;

  static constexpr float infinity = std::numeric_limits<float>::infinity();
  static constexpr float nan = std::numeric_limits<float>::quiet_NaN();

  // exp(x) = 2^n exp(r), x = n ln 2 + r, |r| <= ln 2 / 2.
  static float exp(float x) {
    // Adding 1.5 * 2^23 pushes the fraction of n out of the float. With 254 more, its low bits are n + 254: the
    // exponent fields of two floats whose product is 2^n. One alone could not reach denormals, nor infinity.
    constexpr float shift = 12582912.0f + 254.0f;
    const float shifted = x * 1.44269504f + shift, n = shifted - shift;
    const float r =
        (x - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 = 0.693359375 - 2.1e-4; n times the first is exact
    const uint32_t fields = std::bit_cast<uint32_t>(shifted), half = fields >> 1;

    const float mantissa = 1.0f + (r + r * r * exp_tail(r));
    const float y = mantissa * std::bit_cast<float>(half << 23) * std::bit_cast<float>((fields - half) << 23);
    return choose(x > 89.0f, infinity, choose(x < -104.0f, 0.0f, y));
  }

  // log(x) = e ln 2 + log(1 + f), where x = 2^e (1 + f) and sqrt(1/2) <= 1 + f < sqrt(2);
  // log(1 + f) = f - f^2 / 2 + f^3 P(f).
  static float log(float x) {
    constexpr uint32_t sqrt_half = 0x3F3504F3;
    const bool denormal = x < 0x1p-126f;
    const uint32_t bits = std::bit_cast<uint32_t>(x * choose(denormal, 0x1p23f, 1.0f)) - sqrt_half;
    const float e = static_cast<float>(static_cast<int32_t>(bits) >> 23) - choose(denormal, 23.0f, 0.0f);
    const float f = std::bit_cast<float>((bits & 0x7FFFFF) + sqrt_half) - 1.0f;

    const float p = polynomial(f, 0.333333317f, -0.25000821f, 0.200012269f, -0.166233574f, 0.142017579f, -0.131601819f,
                               0.127615774f, -0.0763449815f);
    const float tail = f * f * (f * p - 0.5f) - e * 2.12194440e-4f, y = e * 0.693359375f + (f + tail);
    return choose(x > 0.0f, choose(x < infinity, y, infinity), choose(x == 0.0f, -infinity, nan));
  }

  // tanh(t) = e / (e + 2), e = exp(2 t) - 1 = (2^n - 1) + 2^n (exp(r) - 1), which keeps its digits near 0. n and r as
  // in exp, but here one power of 2 will do.
  static float tanh(float x) {
    constexpr float shift = 12582912.0f + 127.0f;
    const float t = std::abs(x), shifted = t * (2 * 1.44269504f) + shift, n = shifted - shift;
    const float r = ((t + t) - n * 0.693359375f) + n * 2.12194440e-4f;
    const float power = std::bit_cast<float>(std::bit_cast<uint32_t>(shifted) << 23);
    const float e = (power - 1.0f) + power * (r + r * r * exp_tail(r));
    return std::copysign(choose(t > 10.0f, 1.0f, e / (e + 2.0f)), x);
  }

  // Near 0: erf(x) = x + x P(x^2). From 1 on: 1 - Q(|x|)^-8, which is 1 once the power is infinite.
  static float erf(float x) {
    const float s = x * x, t = std::abs(x);
    const float p =
        polynomial(s, 0.128379122f, -0.376123262f, 0.112801801f, -0.0267113113f, 0.00491755144f, -0.000563142226f);
    const float q = polynomial(t, 0.996486952f, 0.159210639f, 0.0494170121f, 0.0737363163f, -0.0330311018f,
                               0.0177507782f, -0.00400216952f, 0.000543668008f);
    const float q2 = q * q, q4 = q2 * q2, near = x + x * p, far = std::copysign(1.0f - 1.0f / (q4 * q4), x);
    return choose(t < 1.0f, near, far);
  }

 private:
  static float choose(bool condition, float yes, float no) {
    const uint32_t mask = -static_cast<uint32_t>(condition);
    return std::bit_cast<float>((std::bit_cast<uint32_t>(yes) & mask) | (std::bit_cast<uint32_t>(no) & ~mask));
  }

  // c0 + c1 x + c2 x^2 + ...
  template <class... Rest>
  static float polynomial(float x, float c0, Rest... rest) {
    if constexpr (sizeof...(rest) > 0) {
      return c0 + x * polynomial(x, rest...);
    } else {
      return c0;
    }
  }

  // (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2
  static float exp_tail(float r) {
    return polynomial(r, 0.499999934f, 0.166665195f, 0.0416684011f, 0.00836885107f, 0.00138143206f);
  }
};

}  // namespace heed::cpu
