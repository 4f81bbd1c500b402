// Matrix products, convolution by unfolding, and attention.
#include <algorithm>
#include <cmath>

#include "tensor/checks.h"

namespace heed {

namespace {

Shape leading(const Shape& shape) {  // all but the last two axes
  Shape out = shape;
  out.erase(out.rank() - 1);
  out.erase(out.rank() - 1);
  return out;
}

Shape with_matrix(Shape lead, int64_t rows, int64_t columns) {
  lead.push_back(rows);
  lead.push_back(columns);
  return lead;
}

// What a device multiplies: halves of one kind as they are, everything else as f32 or f64.
struct Factors {
  Tensor a, b;
};
Factors factors(const char* op, const Tensor& a, const Tensor& b) {
  if (a.defined() && b.defined() && a.dtype() == b.dtype() && is_half(a.dtype())) return {a, b};
  return {checks::floats(op, a), checks::floats(op, b)};
}

}  // namespace

Tensor matmul(const Tensor& left, const Tensor& right) {
  auto [a, b] = factors("matmul", left, right);
  checks::same_kind("matmul", a, b);
  if (a.rank() == 0 || b.rank() == 0) {
    throw ShapeError(text("matmul: ", operand(0, "a", a.shape()), " and ", operand(1, "b", b.shape()), " must have an axis each"));
  }
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a = a.unsqueeze(0);
  if (column) b = b.unsqueeze(1);
  if (a.shape().back() != b.shape().back(2)) {
    throw ShapeError(text("matmul: inner sizes differ: ", operand(0, "a", left.shape()), " and ", operand(1, "b", right.shape()),
                          "; a's last must equal b's second to last"));
  }
  Shape lead = leading(a.shape());
  if (!(leading(b.shape()) == lead)) {
    try {
      lead = broadcast_shapes("matmul", lead, leading(b.shape()));
    } catch (const ShapeError&) {
      throw ShapeError(text("matmul: leading axes do not broadcast: ", operand(0, "a", left.shape()), " and ", operand(1, "b", right.shape()),
                            "; all but the last two must be equal or 1"));
    }
  }
  const int64_t m = a.shape().back(2), k = a.shape().back(), n = b.shape().back();
  Tensor c(with_matrix(lead, m, n), is_half(a.dtype()) ? DType::f32 : a.dtype(), a.device());
  a.device().matmul(c.view(), a.expand(with_matrix(lead, m, k)).view(), b.expand(with_matrix(lead, k, n)).view(), 1, 0);
  if (row) c = c.squeeze(-2);
  if (column) c = c.squeeze(-1);
  return c;
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  const auto [x, w] = factors("linear", input, weight);
  if (w.rank() != 2 || x.rank() == 0 || x.shape().back() != w.shape()[1] || (bias.defined() && !(bias.shape() == Shape{w.shape()[0]}))) {
    throw ShapeError(text("linear: ", operand(0, "x", x.shape()), ", ", operand(1, "weight", w.shape()),
                          bias.defined() ? ", " + operand(2, "bias", bias.shape()) : "",
                          "; x's last size must be the weight's second, and the bias as long as the weight's first"));
  }
  Tensor y = matmul(x, w.transpose(0, 1));
  if (bias.defined()) {
    const Tensor b = checks::floats("linear", bias);
    checks::same_kind("linear", is_half(x.dtype()) ? y : x, b, "bias", 2);
    y.device().binary(Binary::add, y.view(), y.view(), b.expand(y.shape()).view());
  }
  return y;
}

// ---- convolution

namespace {

int64_t output_size(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  const int64_t reach = size + 2 * pad - dilation * (kernel - 1) - 1;
  return reach < 0 ? -1 : reach / stride + 1;
}

// ShapeError also if the columns are too many to be counted.
Shape columns_shape(const Shape& x, const ConvOptions& o) {
  const int64_t oh = output_size(x[2], o.kernel_h, o.stride_h, o.pad_h, o.dilation_h);
  const int64_t ow = output_size(x[3], o.kernel_w, o.stride_w, o.pad_w, o.dilation_w);
  if (oh < 0 || ow < 0) {
    throw ShapeError(text("unfold: a kernel of ", o.kernel_h, " x ", o.kernel_w, " does not fit into ", operand(0, "x", x)));
  }
  return {x[0], checked_numel("unfold", {x[1], o.kernel_h, o.kernel_w}), checked_numel("unfold", {oh, ow})};
}

void check_conv(const char* op, const Shape& x, const ConvOptions& o) {
  if (x.rank() != 4) throw ShapeError(text(op, ": ", operand(0, "x", x), " must be (batch, channels, height, width)"));
  const bool positive = o.kernel_h > 0 && o.kernel_w > 0 && o.stride_h > 0 && o.stride_w > 0 && o.dilation_h > 0 && o.dilation_w > 0;
  if (!positive || o.pad_h < 0 || o.pad_w < 0) throw ShapeError(text(op, ": kernel, stride and dilation must be positive, padding not negative"));
  const int64_t largest = std::max({o.kernel_h, o.kernel_w, o.stride_h, o.stride_w, o.dilation_h, o.dilation_w, o.pad_h, o.pad_w});
  if (largest > INT32_MAX) throw ShapeError(text(op, ": a kernel, stride, dilation or padding of ", largest, " is beyond ", INT32_MAX));
}

}  // namespace

Tensor unfold(const Tensor& input, const ConvOptions& options) {
  const Tensor x = checks::floats("unfold", input);
  check_conv("unfold", x.shape(), options);
  Tensor columns(columns_shape(x.shape(), options), x.dtype(), x.device());
  x.device().unfold(columns.view(), x.view(), options);
  return columns;
}

Tensor fold(const Tensor& columns, const Shape& x_shape, const ConvOptions& options) {
  check_conv("fold", x_shape, options);
  const Tensor c = checks::floats("fold", columns).to_contiguous();
  if (!(c.shape() == columns_shape(x_shape, options))) {
    throw ShapeError(text("fold: ", operand(0, "columns", c.shape()), " should be ", columns_shape(x_shape, options), " for an image of shape ", x_shape));
  }
  Tensor x(x_shape, c.dtype(), c.device());
  c.device().fold(x.view(), c.view(), options);
  return x;
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, ConvOptions options, int64_t groups) {
  if (x.rank() != 4 || weight.rank() != 4 || groups < 1 || weight.shape()[0] % groups != 0 || x.shape()[1] != weight.shape()[1] * groups) {
    throw ShapeError(text("conv2d: ", operand(0, "x", x.shape()), " and ", operand(1, "weight", weight.shape()), " with ", groups,
                          " groups; x must be (B, C, H, W) and weight (O, C / groups, kh, kw)"));
  }
  options.kernel_h = weight.shape()[2], options.kernel_w = weight.shape()[3];
  check_conv("conv2d", x.shape(), options);
  const int64_t out = weight.shape()[0], batch = x.shape()[0];
  const int64_t oh = output_size(x.shape()[2], options.kernel_h, options.stride_h, options.pad_h, options.dilation_h);
  const int64_t ow = output_size(x.shape()[3], options.kernel_w, options.stride_w, options.pad_w, options.dilation_w);
  const Tensor columns = unfold(x, options);                                                            // (B, C kh kw, L)
  const Tensor grouped = columns.reshape({batch, groups, columns.size(1) / groups, columns.size(2)});  // (B, G, C/G kh kw, L)
  const Tensor w = weight.reshape({groups, out / groups, columns.size(1) / groups});                   // (G, O/G, C/G kh kw)
  Tensor y = matmul(w, grouped).reshape({batch, out, oh, ow});
  if (bias.defined()) {
    if (!(bias.shape() == Shape{out})) throw ShapeError(text("conv2d: ", operand(2, "bias", bias.shape()), " should be (", out, ",)"));
    checks::same_kind("conv2d", y, bias, "bias", 2);
    y.device().binary(Binary::add, y.view(), y.view(), bias.reshape({out, 1, 1}).expand(y.shape()).view());
  }
  return y;
}

// ---- attention

namespace {

// What the kernel is told, all of it checked, and the tensors behind it.
struct ResolvedAttention {
  AttentionOptions options;
  Tensor lengths, keep;
};

ResolvedAttention resolve(const char* op, const AttentionSettings& s, const Tensor& q, const Tensor& k, const Tensor& v) {
  checks::same_kind(op, q, k, "k");
  checks::same_kind(op, q, v, "v", 2);
  const bool ranks = q.rank() == 4 && k.rank() == 4 && v.rank() == 4;
  if (!ranks || q.size(0) != k.size(0) || q.size(1) != k.size(1) || q.size(3) != k.size(3) || k.size(0) != v.size(0) ||
      k.size(1) != v.size(1) || k.size(2) != v.size(2)) {
    throw ShapeError(text(op, ": ", operand(0, "q", q.shape()), ", ", operand(1, "k", k.shape()), ", ", operand(2, "v", v.shape()),
                          " must be (B, H, T, D), (B, H, S, D), (B, H, S, E)"));
  }
  if (!std::isfinite(s.scale)) throw NumericError(text(op, ": the scale is ", s.scale, ", it must be finite; 0 stands for 1 / sqrt(D)"));
  if (s.window < 0) throw ShapeError(text(op, ": the window is ", s.window, ", it must be positive, or 0 for none"));
  if (!(s.dropout.p >= 0 && s.dropout.p <= 1)) throw NumericError(text(op, ": dropout p is ", s.dropout.p, ", it must be between 0 and 1"));
  const Shape scores = {q.shape()[0], q.shape()[1], q.shape()[2], k.shape()[2]};
  ResolvedAttention r;
  r.options.scale = s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, q.shape()[3])));
  r.options.dropout = s.dropout;
  r.options.mask.causal = s.causal;
  r.options.mask.window = std::min(s.window, scores[2] + scores[3]);  // no two are further apart
  if (s.lengths.defined()) {
    checks::is_index(op, s.lengths, q, "tensor of lengths");
    if (!(s.lengths.shape() == Shape{scores[0]})) {
      throw ShapeError(text(op, ": lengths ", s.lengths.shape(), " must be (", scores[0], ",), one for each sample"));
    }
    checks::index_values(op, s.lengths, scores[3] + 1, "length");
    r.lengths = s.lengths.to_contiguous();
    r.options.mask.lengths = r.lengths.view();
  }
  if (s.keep.defined()) {
    if ((s.keep.rank() != 2 && s.keep.rank() != 4) || !broadcastable_to(s.keep.shape(), scores)) {
      throw ShapeError(text(op, ": the mask ", s.keep.shape(), " must be (T, S) or broadcast from four axes to (B, H, T, S) = ", scores));
    }
    checks::same_device(op, q, s.keep, "the mask", 3);
    r.keep = s.keep.to(q.dtype()).expand(scores);
    r.options.mask.keep = r.keep.view();
  }
  return r;
}

