// Functions on tensors: they check shapes and dtypes, make the output and call one kernel of the device.
//
// Operands of elementwise functions broadcast like NumPy's. f16 and bf16 are widened to f32 first. Operands must live on the
// same device (DeviceError) and floats must have the same dtype (DTypeError). All errors are heed::Error and name the op.
// Derivatives are in autograd/.
#pragma once
#include <vector>

#include "tensor/tensor.h"

namespace heed {

using Axes = std::vector<int>;  // empty: all axes

// ---- elementwise, two operands
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
Tensor pow(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
// Comparisons give 1 or 0 in the operands' dtype, so that they can be multiplied with.
Tensor eq(const Tensor& a, const Tensor& b);
Tensor ne(const Tensor& a, const Tensor& b);
Tensor lt(const Tensor& a, const Tensor& b);
Tensor le(const Tensor& a, const Tensor& b);
Tensor gt(const Tensor& a, const Tensor& b);
Tensor ge(const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);  // condition != 0 ? a : b
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);    // mask != 0 ? value : x; mask broadcasts to x

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }

// ---- elementwise, one operand
Tensor affine(const Tensor& x, double factor, double term);  // factor x + term
Tensor neg(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor pow(const Tensor& x, double exponent);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor relu(const Tensor& x);
Tensor gelu(const Tensor& x);       // exact, with erf
Tensor gelu_tanh(const Tensor& x);  // GPT-2's approximation
Tensor silu(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor abs(const Tensor& x);
Tensor clamp(const Tensor& x, double low, double high);
Tensor unary(Unary op, const Tensor& x, double p = 0, double q = 0);
// dy * df(x, y); x or y may be undefined where the formula does not read it.
Tensor unary_grad(Unary op, const Tensor& dy, const Tensor& x, const Tensor& y, double p = 0, double q = 0);
Tensor dropout(const Tensor& x, const Dropout& dropout);

inline Tensor operator-(const Tensor& x) { return neg(x); }
inline Tensor operator+(const Tensor& a, double b) { return affine(a, 1, b); }
inline Tensor operator-(const Tensor& a, double b) { return affine(a, 1, -b); }
inline Tensor operator*(const Tensor& a, double b) { return affine(a, b, 0); }
inline Tensor operator*(double a, const Tensor& b) { return affine(b, a, 0); }
inline Tensor operator+(double a, const Tensor& b) { return affine(b, 1, a); }
inline Tensor operator-(double a, const Tensor& b) { return affine(b, -1, a); }
Tensor operator/(const Tensor& a, double b);

// ---- reductions; keepdim leaves size 1 in place of each reduced axis
Tensor sum(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
Tensor mean(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
Tensor max(const Tensor& x, const Axes& axes = {}, bool keepdim = false);  // ShapeError over no elements
Tensor min(const Tensor& x, const Axes& axes = {}, bool keepdim = false);
Tensor var(const Tensor& x, const Axes& axes = {}, bool keepdim = false, bool unbiased = true);  // unbiased divides by n - 1
Tensor argmax(const Tensor& x, int axis, bool keepdim = false);  // i32
Tensor argmax(const Tensor& x);                                  // i32, rank 0: the index in row-major order
Tensor sum_to(const Tensor& x, const Shape& shape);              // the adjoint of broadcasting `shape` to x's shape
Tensor squared_norm(const Tensor& x);                            // f64, rank 0, accumulated in f64: 1e30 squared does not overflow in f32
double sum_of_squares(const Tensor& x);                          // the same on the host, which waits for it

// ---- linear algebra
// a: (..., M, K), b: (..., K, N) -> (..., M, N); leading axes broadcast; a vector (K,) counts as a row before, a column after.
// Of two f16, or two bf16, the product is f32, and so are its sums.
Tensor matmul(const Tensor& a, const Tensor& b);
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});  // x weight^T + bias; weight: (out, in)

// ---- along the last axis (or `axis`)
Tensor softmax(const Tensor& x, int axis = -1);  // a row of only -inf gives 0, not NaN
Tensor softmax_grad(const Tensor& dy, const Tensor& y, int axis = -1);
Tensor log_softmax(const Tensor& x, int axis = -1);
Tensor log_softmax_grad(const Tensor& dy, const Tensor& y, int axis = -1);

struct NormResult {
  Tensor y, mean, rstd;  // mean is undefined for rms_norm, where rstd is 1 / rms
};
struct NormGrad {
  Tensor dx, dw, db;
};
NormResult layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps = 1e-5);  // weight, bias: (C,) or undefined
NormGrad layer_norm_grad(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& rstd,
                         bool need_dx, bool need_dw, bool need_db);
NormResult rms_norm(const Tensor& x, const Tensor& weight, double eps = 1e-6);
NormGrad rms_norm_grad(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rrms, bool need_dx, bool need_dw);

struct CrossEntropySettings {
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  Tensor class_weight{};  // (C,) or undefined
};
struct CrossEntropyResult {
  Tensor loss, weight, lse;  // (N,) each: see Device::cross_entropy
};
// logits (N, C), target i32 (N,). IndexError names the row of a target outside [0, C) that is not ignore_index.
CrossEntropyResult cross_entropy_rows(const Tensor& logits, const Tensor& target, const CrossEntropySettings& settings);
Tensor cross_entropy_grad(const Tensor& dloss, const Tensor& lse, const Tensor& logits, const Tensor& target,
                          const CrossEntropySettings& settings);

// ---- joining, cutting, choosing
Tensor cat(const std::vector<Tensor>& parts, int axis = 0);
Tensor stack(const std::vector<Tensor>& parts, int axis = 0);
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int axis = 0);  // views
std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int axis = 0);                     // equal parts; views
Tensor gather(const Tensor& x, int axis, const Tensor& index);        // index: x's rank; sizes at most x's on the other axes
Tensor index_select(const Tensor& x, int axis, const Tensor& index);  // index: i32 of any rank, its axes replace `axis`
Tensor embedding(const Tensor& weight, const Tensor& ids);            // weight (V, D), ids: i32 of any shape -> (..., D)
Tensor scatter_add(const Tensor& x, int axis, const Tensor& index, const Tensor& values);  // x + values added at index
Tensor index_add(const Tensor& x, int axis, const Tensor& index, const Tensor& values);    // the adjoint of index_select, added to x
Tensor one_hot(const Tensor& index, int64_t classes, DType dtype = default_dtype());       // (...,) -> (..., classes)
Tensor tril(const Tensor& x, int64_t diagonal = 0);  // keeps column <= row + diagonal of the last two axes, 0 elsewhere
Tensor triu(const Tensor& x, int64_t diagonal = 0);

// ---- convolution. x (B, C, H, W), weight (O, C / groups, kh, kw), bias (O,) or undefined -> (B, O, OH, OW), with
// OH = (H + 2 pad_h - dilation_h (kh - 1) - 1) / stride_h + 1
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, ConvOptions options, int64_t groups = 1);
Tensor unfold(const Tensor& x, const ConvOptions& options);                        // (B, C kh kw, OH OW)
Tensor fold(const Tensor& columns, const Shape& x_shape, const ConvOptions& options);

// ---- attention, fused; see Device::attention
struct AttentionSettings {
  double scale = 0;       // 0: 1 / sqrt(D)
  bool causal = false;
  int64_t window = 0;     // see AttentionMask; 0: none
  Tensor lengths{};       // i32 (B,) or undefined
  Tensor keep{};          // broadcasts to (B, H, T, S) from (T, S) or (B, H, T, S); hidden where 0
  Dropout dropout{};
};
struct AttentionResult {
  Tensor o, lse;
};
struct AttentionGrad {
  Tensor dq, dk, dv;
};
AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionSettings& settings);
AttentionGrad attention_grad(const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v, const AttentionResult& result,
                             const AttentionSettings& settings);

}  // namespace heed
