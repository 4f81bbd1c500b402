// Functions along one axis: softmax, normalisation, cross-entropy.
#include <cmath>

#include "tensor/checks.h"

namespace heed {

namespace {

using RowKernel = void (Device::*)(View y, View x);
using RowGradKernel = void (Device::*)(View dx, View dy, View y);

// The kernels work along the last axis; another one is moved there and back, as views.
Tensor along(const char* name, RowKernel kernel, const Tensor& input, int axis) {
  const Tensor x = checks::floats(name, input);
  const int a = normalize_axis(name, axis, x.rank());
  Tensor y(x.shape(), x.dtype(), x.device());
  (x.device().*kernel)(y.transpose(a, -1).view(), x.transpose(a, -1).view());
  return y;
}

Tensor along_grad(const char* name, RowGradKernel kernel, const Tensor& dy, const Tensor& y_in, int axis) {
  const Tensor y = checks::floats(name, y_in);
  checks::matches(name, "dy", dy, y.shape(), y);
  const int a = normalize_axis(name, axis, y.rank());
  Tensor dx(y.shape(), y.dtype(), y.device());
  (y.device().*kernel)(dx.transpose(a, -1).view(), dy.transpose(a, -1).view(), y.transpose(a, -1).view());
  return dx;
}

}  // namespace

Tensor softmax(const Tensor& x, int axis) { return along("softmax", &Device::softmax, x, axis); }
Tensor log_softmax(const Tensor& x, int axis) { return along("log_softmax", &Device::log_softmax, x, axis); }
Tensor softmax_grad(const Tensor& dy, const Tensor& y, int axis) { return along_grad("softmax_grad", &Device::softmax_grad, dy, y, axis); }
Tensor log_softmax_grad(const Tensor& dy, const Tensor& y, int axis) {
  return along_grad("log_softmax_grad", &Device::log_softmax_grad, dy, y, axis);
}

// ---- normalisation over the last axis

namespace {

void check_norm(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  if (!(eps >= 0)) throw NumericError(text(op, ": eps is ", eps, ", it must not be negative"));
  if (x.rank() == 0) throw ShapeError(text(op, ": x must have an axis to normalise over"));
  const Shape row = {x.shape().back()};
  if ((weight.defined() && !(weight.shape() == row)) || (bias.defined() && !(bias.shape() == row))) {
    throw ShapeError(text(op, ": ", operand(0, "x", x.shape()), " needs weight and bias of shape ", row, ", got ",
                          weight.defined() ? operand(1, "weight", weight.shape()) : "no weight", " and ",
                          bias.defined() ? operand(2, "bias", bias.shape()) : "no bias"));
  }
  if (weight.defined()) checks::same_kind(op, x, weight, "weight");
  if (bias.defined()) checks::same_kind(op, x, bias, "bias", 2);
}

Shape statistic_shape(const Tensor& x) {
  Shape shape = x.shape();
  shape[shape.rank() - 1] = 1;
  return shape;
}

Tensor row_statistic(const Tensor& x) { return Tensor(statistic_shape(x), x.dtype(), x.device()); }

// One of the numbers that the forward found for each row, as the kernels read it.
Tensor given_statistic(const char* op, const char* what, const Tensor& statistic, const Tensor& x) {
  checks::matches(op, what, statistic, statistic_shape(x), x);
  return statistic.to_contiguous();
}

Tensor like_if(bool needed, const Shape& shape, const Tensor& x) { return needed ? Tensor(shape, x.dtype(), x.device()) : Tensor(); }

}  // namespace

NormResult layer_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps) {
  const Tensor x = checks::floats("layer_norm", input);
  check_norm("layer_norm", x, weight, bias, eps);
  NormResult r{Tensor(x.shape(), x.dtype(), x.device()), row_statistic(x), row_statistic(x)};
  x.device().layer_norm(r.y.view(), r.mean.view(), r.rstd.view(), x.view(), weight.view(), bias.view(), eps);
  return r;
}

NormGrad layer_norm_grad(const Tensor& dy, const Tensor& x_in, const Tensor& weight, const Tensor& mean_in, const Tensor& rstd_in,
                         bool need_dx, bool need_dw, bool need_db) {
  const Tensor x = checks::floats("layer_norm_grad", x_in);
  check_norm("layer_norm_grad", x, weight, {}, 0);
  checks::matches("layer_norm_grad", "dy", dy, x.shape(), x);
  const Tensor mean = given_statistic("layer_norm_grad", "mean", mean_in, x), rstd = given_statistic("layer_norm_grad", "rstd", rstd_in, x);
  const Shape row = {x.shape().back()};
  NormGrad g{like_if(need_dx, x.shape(), x), like_if(need_dw, row, x), like_if(need_db, row, x)};
  x.device().layer_norm_grad(g.dx.view(), g.dw.view(), g.db.view(), dy.view(), x.view(), weight.view(), mean.view(), rstd.view());
  return g;
}