Tensor unit_last(const Tensor& x) { return x.size(-1) <= 1 || x.strides().back() == 1 ? x : x.contiguous_copy(); }

}  // namespace

AttentionResult attention(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionSettings& settings) {
  Tensor q = checks::floats("attention", query), k = checks::floats("attention", key), v = checks::floats("attention", value);
  const ResolvedAttention r = resolve("attention", settings, q, k, v);
  q = unit_last(q), k = unit_last(k), v = unit_last(v);
  // The output is (B, H, T, E) over memory laid out as (B, T, H, E), so that joining the heads is a view.
  Tensor o = Tensor({q.size(0), q.size(2), q.size(1), v.size(3)}, q.dtype(), q.device()).transpose(1, 2);
  Tensor lse({q.size(0), q.size(1), q.size(2)}, q.dtype(), q.device());
  q.device().attention(o.view(), lse.view(), q.view(), k.view(), v.view(), r.options);
  return {o, lse};
}

AttentionGrad attention_grad(const Tensor& dout, const Tensor& q_in, const Tensor& k_in, const Tensor& v_in, const AttentionResult& result,
                             const AttentionSettings& settings) {
  const char* op = "attention_grad";
  Tensor q = checks::floats(op, q_in), k = checks::floats(op, k_in), v = checks::floats(op, v_in);
  const ResolvedAttention r = resolve(op, settings, q, k, v);
  const Shape out = {q.size(0), q.size(1), q.size(2), v.size(3)};
  checks::matches(op, "dout", dout, out, q);
  checks::matches(op, "the result's o", result.o, out, q);
  checks::matches(op, "the result's lse", result.lse, {q.size(0), q.size(1), q.size(2)}, q);
  q = unit_last(q), k = unit_last(k), v = unit_last(v);
  const Tensor dy = unit_last(dout), o = unit_last(result.o), lse = result.lse.to_contiguous();
  const auto like = [](const Tensor& x) {  // x's shape over memory laid out as (B, T, H, D)
    return Tensor({x.size(0), x.size(2), x.size(1), x.size(3)}, x.dtype(), x.device()).transpose(1, 2);
  };
  AttentionGrad grad{like(q), like(k), like(v)};
  q.device().attention_grad(grad.dq.view(), grad.dk.view(), grad.dv.view(), dy.view(), q.view(), k.view(), v.view(), o.view(),
                            lse.view(), r.options);
  return grad;
}

}  // namespace heed
