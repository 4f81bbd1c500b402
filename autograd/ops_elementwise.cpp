// Differentiable elementwise functions of one operand. The derivatives df(x, y) are in tensor/formulas.h, beside the
// functions; a node saves whichever of x and y its df reads.
#include "autograd/ops.h"

namespace heed {

namespace {

// dx = dy df(x, y), and 0 where dy is 0 even if df is infinite: in where(x > 0, log(x), 0) the x = 0 have no gradient,
// not NaN.
Tensor masked_grad(Unary op, const Tensor& dy, const Tensor& x, const Tensor& y, double p = 0) {
  Tensor zero({}, dy.dtype(), dy.device());
  return where(dy, unary_grad(op, dy, x, y, p), zero.fill_(0));
}

}  // namespace

// ---- y = factor x + term
struct Affine final : Node {
  static constexpr Text text{"affine", "y = factor x + term", "dx = factor dy"};
  double factor = 1;

  Tensor forward(const Tensor& x, double factor_in, double term) { return heed::affine(x, factor = factor_in, term); }
  void backward(const Tensor& dy) override { give(0, factor == 1 ? dy : dy * factor); }
};
Variable affine(const Variable& x, double factor, double term, Site at) { return record<Affine>(at, x, factor, term); }

// ---- y = -x
struct Neg final : Node {
  static constexpr Text text{"neg", "y = -x", "dx = -dy"};

  Tensor forward(const Tensor& x) { return -x; }
  void backward(const Tensor& dy) override { give(0, -dy); }
};
Variable neg(const Variable& x, Site at) { return record<Neg>(at, x); }

// ---- y = 1 / x
struct Reciprocal final : Node {
  static constexpr Text text{"reciprocal", "y = 1 / x", "dx = -dy y^2"};
  Saved y{this};

  Tensor forward(const Tensor& x) { return y = heed::reciprocal(x); }
  void backward(const Tensor& dy) override { give(0, masked_grad(Unary::reciprocal, dy, {}, y)); }
};
Variable reciprocal(const Variable& x, Site at) { return record<Reciprocal>(at, x); }

// ---- y = e^x
struct Exp final : Node {
  static constexpr Text text{"exp", "y = exp(x)", "dx = dy y"};
  Saved y{this};

  Tensor forward(const Tensor& x) { return y = heed::exp(x); }
  void backward(const Tensor& dy) override { give(0, masked_grad(Unary::exp, dy, {}, y)); }
};
Variable exp(const Variable& x, Site at) { return record<Exp>(at, x); }

// ---- y = log x
struct Log final : Node {
  static constexpr Text text{"log", "y = log(x)", "dx = dy / x"};
  Saved x{this};

  Tensor forward(const Tensor& x_in) { return heed::log(x = x_in); }
  void backward(const Tensor& dy) override { give(0, masked_grad(Unary::log, dy, x, {})); }
};
Variable log(const Variable& x, Site at) { return record<Log>(at, x); }

// ---- y = x^(1/2)
struct Sqrt final : Node {
  static constexpr Text text{"sqrt", "y = sqrt(x)", "dx = dy / (2 y)"};
  Saved y{this};

  Tensor forward(const Tensor& x) { return y = heed::sqrt(x); }
  void backward(const Tensor& dy) override { give(0, masked_grad(Unary::sqrt, dy, {}, y)); }
};
Variable sqrt(const Variable& x, Site at) { return record<Sqrt>(at, x); }

// ---- y = x^(-1/2)
struct Rsqrt final : Node {
  static constexpr Text text{"rsqrt", "y = 1 / sqrt(x)", "dx = -dy y / (2 x)"};
  Saved x{this}, y{this};

