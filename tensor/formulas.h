// Elementwise functions and their derivatives, each pair in one struct, written once for every device.
//
//   f(x)      the value
//   df(x, y)  dy/dx, where y = f(x): whichever of the two is cheaper to start from
//
// M says where exp, log and the like come from: ExactMath (the C library) here and on `reference`; a device may bring
// a faster one of its own. p and q are the formula's parameters (an exponent, bounds); most have none.
#pragma once
#include <cmath>

#include "tensor/host_device.h"

namespace heed {

enum class Unary {
  affine, reciprocal, exp, log, sqrt, rsqrt, pow, sin, cos, tanh, sigmoid, relu, gelu, gelu_tanh, silu, erf, abs, clamp
};
enum class Binary { add, sub, mul, div, pow, maximum, minimum, eq, ne, lt, le, gt, ge };

struct ExactMath {
  template <class T> HEED_BOTH static T exp(T x) { return std::exp(x); }
  template <class T> HEED_BOTH static T log(T x) { return std::log(x); }
  template <class T> HEED_BOTH static T sqrt(T x) { return std::sqrt(x); }
  template <class T> HEED_BOTH static T pow(T x, T p) { return std::pow(x, p); }
  template <class T> HEED_BOTH static T sin(T x) { return std::sin(x); }
  template <class T> HEED_BOTH static T cos(T x) { return std::cos(x); }
  template <class T> HEED_BOTH static T tanh(T x) { return std::tanh(x); }
  template <class T> HEED_BOTH static T erf(T x) { return std::erf(x); }
};

namespace formula {

struct Affine {  // y = p x + q
  template <class M, class T> HEED_BOTH static T f(T x, T p, T q) { return p * x + q; }
  template <class M, class T> HEED_BOTH static T df(T, T, T p, T) { return p; }
};

struct Reciprocal {  // y = 1 / x
  template <class M, class T> HEED_BOTH static T f(T x, T, T) { return T(1) / x; }
  template <class M, class T> HEED_BOTH static T df(T, T y, T, T) { return -y * y; }
};

struct Exp {
  template <class M, class T> HEED_BOTH static T f(T x, T, T) { return M::exp(x); }
  template <class M, class T> HEED_BOTH static T df(T, T y, T, T) { return y; }
};

struct Log {
  template <class M, class T> HEED_BOTH static T f(T x, T, T) { return M::log(x); }
  template <class M, class T> HEED_BOTH static T df(T x, T, T, T) { return T(1) / x; }
};

struct Sqrt {
  template <class M, class T> HEED_BOTH static T f(T x, T, T) { return M::sqrt(x); }
  template <class M, class T> HEED_BOTH static T df(T, T y, T, T) { return T(0.5) / y; }
};

struct Rsqrt {  // y = x^(-1/2)
  template <class M, class T> HEED_BOTH static T f(T x, T, T) { return T(1) / M::sqrt(x); }
  template <class M, class T> HEED_BOTH static T df(T x, T y, T, T) { return T(-0.5) * y / x; }
};

struct Pow {  // y = x^p; the derivative of x^0 is 0, also at x = 0
  template <class M, class T> HEED_BOTH static T f(T x, T p, T) { return M::pow(x, p); }
  template <class M, class T> HEED_BOTH static T df(T x, T, T p, T) { return p == T(0) ? T(0) : p * M::pow(x, p - T(1)); }
};

struct Sin {
  template <class M, class T> HEED_BOTH static T f(T x, T, T) { return M::sin(x); }
  template <class M, class T> HEED_BOTH static T df(T x, T, T, T) { return M::cos(x); }
};

struct Cos {
  template <class M, class T> HEED_BOTH static T f(T x, T, T) { return M::cos(x); }
  template <class M, class T> HEED_BOTH static T df(T x, T, T, T) { return -M::sin(x); }
};

struct Tanh {
  template <class M, class T> HEED_BOTH static T f(T x, T, T) { return M::tanh(x); }
  template <class M, class T> HEED_BOTH static T df(T, T y, T, T) { return T(1) - y * y; }
};

struct Sigmoid {  // y = 1 / (1 + exp(-x)), written so that exp never overflows
  template <class M, class T> HEED_BOTH static T f(T x, T, T) {
    const T e = M::exp(x < T(0) ? x : -x);  // in (0, 1]
    return (x < T(0) ? e : T(1)) / (T(1) + e);
  }
  template <class M, class T> HEED_BOTH static T df(T, T y, T, T) { return y * (T(1) - y); }
};

struct Relu {  // NaN stays NaN; the derivative at 0 is 0
  template <class M, class T> HEED_BOTH static T f(T x, T, T) { return x < T(0) ? T(0) : x; }
  template <class M, class T> HEED_BOTH static T df(T x, T, T, T) { return x > T(0) ? T(1) : T(0); }
};

struct Gelu {  // y = x Phi(x), Phi the normal distribution function (Hendrycks & Gimpel 2016)
  template <class M, class T> HEED_BOTH static T phi(T x) { return T(0.5) * (T(1) + M::erf(x * T(M_SQRT1_2))); }
  template <class M, class T> HEED_BOTH static T f(T x, T, T) { return x * phi<M>(x); }
  template <class M, class T> HEED_BOTH static T df(T x, T, T, T) {
    const T density = M::exp(T(-0.5) * x * x) * T(0.3989422804014327);  // 1 / sqrt(2 pi)
    return phi<M>(x) + x * density;
  }
};

struct GeluTanh {  // y = x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3): the approximation GPT-2 uses
  template <class T> HEED_BOTH static T u(T x) { return T(0.7978845608028654) * (x + T(0.044715) * x * x * x); }
  template <class M, class T> HEED_BOTH static T f(T x, T, T) { return T(0.5) * x * (T(1) + M::tanh(u(x))); }
  template <class M, class T> HEED_BOTH static T df(T x, T, T, T) {
    const T t = M::tanh(u(x)), du = T(0.7978845608028654) * (T(1) + T(3 * 0.044715) * x * x);
    return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * du;
  }
};

struct Silu {  // y = x sigmoid(x)
  template <class M, class T> HEED_BOTH static T f(T x, T p, T q) { return x * Sigmoid::f<M>(x, p, q); }
  template <class M, class T> HEED_BOTH static T df(T x, T, T p, T q) {
    const T s = Sigmoid::f<M>(x, p, q);
    return s * (T(1) + x * (T(1) - s));
  }
};

struct Erf {
  template <class M, class T> HEED_BOTH static T f(T x, T, T) { return M::erf(x); }
  template <class M, class T> HEED_BOTH static T df(T x, T, T, T) {
    return T(1.1283791670955126) * M::exp(-x * x);  // 2 / sqrt(pi)
  }
};

struct Abs {  // the derivative at 0 is 0
  template <class M, class T> HEED_BOTH static T f(T x, T, T) { return x < T(0) ? -x : x; }
  template <class M, class T> HEED_BOTH static T df(T x, T, T, T) { return T((x > T(0)) - (x < T(0))); }
};

struct Clamp {  // y = min(max(x, p), q); the derivative on the bounds themselves is 1
  template <class M, class T> HEED_BOTH static T f(T x, T p, T q) { return x < p ? p : x > q ? q : x; }
  template <class M, class T> HEED_BOTH static T df(T x, T, T p, T q) { return x >= p && x <= q ? T(1) : T(0); }
};

struct Add { template <class M, class T> HEED_BOTH static T f(T a, T b) { return a + b; } };
struct Sub { template <class M, class T> HEED_BOTH static T f(T a, T b) { return a - b; } };
struct Mul { template <class M, class T> HEED_BOTH static T f(T a, T b) { return a * b; } };
struct Div { template <class M, class T> HEED_BOTH static T f(T a, T b) { return a / b; } };
struct PowB { template <class M, class T> HEED_BOTH static T f(T a, T b) { return M::pow(a, b); } };
struct Maximum { template <class M, class T> HEED_BOTH static T f(T a, T b) { return a > b || a != a ? a : b; } };  // NaN wins
struct Minimum { template <class M, class T> HEED_BOTH static T f(T a, T b) { return a < b || a != a ? a : b; } };
struct Eq { template <class M, class T> HEED_BOTH static T f(T a, T b) { return T(a == b); } };  // comparisons give 0 or 1
struct Ne { template <class M, class T> HEED_BOTH static T f(T a, T b) { return T(a != b); } };
struct Lt { template <class M, class T> HEED_BOTH static T f(T a, T b) { return T(a < b); } };
struct Le { template <class M, class T> HEED_BOTH static T f(T a, T b) { return T(a <= b); } };
struct Gt { template <class M, class T> HEED_BOTH static T f(T a, T b) { return T(a > b); } };
struct Ge { template <class M, class T> HEED_BOTH static T f(T a, T b) { return T(a >= b); } };

}  // namespace formula

// Calls fn(formula::X{}) for the formula that `op` names.
template <class Fn>
void with_formula(Unary op, Fn&& fn) {
  switch (op) {
    case Unary::affine: return fn(formula::Affine{});
    case Unary::reciprocal: return fn(formula::Reciprocal{});
    case Unary::exp: return fn(formula::Exp{});
    case Unary::log: return fn(formula::Log{});
    case Unary::sqrt: return fn(formula::Sqrt{});
    case Unary::rsqrt: return fn(formula::Rsqrt{});
    case Unary::pow: return fn(formula::Pow{});
    case Unary::sin: return fn(formula::Sin{});
    case Unary::cos: return fn(formula::Cos{});
    case Unary::tanh: return fn(formula::Tanh{});
    case Unary::sigmoid: return fn(formula::Sigmoid{});
    case Unary::relu: return fn(formula::Relu{});
    case Unary::gelu: return fn(formula::Gelu{});
    case Unary::gelu_tanh: return fn(formula::GeluTanh{});
    case Unary::silu: return fn(formula::Silu{});
    case Unary::erf: return fn(formula::Erf{});
    case Unary::abs: return fn(formula::Abs{});
    case Unary::clamp: return fn(formula::Clamp{});
  }
}

// What df reads of its x and y.
constexpr bool derivative_reads_y(Unary op) {
  return op == Unary::reciprocal || op == Unary::exp || op == Unary::sqrt || op == Unary::rsqrt || op == Unary::tanh ||
         op == Unary::sigmoid;
}
constexpr bool derivative_reads_x(Unary op) { return op == Unary::rsqrt || (op != Unary::affine && !derivative_reads_y(op)); }

template <class Fn>
void with_formula(Binary op, Fn&& fn) {
  switch (op) {
    case Binary::add: return fn(formula::Add{});
    case Binary::sub: return fn(formula::Sub{});
    case Binary::mul: return fn(formula::Mul{});
    case Binary::div: return fn(formula::Div{});
    case Binary::pow: return fn(formula::PowB{});
    case Binary::maximum: return fn(formula::Maximum{});
    case Binary::minimum: return fn(formula::Minimum{});
    case Binary::eq: return fn(formula::Eq{});
    case Binary::ne: return fn(formula::Ne{});
    case Binary::lt: return fn(formula::Lt{});
    case Binary::le: return fn(formula::Le{});
    case Binary::gt: return fn(formula::Gt{});
    case Binary::ge: return fn(formula::Ge{});
  }
}

}  // namespace heed
