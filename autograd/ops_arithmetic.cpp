// Differentiable elementwise functions of two operands. Operands broadcast; the engine sums a gradient back to its
// input's shape.
#include "autograd/ops.h"

namespace heed {

namespace {

Tensor zero_like(const Tensor& x) {  // rank 0, of x's dtype, on x's device
  Tensor zero({}, x.dtype(), x.device());
  return zero.fill_(0);
}

// What a mask hides has no gradient, even where the derivative is infinite: 0 * inf would be NaN.
Tensor zero_where_zero(const Tensor& dy, const Tensor& dx) { return where(dy, dx, zero_like(dx)); }

}  // namespace

// ---- y = a + b
struct Add final : Node {
  static constexpr Text text{"add", "y = a + b", "da = dy,  db = dy"};

  Tensor forward(const Tensor& a, const Tensor& b) { return heed::add(a, b); }

  void backward(const Tensor& dy) override {
    give(0, dy);
    give(1, dy);
  }
};
Variable add(const Variable& a, const Variable& b, Site at) { return record<Add>(at, a, b); }

// ---- y = a - b
struct Sub final : Node {
  static constexpr Text text{"sub", "y = a - b", "da = dy,  db = -dy"};

  Tensor forward(const Tensor& a, const Tensor& b) { return heed::sub(a, b); }

  void backward(const Tensor& dy) override {
    give(0, dy);
    if (needs(1)) give(1, -dy);
  }
};
Variable sub(const Variable& a, const Variable& b, Site at) { return record<Sub>(at, a, b); }

// ---- y = a b
struct Mul final : Node {
  static constexpr Text text{"mul", "y = a b", "da = dy b,  db = dy a"};
  Saved a{this}, b{this};

  Tensor forward(const Tensor& a_in, const Tensor& b_in) {
    if (needs(0)) b = b_in;
    if (needs(1)) a = a_in;
    return heed::mul(a_in, b_in);
  }

  void backward(const Tensor& dy) override {
    if (needs(0)) give(0, dy * b.get());
    if (needs(1)) give(1, dy * a.get());
  }
};
Variable mul(const Variable& a, const Variable& b, Site at) { return record<Mul>(at, a, b); }

// ---- y = a / b
struct Div final : Node {
  static constexpr Text text{"div", "y = a / b", "da = dy / b,  db = -dy y / b"};
  Saved b{this}, y{this};

  Tensor forward(const Tensor& a_in, const Tensor& b_in) {
    b = b_in;
    const Tensor quotient = heed::div(a_in, b_in);
    if (needs(1)) y = quotient;
    return quotient;
  }

  void backward(const Tensor& dy) override {
    const Tensor da = zero_where_zero(dy, dy / b.get());
    give(0, da);
    if (needs(1)) give(1, zero_where_zero(da, -(da * y.get())));
  }
};
Variable div(const Variable& a, const Variable& b, Site at) { return record<Div>(at, a, b); }

// ---- y = a ^ b
struct Pow final : Node {
  static constexpr Text text{"pow", "y = a^b",
                             "da = dy b a^(b - 1),  db = dy y log a  (a^0 gives da = 0; 0^b gives db = 0)"};
  Saved a{this}, b{this}, y{this};

  Tensor forward(const Tensor& a_in, const Tensor& b_in) {
    a = a_in;
    b = b_in;
    return y = heed::pow(a_in, b_in);
  }

  void backward(const Tensor& dy) override {
    const Tensor zero = zero_like(dy);
    if (needs(0)) {
      const Tensor slope = where(b, b.get() * heed::pow(a.get(), b.get() - 1), zero);
      give(0, zero_where_zero(dy, dy * slope));
    }
    if (needs(1)) {
      const Tensor slope = where(a, y.get() * heed::log(a.get()), zero);
      give(1, zero_where_zero(dy, dy * slope));
    }
  }
};
Variable pow(const Variable& a, const Variable& b, Site at) { return record<Pow>(at, a, b); }

// ---- y = max(a, b)
struct Maximum final : Node {
  static constexpr Text text{"maximum", "y = max(a, b)",
                             "da = dy [a > b] + dy/2 [a = b],  db = dy [b > a] + dy/2 [a = b]"};
  Saved a{this}, b{this};