  Tensor forward(const Tensor& x_in) { return y = heed::rsqrt(x = x_in); }
  void backward(const Tensor& dy) override { give(0, masked_grad(Unary::rsqrt, dy, x, y)); }
};
Variable rsqrt(const Variable& x, Site at) { return record<Rsqrt>(at, x); }

// ---- y = x^2
struct Square final : Node {
  static constexpr Text text{"square", "y = x^2", "dx = 2 x dy"};
  Saved x{this};

  Tensor forward(const Tensor& x_in) { return heed::mul(x = x_in, x_in); }
  void backward(const Tensor& dy) override { give(0, dy * (2 * x.get())); }
};
Variable square(const Variable& x, Site at) { return record<Square>(at, x); }

// ---- y = x^p for a number p
struct PowNumber final : Node {
  static constexpr Text text{"pow", "y = x^p", "dx = dy p x^(p - 1)  (0 for p = 0)"};
  Saved x{this};
  double p = 1;

  Tensor forward(const Tensor& x_in, double exponent) { return heed::pow(x = x_in, p = exponent); }
  void backward(const Tensor& dy) override { give(0, masked_grad(Unary::pow, dy, x, {}, p)); }
};
Variable pow(const Variable& x, double exponent, Site at) { return record<PowNumber>(at, x, exponent); }

// ---- y = sin x
struct Sin final : Node {
  static constexpr Text text{"sin", "y = sin(x)", "dx = dy cos(x)"};
  Saved x{this};

  Tensor forward(const Tensor& x_in) { return heed::sin(x = x_in); }
  void backward(const Tensor& dy) override { give(0, unary_grad(Unary::sin, dy, x, {})); }
};
Variable sin(const Variable& x, Site at) { return record<Sin>(at, x); }

// ---- y = cos x
struct Cos final : Node {
  static constexpr Text text{"cos", "y = cos(x)", "dx = -dy sin(x)"};
  Saved x{this};

  Tensor forward(const Tensor& x_in) { return heed::cos(x = x_in); }
  void backward(const Tensor& dy) override { give(0, unary_grad(Unary::cos, dy, x, {})); }
};
Variable cos(const Variable& x, Site at) { return record<Cos>(at, x); }

// ---- y = tanh x
struct Tanh final : Node {
  static constexpr Text text{"tanh", "y = tanh(x)", "dx = dy (1 - y^2)"};
  Saved y{this};

  Tensor forward(const Tensor& x) { return y = heed::tanh(x); }
  void backward(const Tensor& dy) override { give(0, unary_grad(Unary::tanh, dy, {}, y)); }
};
Variable tanh(const Variable& x, Site at) { return record<Tanh>(at, x); }

// ---- y = 1 / (1 + e^-x)
struct Sigmoid final : Node {
  static constexpr Text text{"sigmoid", "y = 1 / (1 + exp(-x))", "dx = dy y (1 - y)"};
  Saved y{this};

  Tensor forward(const Tensor& x) { return y = heed::sigmoid(x); }
  void backward(const Tensor& dy) override { give(0, unary_grad(Unary::sigmoid, dy, {}, y)); }
};
Variable sigmoid(const Variable& x, Site at) { return record<Sigmoid>(at, x); }

// ---- y = max(x, 0)
struct Relu final : Node {
  static constexpr Text text{"relu", "y = max(x, 0)", "dx = dy [x > 0]"};
  Saved y{this};  // y > 0 just where x > 0, and the next op often saves y too

  Tensor forward(const Tensor& x) { return y = heed::relu(x); }
  void backward(const Tensor& dy) override { give(0, unary_grad(Unary::relu, dy, y, {})); }
};
Variable relu(const Variable& x, Site at) { return record<Relu>(at, x); }

// ---- y = x Phi(x), Phi the normal distribution function (Hendrycks & Gimpel 2016)
struct Gelu final : Node {
  static constexpr Text text{"gelu", "y = x Phi(x),  Phi(x) = (1 + erf(x / sqrt 2)) / 2",
                             "dx = dy (Phi(x) + x exp(-x^2 / 2) / sqrt(2 pi))"};
  Saved x{this};