NormResult rms_norm(const Tensor& input, const Tensor& weight, double eps) {
  const Tensor x = checks::floats("rms_norm", input);
  check_norm("rms_norm", x, weight, {}, eps);
  NormResult r{Tensor(x.shape(), x.dtype(), x.device()), {}, row_statistic(x)};
  x.device().rms_norm(r.y.view(), r.rstd.view(), x.view(), weight.view(), eps);
  return r;
}

NormGrad rms_norm_grad(const Tensor& dy, const Tensor& x_in, const Tensor& weight, const Tensor& rrms_in, bool need_dx, bool need_dw) {
  const Tensor x = checks::floats("rms_norm_grad", x_in);
  check_norm("rms_norm_grad", x, weight, {}, 0);
  checks::matches("rms_norm_grad", "dy", dy, x.shape(), x);
  const Tensor rrms = given_statistic("rms_norm_grad", "rrms", rrms_in, x);
  NormGrad g{like_if(need_dx, x.shape(), x), like_if(need_dw, {x.shape().back()}, x), {}};
  x.device().rms_norm_grad(g.dx.view(), g.dw.view(), dy.view(), x.view(), weight.view(), rrms.view());
  return g;
}

// ---- cross-entropy

namespace {

CrossEntropyOptions options_of(const CrossEntropySettings& s) { return {s.ignore_index, s.label_smoothing, s.class_weight.view()}; }

void check_targets(const char* op, const Tensor& logits, const Tensor& target, const CrossEntropySettings& s) {
  checks::is_index(op, target, logits, "target");
  if (logits.rank() != 2 || !(target.shape() == Shape{logits.size(0)})) {
    throw ShapeError(text(op, ": ", operand(0, "logits", logits.shape()), " and target ", target.shape(), " must be (N, C) and (N,)"));
  }
  if (!(s.label_smoothing >= 0 && s.label_smoothing <= 1)) {
    throw NumericError(text(op, ": label_smoothing is ", s.label_smoothing, ", it must be between 0 and 1"));
  }
  if (s.class_weight.defined()) checks::matches(op, "class_weight", s.class_weight, {logits.size(1)}, logits);
  if (!target.device().on_host()) return;  // such a device checks its own
  const std::vector<int32_t> values = target.to_vector<int32_t>();
  const int64_t classes = logits.size(1);
  for (size_t row = 0; row < values.size(); row++) {
    if (values[row] != s.ignore_index && (values[row] < 0 || values[row] >= classes)) {
      throw IndexError(text(op, ": target ", values[row], " in row ", row, " is outside [0, ", classes, ") and is not ignore_index ",
                            s.ignore_index));
    }
  }
}

// NaN is named where it enters, and not found in every weight a step later.
void check_losses(const Tensor& losses, const Tensor& logits) {
  if (!losses.device().on_host()) return;
  const std::vector<double> values = losses.to_vector<double>();
  for (size_t row = 0; row < values.size(); row++) {
    if (!std::isnan(values[row])) continue;
    const std::vector<double> x = logits.select(0, static_cast<int64_t>(row)).to_vector<double>();
    size_t c = 0;
    while (c + 1 < x.size() && std::isfinite(x[c])) c++;
    throw NumericError(text("cross_entropy: the loss is NaN in row ", row, ", where ", operand(0, "logits", logits.shape()), " have ", x[c], " for class ", c));
  }
}

}  // namespace

CrossEntropyResult cross_entropy_rows(const Tensor& input, const Tensor& target, const CrossEntropySettings& settings) {
  const Tensor logits = checks::floats("cross_entropy", input);
  check_targets("cross_entropy", logits, target, settings);
  const Shape rows = target.shape();
  CrossEntropyResult r{Tensor(rows, logits.dtype(), logits.device()), Tensor(rows, logits.dtype(), logits.device()),
                       Tensor(rows, logits.dtype(), logits.device())};
  logits.device().cross_entropy(r.loss.view(), r.weight.view(), r.lse.view(), logits.view(), target.view(), options_of(settings));
  check_losses(r.loss, logits);
  return r;
}

Tensor cross_entropy_grad(const Tensor& dloss, const Tensor& lse_in, const Tensor& input, const Tensor& target,
                          const CrossEntropySettings& settings) {
  const Tensor logits = checks::floats("cross_entropy_grad", input);
  check_targets("cross_entropy_grad", logits, target, settings);
  checks::matches("cross_entropy_grad", "dloss", dloss, target.shape(), logits);
  checks::matches("cross_entropy_grad", "lse", lse_in, target.shape(), logits);
  const Tensor lse = lse_in.to_contiguous();
  Tensor dlogits(logits.shape(), logits.dtype(), logits.device());
  logits.device().cross_entropy_grad(dlogits.view(), dloss.view(), lse.view(), logits.view(), target.view(), options_of(settings));
  return dlogits;
}

}  // namespace heed
