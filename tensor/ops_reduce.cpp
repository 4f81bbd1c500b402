#include "tensor/checks.h"

namespace heed {

namespace {

// Which axes are reduced; all if none is named. ShapeError if one is named twice.
std::vector<bool> reduced_axes(const char* op, const Shape& shape, const Axes& axes) {
  std::vector<bool> reduced(static_cast<size_t>(shape.rank()), axes.empty());
  for (int axis : axes) {
    const size_t a = static_cast<size_t>(normalize_axis(op, axis, shape.rank()));
    if (reduced[a]) throw ShapeError(text(op, ": axis ", axis, " is named twice"));
    reduced[a] = true;
  }
  return reduced;
}

Shape kept_shape(const Shape& shape, const std::vector<bool>& reduced) {  // size 1 along each reduced axis
  Shape kept = shape;
  for (int i = 0; i < shape.rank(); i++) {
    if (reduced[static_cast<size_t>(i)]) kept[i] = 1;
  }
  return kept;
}

Tensor drop_axes(const Tensor& y, const std::vector<bool>& reduced) {
  Shape shape;
  for (int i = 0; i < y.rank(); i++) {
    if (!reduced[static_cast<size_t>(i)]) shape.push_back(y.shape()[i]);
  }
  return y.reshape(shape);
}

Tensor reduce(const char* name, Reduction op, const Tensor& input, const Axes& axes, bool keepdim) {
  const Tensor x = checks::floats(name, input);
  const std::vector<bool> reduced = reduced_axes(name, x.shape(), axes);
  const Shape shape = kept_shape(x.shape(), reduced);
  if (op != Reduction::sum && x.numel() == 0 && shape.numel() > 0) {
    throw ShapeError(text(name, ": ", operand(0, "x", x.shape()), " has no elements to choose from"));
  }
  Tensor y(shape, x.dtype(), x.device());
  x.device().reduce(op, y.view(), x.view());
  return keepdim ? y : drop_axes(y, reduced);
}

}  // namespace

Tensor sum(const Tensor& x, const Axes& axes, bool keepdim) { return reduce("sum", Reduction::sum, x, axes, keepdim); }
Tensor max(const Tensor& x, const Axes& axes, bool keepdim) { return reduce("max", Reduction::max, x, axes, keepdim); }
Tensor min(const Tensor& x, const Axes& axes, bool keepdim) { return reduce("min", Reduction::min, x, axes, keepdim); }

Tensor mean(const Tensor& x, const Axes& axes, bool keepdim) {
  Tensor y = reduce("mean", Reduction::sum, x, axes, keepdim);
  const double n = y.numel() ? static_cast<double>(x.numel()) / static_cast<double>(y.numel()) : 1;
  y.device().unary(Unary::affine, y.view(), y.view(), 1 / n, 0);  // over no elements: 0 * inf = NaN, like NumPy
  return y;
}

Tensor var(const Tensor& x, const Axes& axes, bool keepdim, bool unbiased) {
  const Tensor centred = sub(x, mean(x, axes, true));
  const Tensor squares = sum(mul(centred, centred), axes, keepdim);
  const double n = squares.numel() ? static_cast<double>(x.numel()) / static_cast<double>(squares.numel()) : 1;
  return affine(squares, 1 / (unbiased ? n - 1 : n), 0);
}

Tensor argmax(const Tensor& input, int axis, bool keepdim) {
  const Tensor x = checks::floats("argmax", input);
  const int a = normalize_axis("argmax", axis, x.rank());
  Shape shape = x.shape();
  shape[a] = 1;
  if (x.shape()[a] == 0 && shape.numel() > 0) throw ShapeError(text("argmax: ", operand(0, "x", x.shape()), " has no elements along axis ", axis));
  if (x.shape()[a] > INT32_MAX) throw ShapeError(text("argmax: axis ", axis, " of ", operand(0, "x", x.shape()), " is longer than an i32 counts"));
  Tensor y(shape, DType::i32, x.device());
  x.device().argmax(y.view(), x.view());
  return keepdim ? y : y.squeeze(a);
}

Tensor argmax(const Tensor& x) { return argmax(x.reshape({x.numel()}), 0); }

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  if (!broadcastable_to(shape, x.shape())) throw ShapeError(text("sum_to: ", shape, " does not broadcast to ", operand(0, "x", x.shape())));
  Shape kept = Shape::filled(x.rank() - shape.rank(), 1);
  for (int64_t size : shape) kept.push_back(size);
  const Tensor input = checks::floats("sum_to", x);
  Tensor y(kept, input.dtype(), input.device());
  input.device().reduce(Reduction::sum, y.view(), input.view());
  return y.reshape(shape);
}

Tensor squared_norm(const Tensor& input) {
  const Tensor x = checks::floats("squared_norm", input);
  Tensor y(Shape::filled(x.rank(), 1), DType::f64, x.device());
  x.device().reduce(Reduction::sum_squares, y.view(), x.view());
  return y.reshape({});
}

double sum_of_squares(const Tensor& x) { return squared_norm(x).item(); }

}  // namespace heed
