// Differentiable reductions. Backward, the reduced axes are put back with size 1 and the gradient is repeated along
// them: a view.
#include "autograd/ops.h"

namespace heed {

namespace {

// x's shape with 1 in place of each reduced axis; no axes: all of them.
Shape kept_shape(const Shape& x, const Axes& axes) {
  if (axes.empty()) return Shape::filled(x.rank(), 1);
  Shape kept = x;
  for (int axis : axes) kept[normalize_axis("sum", axis, x.rank())] = 1;
  return kept;
}

// How many elements of x were reduced to one of y.
double reduced_count(const Shape& x, const Shape& y) {
  return y.numel() ? static_cast<double>(x.numel()) / static_cast<double>(y.numel()) : 0;
}

}  // namespace

// ---- y = sum x
struct Sum final : Node {
  static constexpr Text text{"sum", "y = sum_i x_i", "dx_i = dy"};
  Shape kept;

  Tensor forward(const Tensor& x, const Axes& axes, bool keepdim) {
    const Tensor y = heed::sum(x, axes, keepdim);
    kept = kept_shape(x.shape(), axes);
    return y;
  }

  void backward(const Tensor& dy) override { give(0, dy.reshape(kept).expand(input(0)->shape())); }
};
Variable sum(const Variable& x, const Axes& axes, bool keepdim, Site at) { return record<Sum>(at, x, axes, keepdim); }

// ---- y = sum x / n
struct Mean final : Node {
  static constexpr Text text{"mean", "y = sum_i x_i / n", "dx_i = dy / n"};
  Shape kept;

  Tensor forward(const Tensor& x, const Axes& axes, bool keepdim) {
    const Tensor y = heed::mean(x, axes, keepdim);
    kept = kept_shape(x.shape(), axes);
    return y;
  }

  void backward(const Tensor& dy) override {
    const Shape& x = input(0)->shape();
    give(0, (dy / reduced_count(x, dy.shape())).reshape(kept).expand(x));
  }
};
Variable mean(const Variable& x, const Axes& axes, bool keepdim, Site at) { return record<Mean>(at, x, axes, keepdim); }

namespace {

// The gradient of an extreme value y: every x_i that equals it gets an equal share.
Tensor extreme_grad(const Tensor& dy, const Tensor& x, const Tensor& y, const Axes& axes) {
  const Tensor is_extreme = eq(x, y), count = sum(is_extreme, axes, true);
  return is_extreme * (dy / count);
}

}  // namespace

// ---- y = max x
struct Max final : Node {
  static constexpr Text text{"max", "y = max_i x_i", "dx_i = dy [x_i = y] / n,  n = how many x_i equal y"};
  Saved x{this}, y{this};  // y with the reduced axes kept
  Axes axes;

  Tensor forward(const Tensor& x_in, const Axes& axes_in, bool keepdim) {
    const Tensor result = heed::max(x = x_in, axes = axes_in, keepdim);
    y = result.reshape(kept_shape(x_in.shape(), axes));
    return result;
  }

  void backward(const Tensor& dy) override { give(0, extreme_grad(dy.reshape(y.get().shape()), x, y, axes)); }
};
Variable max(const Variable& x, const Axes& axes, bool keepdim, Site at) { return record<Max>(at, x, axes, keepdim); }

// ---- y = min x
struct Min final : Node {
  static constexpr Text text{"min", "y = min_i x_i", "dx_i = dy [x_i = y] / n,  n = how many x_i equal y"};
  Saved x{this}, y{this};  // y with the reduced axes kept
  Axes axes;

  Tensor forward(const Tensor& x_in, const Axes& axes_in, bool keepdim) {
    const Tensor result = heed::min(x = x_in, axes = axes_in, keepdim);
    y = result.reshape(kept_shape(x_in.shape(), axes));
    return result;
  }

  void backward(const Tensor& dy) override { give(0, extreme_grad(dy.reshape(y.get().shape()), x, y, axes)); }
};
Variable min(const Variable& x, const Axes& axes, bool keepdim, Site at) { return record<Min>(at, x, axes, keepdim); }

// ---- y = sum (x - m)^2 / d, m = mean x, d = n - 1 (unbiased) or n. The change of m itself cancels, as sum (x - m) =
// 0.
struct Var final : Node {
  static constexpr Text text{"var", "y = sum_i (x_i - m)^2 / d,  m = mean x,  d = n - 1, or n if biased",
                             "dx_i = dy 2 (x_i - m) / d"};
  Saved x{this};
  Axes axes;
  double d = 1;

  Tensor forward(const Tensor& x_in, const Axes& axes_in, bool keepdim, bool unbiased) {
    const Tensor y = heed::var(x = x_in, axes = axes_in, keepdim, unbiased);
    d = reduced_count(x_in.shape(), y.shape()) - (unbiased ? 1 : 0);
    return y;
  }

  void backward(const Tensor& dy) override {
    const Tensor centred = x.get() - heed::mean(x, axes, true);
    give(0, centred * (dy * (2 / d)).reshape(kept_shape(centred.shape(), axes)));
  }
};
Variable var(const Variable& x, const Axes& axes, bool keepdim, bool unbiased, Site at) {
  return record<Var>(at, x, axes, keepdim, unbiased);
}

}  // namespace heed