  Tensor forward(const Tensor& a_in, const Tensor& b_in) { return heed::maximum(a = a_in, b = b_in); }

  void backward(const Tensor& dy) override {
    const Tensor half = eq(a, b) * 0.5;
    if (needs(0)) give(0, dy * (gt(a, b) + half));
    if (needs(1)) give(1, dy * (lt(a, b) + half));
  }
};
Variable maximum(const Variable& a, const Variable& b, Site at) { return record<Maximum>(at, a, b); }

// ---- y = min(a, b)
struct Minimum final : Node {
  static constexpr Text text{"minimum", "y = min(a, b)",
                             "da = dy [a < b] + dy/2 [a = b],  db = dy [b < a] + dy/2 [a = b]"};
  Saved a{this}, b{this};

  Tensor forward(const Tensor& a_in, const Tensor& b_in) { return heed::minimum(a = a_in, b = b_in); }

  void backward(const Tensor& dy) override {
    const Tensor half = eq(a, b) * 0.5;
    if (needs(0)) give(0, dy * (lt(a, b) + half));
    if (needs(1)) give(1, dy * (gt(a, b) + half));
  }
};
Variable minimum(const Variable& a, const Variable& b, Site at) { return record<Minimum>(at, a, b); }

// ---- y = condition ? a : b. Chosen, not multiplied by 0: a NaN in what was not chosen stays there.
struct Where final : Node {
  static constexpr Text text{"where", "y = condition ? a : b", "da = condition ? dy : 0,  db = condition ? 0 : dy"};
  Saved condition{this};

  Tensor forward(const Tensor& condition_in, const Tensor& a, const Tensor& b) {
    return heed::where(condition = condition_in, a, b);
  }

  void backward(const Tensor& dy) override {
    if (needs(0)) give(0, heed::where(condition, dy, zero_like(dy)));
    if (needs(1)) give(1, heed::where(condition, zero_like(dy), dy));
  }
};
Variable where(const Tensor& condition, const Variable& a, const Variable& b, Site at) {
  return record<Where>(at, condition, a, b);
}

// ---- y = mask ? value : x
struct MaskedFill final : Node {
  static constexpr Text text{"masked_fill", "y = mask ? value : x", "dx = mask ? 0 : dy"};
  Saved mask{this};

  Tensor forward(const Tensor& x, const Tensor& mask_in, double value) {
    return heed::masked_fill(x, mask = mask_in, value);
  }

  void backward(const Tensor& dy) override { give(0, heed::masked_fill(dy, mask, 0)); }
};
Variable masked_fill(const Variable& x, const Tensor& mask, double value, Site at) {
  return record<MaskedFill>(at, x, mask, value);
}

// ---- operators: with a number they need no second tensor, but for a quotient, which is rounded once

namespace {

Variable constant_like(double number, const Variable& x) {
  Tensor constant({}, x.dtype(), x.value().device());
  return Variable(constant.fill_(number));
}

}  // namespace

Variable operator+(const Operand& a, const Operand& b) {
  if (a.is_number) return affine(b.variable, 1, a.number, a.site);
  if (b.is_number) return affine(a.variable, 1, b.number, a.site);
  return add(a.variable, b.variable, a.site);
}

Variable operator-(const Operand& a, const Operand& b) {
  if (a.is_number) return affine(b.variable, -1, a.number, a.site);
  if (b.is_number) return affine(a.variable, 1, -b.number, a.site);
  return sub(a.variable, b.variable, a.site);
}

Variable operator*(const Operand& a, const Operand& b) {
  if (a.is_number) return affine(b.variable, a.number, 0, a.site);
  if (b.is_number) return affine(a.variable, b.number, 0, a.site);
  return mul(a.variable, b.variable, a.site);
}

Variable operator/(const Operand& a, const Operand& b) {
  if (a.is_number) return div(constant_like(a.number, b.variable), b.variable, a.site);
  if (b.is_number) return div(a.variable, constant_like(b.number, a.variable), a.site);
  return div(a.variable, b.variable, a.site);
}

Variable operator-(const Operand& x) { return neg(x.variable, x.site); }

}  // namespace heed
