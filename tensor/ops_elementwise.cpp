#include "tensor/checks.h"

namespace heed {

namespace {

Tensor binary(const char* name, Binary op, const Tensor& x, const Tensor& y) {
  const Tensor a = checks::floats(name, x), b = checks::floats(name, y);
  checks::same_kind(name, a, b);
  const Shape shape = broadcast_shapes(name, a.shape(), b.shape());
  Tensor out(shape, a.dtype(), a.device());
  a.device().binary(op, out.view(), a.expand(shape).view(), b.expand(shape).view());
  return out;
}

Tensor named_unary(const char* name, Unary op, const Tensor& x, double p = 0, double q = 0) {
  const Tensor a = checks::floats(name, x);
  Tensor y(a.shape(), a.dtype(), a.device());
  a.device().unary(op, y.view(), a.view(), p, q);
  return y;
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return binary("add", Binary::add, a, b); }
Tensor sub(const Tensor& a, const Tensor& b) { return binary("sub", Binary::sub, a, b); }
Tensor mul(const Tensor& a, const Tensor& b) { return binary("mul", Binary::mul, a, b); }
Tensor div(const Tensor& a, const Tensor& b) { return binary("div", Binary::div, a, b); }
Tensor pow(const Tensor& a, const Tensor& b) { return binary("pow", Binary::pow, a, b); }
Tensor maximum(const Tensor& a, const Tensor& b) { return binary("maximum", Binary::maximum, a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return binary("minimum", Binary::minimum, a, b); }
Tensor eq(const Tensor& a, const Tensor& b) { return binary("eq", Binary::eq, a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return binary("ne", Binary::ne, a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return binary("lt", Binary::lt, a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return binary("le", Binary::le, a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return binary("gt", Binary::gt, a, b); }
Tensor ge(const Tensor& a, const Tensor& b) { return binary("ge", Binary::ge, a, b); }

Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y) {
  const Tensor a = checks::floats("where", x), b = checks::floats("where", y);
  checks::same_kind("where", a, b);
  if (!condition.defined()) throw UsageError("where: the condition is undefined");
  checks::same_device("where", a, condition, "the condition", 2);
  const Shape shape = broadcast_shapes("where", condition.shape(), broadcast_shapes("where", a.shape(), b.shape()));
  Tensor out(shape, a.dtype(), a.device());
  a.device().where(out.view(), condition.expand(shape).view(), a.expand(shape).view(), b.expand(shape).view());
  return out;
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  if (!mask.defined() || !broadcastable_to(mask.shape(), x.shape())) {
    throw ShapeError(text("masked_fill: the mask ", mask.shape(), " does not broadcast to ", operand(0, "x", x.shape())));
  }
  const Tensor a = checks::floats("masked_fill", x);
  Tensor filler({}, a.dtype(), a.device());
  a.device().fill(filler.view(), value);
  return where(mask, filler, a);
}

Tensor unary(Unary op, const Tensor& x, double p, double q) { return named_unary("unary", op, x, p, q); }

Tensor unary_grad(Unary op, const Tensor& dy_in, const Tensor& x, const Tensor& y, double p, double q) {
  const Tensor dy = checks::floats("unary_grad", dy_in);
  if (x.defined() || derivative_reads_x(op)) checks::matches("unary_grad", "x", x, dy.shape(), dy);
  if (y.defined() || derivative_reads_y(op)) checks::matches("unary_grad", "y", y, dy.shape(), dy);
  Tensor dx(dy.shape(), dy.dtype(), dy.device());
  dy.device().unary_grad(op, dx.view(), dy.view(), x.view(), y.view(), p, q);
  return dx;
}

Tensor affine(const Tensor& x, double factor, double term) { return named_unary("affine", Unary::affine, x, factor, term); }
Tensor neg(const Tensor& x) { return named_unary("neg", Unary::affine, x, -1, 0); }
Tensor reciprocal(const Tensor& x) { return named_unary("reciprocal", Unary::reciprocal, x); }
Tensor exp(const Tensor& x) { return named_unary("exp", Unary::exp, x); }
Tensor log(const Tensor& x) { return named_unary("log", Unary::log, x); }
Tensor sqrt(const Tensor& x) { return named_unary("sqrt", Unary::sqrt, x); }
Tensor rsqrt(const Tensor& x) { return named_unary("rsqrt", Unary::rsqrt, x); }
Tensor pow(const Tensor& x, double exponent) { return named_unary("pow", Unary::pow, x, exponent); }
Tensor sin(const Tensor& x) { return named_unary("sin", Unary::sin, x); }
Tensor cos(const Tensor& x) { return named_unary("cos", Unary::cos, x); }
Tensor tanh(const Tensor& x) { return named_unary("tanh", Unary::tanh, x); }
Tensor sigmoid(const Tensor& x) { return named_unary("sigmoid", Unary::sigmoid, x); }
Tensor relu(const Tensor& x) { return named_unary("relu", Unary::relu, x); }
Tensor gelu(const Tensor& x) { return named_unary("gelu", Unary::gelu, x); }
Tensor gelu_tanh(const Tensor& x) { return named_unary("gelu_tanh", Unary::gelu_tanh, x); }
Tensor silu(const Tensor& x) { return named_unary("silu", Unary::silu, x); }
Tensor erf(const Tensor& x) { return named_unary("erf", Unary::erf, x); }
Tensor abs(const Tensor& x) { return named_unary("abs", Unary::abs, x); }

Tensor clamp(const Tensor& x, double low, double high) {
  if (!(low <= high)) throw NumericError(text("clamp: the lower bound ", low, " is above the upper bound ", high));
  return named_unary("clamp", Unary::clamp, x, low, high);
}

Tensor operator/(const Tensor& a, double b) {
  Tensor divisor({}, a.dtype(), a.device());
  a.device().fill(divisor.view(), b);
  return div(a, divisor);
}

Tensor dropout(const Tensor& x, const Dropout& dropout) {
  if (!(dropout.p >= 0 && dropout.p <= 1)) throw NumericError(text("dropout: p is ", dropout.p, ", it must be between 0 and 1"));
  const Tensor a = checks::floats("dropout", x);
  Tensor y(a.shape(), a.dtype(), a.device());
  a.device().dropout(y.view(), a.view(), dropout);
  return y;
}

}  // namespace heed