  Tensor forward(const Tensor& x_in) { return heed::gelu(x = x_in); }
  void backward(const Tensor& dy) override { give(0, unary_grad(Unary::gelu, dy, x, {})); }
};
Variable gelu(const Variable& x, Site at) { return record<Gelu>(at, x); }

// ---- the same, approximated by tanh
struct GeluTanh final : Node {
  static constexpr Text text{"gelu_tanh", "y = x/2 (1 + tanh u),  u = sqrt(2/pi) (x + 0.044715 x^3)",
                             "dx = dy ((1 + tanh u) / 2 + x/2 (1 - tanh^2 u) u'),  u' = sqrt(2/pi) (1 + 0.134145 x^2)"};
  Saved x{this};

  Tensor forward(const Tensor& x_in) { return heed::gelu_tanh(x = x_in); }
  void backward(const Tensor& dy) override { give(0, unary_grad(Unary::gelu_tanh, dy, x, {})); }
};
Variable gelu_tanh(const Variable& x, Site at) { return record<GeluTanh>(at, x); }

// ---- y = x sigmoid(x)
struct Silu final : Node {
  static constexpr Text text{"silu", "y = x s,  s = sigmoid(x)", "dx = dy s (1 + x (1 - s))"};
  Saved x{this};

  Tensor forward(const Tensor& x_in) { return heed::silu(x = x_in); }
  void backward(const Tensor& dy) override { give(0, unary_grad(Unary::silu, dy, x, {})); }
};
Variable silu(const Variable& x, Site at) { return record<Silu>(at, x); }

// ---- y = erf x
struct Erf final : Node {
  static constexpr Text text{"erf", "y = erf(x)", "dx = dy 2 / sqrt(pi) exp(-x^2)"};
  Saved x{this};

  Tensor forward(const Tensor& x_in) { return heed::erf(x = x_in); }
  void backward(const Tensor& dy) override { give(0, unary_grad(Unary::erf, dy, x, {})); }
};
Variable erf(const Variable& x, Site at) { return record<Erf>(at, x); }

// ---- y = |x|
struct Abs final : Node {
  static constexpr Text text{"abs", "y = |x|", "dx = dy sign(x),  sign(0) = 0"};
  Saved x{this};

  Tensor forward(const Tensor& x_in) { return heed::abs(x = x_in); }
  void backward(const Tensor& dy) override { give(0, unary_grad(Unary::abs, dy, x, {})); }
};
Variable abs(const Variable& x, Site at) { return record<Abs>(at, x); }

// ---- y = min(max(x, low), high)
struct Clamp final : Node {
  static constexpr Text text{"clamp", "y = min(max(x, low), high)", "dx = dy [low <= x <= high]"};
  Saved x{this};
  double low = 0, high = 0;

  Tensor forward(const Tensor& x_in, double low_in, double high_in) {
    return heed::clamp(x = x_in, low = low_in, high = high_in);
  }
  void backward(const Tensor& dy) override { give(0, unary_grad(Unary::clamp, dy, x, {}, low, high)); }
};
Variable clamp(const Variable& x, double low, double high, Site at) { return record<Clamp>(at, x, low, high); }

// ---- y = kept ? x / (1 - p) : 0. No mask is saved: the same numbers decide again in the backward pass.
struct ApplyDropout final : Node {
  static constexpr Text text{"dropout", "y = x kept / (1 - p),  kept = 0 with probability p, else 1",
                             "dx = dy kept / (1 - p)"};
  Dropout decisions;

  Tensor forward(const Tensor& x, const Dropout& dropout) { return heed::dropout(x, decisions = dropout); }
  void backward(const Tensor& dy) override { give(0, heed::dropout(dy, decisions)); }
};
Variable dropout(const Variable& x, double p, Site at) { return record<ApplyDropout>(at, x, next_dropout(p)); }

}  // namespace heed
