// The f32 functions of tensor/cpu_math.h against the C library's in f64.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

#include "tensor/cpu_math.h"

using heed::cpu::FastMath;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

// Every 1021st f32 there is, which takes in denormals, infinities and NaN of both signs.
template <class Fast, class Exact>
void check_all(Fast fast, Exact exact) {
  double worst = 0;
  size_t wrong = 0;
  for (uint64_t bits = 0; bits < (1ull << 32); bits += 1021) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits)), y = fast(x);
    const double expected = exact(static_cast<double>(x));
    const float rounded = static_cast<float>(expected);
    if (std::isnan(rounded) || std::isinf(rounded) || rounded == 0) {
      wrong += !same(y, rounded);
    } else if (std::abs(expected) < 0x1p-126) {
      wrong += !(std::abs(y - expected) <= 0x1p-149);  // a denormal: to one unit in the last place
    } else {
      const double error = std::abs(y - expected) / std::abs(expected);
      if (!(error <= worst)) worst = error;
    }
  }
  CHECK(wrong == 0);
  CHECK(worst < 2e-7);
}

}  // namespace

TEST_CASE("cpu math: exp, log, tanh and erf are accurate to 2e-7 over all f32") {
  check_all([](float x) { return FastMath::exp(x); }, [](double x) { return std::exp(x); });
  check_all([](float x) { return FastMath::log(x); }, [](double x) { return std::log(x); });
  check_all([](float x) { return FastMath::tanh(x); }, [](double x) { return std::tanh(x); });
  check_all([](float x) { return FastMath::erf(x); }, [](double x) { return std::erf(x); });
}

TEST_CASE("cpu math: special values are those of the C library") {
  const float values[] = {0.0f,       -0.0f,       1.0f,        -1.0f,         kInfinity,     -kInfinity,
                          kNaN,       0x1p-149f,   -0x1p-149f,  0x1p-126f,     88.72283f,     88.72284f,
                          -87.33655f, -103.97208f, -103.97209f, 3.4028235e38f, -3.4028235e38f};
  for (float x : values) {
    const double exact = static_cast<double>(x);
    INFO("x = " << x);
    for (auto [fast, expected] :
         {std::pair(FastMath::exp(x), std::exp(exact)), std::pair(FastMath::log(x), std::log(exact)),
          std::pair(FastMath::tanh(x), std::tanh(exact)), std::pair(FastMath::erf(x), std::erf(exact))}) {
      const float rounded = static_cast<float>(expected);
      const bool close = std::abs(static_cast<double>(fast) - expected) <= 2e-7 * std::abs(expected) + 0x1p-149;
      CHECK((same(fast, rounded) || (std::isfinite(rounded) && close)));
    }
  }
}

TEST_CASE("cpu math: f64 is the C library") {
  CHECK(FastMath::exp(1.25) == std::exp(1.25));
  CHECK(FastMath::log(1.25) == std::log(1.25));
  CHECK(FastMath::tanh(1.25) == std::tanh(1.25));
  CHECK(FastMath::erf(1.25) == std::erf(1.25));
}
