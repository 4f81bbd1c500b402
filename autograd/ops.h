// Differentiable functions: the tensor functions of the same names, recorded on the tape.
//
// Shapes and errors are those of tensor/ops.h; an error also names the variables, the user's line and the module.
// Arguments that are Tensors (indices, masks, targets) are constants. Each op's formula, forward and backward stand
// together in ops_*.cpp.
#pragma once
#include "autograd/variable.h"

namespace heed {

// An operand of + - * /: a variable or a number, and the line on which it was written.
struct Operand {
  Operand(const Variable& variable, Site at = Site::here()) : variable(variable), site(at) {}
  Operand(double number, Site at = Site::here()) : is_number(true), number(number), site(at) {}
  Variable variable;
  bool is_number = false;
  double number = 0;
  Site site;
};
Variable operator+(const Operand& a, const Operand& b);
Variable operator-(const Operand& a, const Operand& b);
Variable operator*(const Operand& a, const Operand& b);
Variable operator/(const Operand& a, const Operand& b);
Variable operator-(const Operand& x);

// ---- elementwise, two operands (ops_arithmetic.cpp)
Variable add(const Variable& a, const Variable& b, Site at = Site::here());
Variable sub(const Variable& a, const Variable& b, Site at = Site::here());
Variable mul(const Variable& a, const Variable& b, Site at = Site::here());
Variable div(const Variable& a, const Variable& b, Site at = Site::here());
Variable pow(const Variable& a, const Variable& b, Site at = Site::here());
Variable maximum(const Variable& a, const Variable& b,
                 Site at = Site::here());  // a tie gives each half of the gradient
Variable minimum(const Variable& a, const Variable& b, Site at = Site::here());
Variable where(const Tensor& condition, const Variable& a, const Variable& b, Site at = Site::here());
Variable masked_fill(const Variable& x, const Tensor& mask, double value, Site at = Site::here());

// ---- elementwise, one operand (ops_elementwise.cpp)
Variable affine(const Variable& x, double factor, double term, Site at = Site::here());  // factor x + term
Variable neg(const Variable& x, Site at = Site::here());
Variable reciprocal(const Variable& x, Site at = Site::here());
Variable exp(const Variable& x, Site at = Site::here());
Variable log(const Variable& x, Site at = Site::here());
Variable sqrt(const Variable& x, Site at = Site::here());
Variable rsqrt(const Variable& x, Site at = Site::here());
Variable square(const Variable& x, Site at = Site::here());
Variable pow(const Variable& x, double exponent, Site at = Site::here());
Variable sin(const Variable& x, Site at = Site::here());
Variable cos(const Variable& x, Site at = Site::here());
Variable tanh(const Variable& x, Site at = Site::here());
Variable sigmoid(const Variable& x, Site at = Site::here());
Variable relu(const Variable& x, Site at = Site::here());
Variable gelu(const Variable& x, Site at = Site::here());
Variable gelu_tanh(const Variable& x, Site at = Site::here());
Variable silu(const Variable& x, Site at = Site::here());
Variable erf(const Variable& x, Site at = Site::here());
Variable abs(const Variable& x, Site at = Site::here());
Variable clamp(const Variable& x, double low, double high, Site at = Site::here());
// Zeroes elements with probability p and scales the others by 1 / (1 - p) (Srivastava et al. 2014). The decisions come
// from set_dropout_stream's stream; axis 0 is the sample.
Variable dropout(const Variable& x, double p, Site at = Site::here());

// ---- reductions (ops_reduce.cpp)
Variable sum(const Variable& x, const Axes& axes = {}, bool keepdim = false, Site at = Site::here());
Variable mean(const Variable& x, const Axes& axes = {}, bool keepdim = false, Site at = Site::here());
Variable max(const Variable& x, const Axes& axes = {}, bool keepdim = false,
             Site at = Site::here());  // ties share the gradient evenly
Variable min(const Variable& x, const Axes& axes = {}, bool keepdim = false, Site at = Site::here());
Variable var(const Variable& x, const Axes& axes = {}, bool keepdim = false, bool unbiased = true,
             Site at = Site::here());

// ---- products (ops_linear.cpp)
Variable matmul(const Variable& a, const Variable& b, Site at = Site::here());
Variable linear(const Variable& x, const Variable& weight, const Variable& bias = {}, Site at = Site::here());
Variable conv2d(const Variable& x, const Variable& weight, const Variable& bias, const ConvOptions& options,
                int64_t groups = 1, Site at = Site::here());
// Scaled dot-product attention, fused: the (T, S) weights are never stored. See tensor/ops.h.
Variable attention(const Variable& q, const Variable& k, const Variable& v, const AttentionSettings& settings,
                   Site at = Site::here());

// ---- rows (ops_rows.cpp)
Variable softmax(const Variable& x, int axis = -1, Site at = Site::here());
Variable log_softmax(const Variable& x, int axis = -1, Site at = Site::here());
Variable layer_norm(const Variable& x, const Variable& weight = {}, const Variable& bias = {}, double eps = 1e-5,
                    Site at = Site::here());
Variable rms_norm(const Variable& x, const Variable& weight = {}, double eps = 1e-6, Site at = Site::here());

// ---- shapes (ops_shape.cpp)
Variable reshape(const Variable& x, const Shape& shape, Site at = Site::here());
Variable flatten(const Variable& x, int first_axis = 0, Site at = Site::here());
Variable transpose(const Variable& x, int axis0, int axis1, Site at = Site::here());
Variable permute(const Variable& x, const std::vector<int>& axes, Site at = Site::here());
Variable expand(const Variable& x, const Shape& shape, Site at = Site::here());
Variable unsqueeze(const Variable& x, int axis, Site at = Site::here());
Variable squeeze(const Variable& x, int axis, Site at = Site::here());
Variable slice(const Variable& x, int axis, int64_t start, int64_t end, Site at = Site::here());
Variable select(const Variable& x, int axis, int64_t index, Site at = Site::here());
Variable cat(const std::vector<Variable>& parts, int axis = 0, Site at = Site::here());
Variable stack(const std::vector<Variable>& parts, int axis = 0, Site at = Site::here());
std::vector<Variable> split(const Variable& x, const std::vector<int64_t>& sizes, int axis = 0, Site at = Site::here());
std::vector<Variable> chunk(const Variable& x, int64_t chunks, int axis = 0, Site at = Site::here());
Variable tril(const Variable& x, int64_t diagonal = 0, Site at = Site::here());
Variable triu(const Variable& x, int64_t diagonal = 0, Site at = Site::here());

// ---- by index (ops_index.cpp)
Variable gather(const Variable& x, int axis, const Tensor& index, Site at = Site::here());
Variable index_select(const Variable& x, int axis, const Tensor& index, Site at = Site::here());
Variable scatter_add(const Variable& x, int axis, const Tensor& index, const Variable& values, Site at = Site::here());
// Rows of a table: weight (V, D), ids i32 of any shape -> ids' shape + (D,). The table's gradient is Rows. IndexError
// names the id and its position. padding_idx: that row is read but gets no gradient; -1: none.
Variable embedding(const Variable& weight, const Tensor& ids, int64_t padding_idx = -1, Site at = Site::here());

// ---- losses (ops_loss.cpp)
enum class Reduce { mean, sum, none };
// logits (N, C), target i32 (N,). The mean divides by the sum of the targets' class weights, ignored rows not counted;
// if all are ignored the loss is 0.
Variable cross_entropy(const Variable& logits, const Tensor& target, const CrossEntropySettings& settings = {},
                       Reduce reduce = Reduce::mean, Site at = Site::here());
// Stable for any logit: max(x, 0) - x t + log(1 + exp(-|x|)). Shapes must be equal: (N, 1) against (N,) is refused.
Variable binary_cross_entropy_with_logits(const Variable& logits, const Tensor& target, Reduce reduce = Reduce::mean,
                                          Site at = Site::here());
Variable mse(const Variable& prediction, const Variable& target, Reduce reduce = Reduce::mean,
             Site at = Site::here());  // shapes must be equal

}  // namespace heed
