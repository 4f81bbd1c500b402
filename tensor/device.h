// The device contract: every kernel that heed is made of, with its formula, shapes and aliasing rule.
//
// - Outputs come first. All views of one call have the same dtype unless said; floats are f32 or f64.
// - Shapes were checked and broadcast by ops.h: a kernel trusts its arguments. An operand that is broadcast arrives with the output's
//   shape and stride 0 along its repeated axes; outputs never have a stride 0 along an axis longer than 1.
// - Any strides and any size, 0 included, are allowed unless a kernel says "contiguous".
// - An output may be the very same view as an input where "in place" is said; other overlaps never occur.
// - Calls are done in the order in which they are made, possibly later (a stream); synchronize() waits for all of them.
//   A kernel calls nothing back on the host.
//
// `reference` (reference.cpp) implements each in the plainest loops there can be: read it first. `cpu` is the fast one.
#pragma once
#include <string>
#include <vector>

#include "tensor/formulas.h"
#include "tensor/memory.h"
#include "tensor/random.h"
#include "tensor/view.h"

namespace heed {

enum class Reduction { sum, max, min, sum_squares };

struct CrossEntropyOptions {
  int64_t ignore_index = -100;  // rows with this target have loss 0 and weight 0
  double smoothing = 0;         // label smoothing s: the target is (1 - s) one_hot + s / C
  View weight;                  // (C,) class weights; absent: all 1
};

struct ConvOptions {
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dilation_h = 1, dilation_w = 1;
};

// Which keys j a query i may attend to; S keys, T queries. All that are set must agree.
struct AttentionMask {
  bool causal = false;  // j <= i + (S - T): the last query sees the last key
  int64_t window = 0;   // |i + (S - T) - j| <= window; 0: no window
  View lengths;         // i32 (B,), contiguous: j < lengths[b]
  View keep;            // (B, H, T, S), any strides, the dtype of q: hidden where 0
};

struct AttentionOptions {
  double scale = 1;
  AttentionMask mask;
  Dropout dropout;  // on the weights, after the softmax
};

struct AdamOptions {
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled;       // AdamW: p -= lr * weight_decay * p before the step; otherwise Adam's L2: g += weight_decay * p
  int64_t step;         // 1 at the first call
  View grad_scale;      // one element of p's dtype, by which g is multiplied first (clipping); absent: 1
};

class Device {
 public:
  Device(std::string name, bool keeps_freed_blocks) : name_(std::move(name)), memory_(*this, keeps_freed_blocks) {}
  virtual ~Device() = default;
  const std::string& name() const { return name_; }
  Memory& memory() { return memory_; }

  // ---- memory; `bytes` > 0, blocks aligned to 64 bytes. DeviceError when there is no more.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* block, size_t bytes) = 0;
  virtual void upload(void* to, const void* host, size_t bytes) = 0;
  virtual void download(void* host, const void* from, size_t bytes) = 0;
  virtual void synchronize() {}
  virtual bool on_host() const { return true; }  // may the host read its memory directly?
  // Records calls and starts them as one (capture.h). Devices that do all at once have nothing to record.
  virtual void begin_capture() {}
  virtual void launch_capture() {}
  virtual void abandon_capture() noexcept {}

  // ---- elementwise
  virtual void fill(View y, double value) = 0;                           // any dtype
  virtual void copy(View y, View x) = 0;                                 // y = x, converting between any two dtypes
  virtual void unary(Unary op, View y, View x, double p, double q) = 0;  // y = f(x); in place
  // dx = dy * df(x, y); in place (dx = dy). A formula whose df does not read x (or y) may get an absent view for it.
  virtual void unary_grad(Unary op, View dx, View dy, View x, View y, double p, double q) = 0;
  virtual void binary(Binary op, View y, View a, View b) = 0;         // y = f(a, b); in place (y = a or y = b)
  virtual void where(View y, View condition, View a, View b) = 0;     // y = condition != 0 ? a : b; condition of any dtype; in place (a, b)
  virtual void dropout(View y, View x, const Dropout& dropout) = 0;   // y = keep ? x / (1 - p) : 0, keep by random.h; in place
  virtual void uniform(View y, uint64_t key) = 0;                     // y contiguous: word i % 4 of counter i / 4, in [0, 1)

  // ---- reductions
  // y has x's rank, with size 1 along each reduced axis. sum_squares: y is f64, accumulated in f64.
  virtual void reduce(Reduction op, View y, View x) = 0;
  virtual void argmax(View y, View x) = 0;  // y: i32, size 1 along the one reduced axis; the first of equal ones; NaN counts as largest

  // ---- matrix product: c = alpha a b + beta c, for every leading index
  // a: (..., M, K), b: (..., K, N), c: (..., M, N), the same leading axes. beta = 0 does not read c. K = 0 gives beta c.
  // a and b may both be f16, or both bf16: c is f32 then, and so are the sums.
  virtual void matmul(View c, View a, View b, double alpha, double beta) = 0;

  // ---- along the last axis
  // y_i = exp(x_i - max) / sum_j exp(x_j - max). A row of only -inf gives a row of 0; NaN or +inf
  // anywhere gives NaN everywhere. in place.
  virtual void softmax(View y, View x) = 0;
  virtual void softmax_grad(View dx, View dy, View y) = 0;      // dx_i = y_i (dy_i - sum_j dy_j y_j); in place (dx = dy)
  // y_i = x_i - max - log sum_j exp(x_j - max). A row of only -inf gives -inf. in place.
  virtual void log_softmax(View y, View x) = 0;
  virtual void log_softmax_grad(View dx, View dy, View y) = 0;  // dx_i = dy_i - exp(y_i) sum_j dy_j; in place (dx = dy)
  // Rows of C: mean = sum x / C, rstd = 1 / sqrt(sum (x - mean)^2 / C + eps), y = (x - mean) rstd w + b.
  // x, y: (..., C); w, b: (C,), may be absent; mean, rstd: x's shape with a last axis of 1, contiguous.
  virtual void layer_norm(View y, View mean, View rstd, View x, View w, View b, double eps) = 0;
  // With n = (x - mean) rstd and g = dy w:  dx = rstd (g - mean(g) - n mean(g n)),  dw = sum dy n,  db = sum dy over rows.
  // Each of dx, dw, db may be absent.
  virtual void layer_norm_grad(View dx, View dw, View db, View dy, View x, View w, View mean, View rstd) = 0;
  // rrms = 1 / sqrt(sum x^2 / C + eps), y = x rrms w.
  virtual void rms_norm(View y, View rrms, View x, View w, double eps) = 0;
  // With n = x rrms and g = dy w:  dx = rrms (g - n mean(g n)),  dw = sum dy n over rows.
  virtual void rms_norm_grad(View dx, View dw, View dy, View x, View w, View rrms) = 0;
  // logits: (N, C), target: i32 (N,), loss, weight, lse: (N,) contiguous. With p = softmax(logits), w = class weights, s = smoothing:
  // loss = -(1 - s) w_t log p_t - s / C sum_c w_c log p_c,  weight = w_t,  lse = max + log sum exp(logits - max).
  virtual void cross_entropy(View loss, View weight, View lse, View logits, View target, const CrossEntropyOptions& options) = 0;
  // dlogits_c = dloss (p_c ((1 - s) w_t + s / C sum_k w_k) - (1 - s) w_t [c = t] - s / C w_c); 0 in ignored rows. dloss: (N,), any stride.
  virtual void cross_entropy_grad(View dlogits, View dloss, View lse, View logits, View target,
                                  const CrossEntropyOptions& options) = 0;

  // ---- by index; indices are i32, within range, any dtype of values
  virtual void gather(View y, View x, View index, int axis) = 0;       // y[.., i, ..] = x[.., index[.., i, ..], ..]; index has y's shape
  virtual void scatter_add(View y, View x, View index, int axis) = 0;  // y[.., index[.., i, ..], ..] += x[.., i, ..], always in order of i; floats

  // ---- convolution by unfolding
  // x: (B, C, H, W) -> columns: (B, C kh kw, OH OW), contiguous; a column holds the patch under one output position, 0 outside x.
  virtual void unfold(View columns, View x, const ConvOptions& options) = 0;
  virtual void fold(View x, View columns, const ConvOptions& options) = 0;  // the adjoint: x = sum of the columns' entries

  // ---- attention: o = dropout(softmax(scale q k^T + mask)) v without storing the (T, S) weights
  // q: (B, H, T, D), k: (B, H, S, D), v: (B, H, S, E), o: (B, H, T, E): the last axis has stride 1 in all; lse: (B, H, T), contiguous,
  // log sum exp of each row of scores. A row with every key hidden gives o = 0 and lse = -inf. Values of keys that
  // `lengths` hides are never read, so NaN there does not spread.
  virtual void attention(View o, View lse, View q, View k, View v, const AttentionOptions& options) = 0;
  // With P the weights before and A after dropout, dA = do v^T, dP = dropout(dA), dS = P (dP - sum_j dA_j A_j):
  // dv = A^T do, dq = scale dS k, dk = scale dS^T q. dq, dk, dv: last axis of stride 1; absent k/v gradients are 0 rows where hidden.
  virtual void attention_grad(View dq, View dk, View dv, View dout, View q, View k, View v, View o, View lse,
                              const AttentionOptions& options) = 0;

  // ---- optimizers, in place; contiguous
  // g: p's shape; or, with `rows` (i32, one a row of p): the gradient of row r is g's row rows[r], or 0 where that is -1.
  //   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2,
  //   p -= lr (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps)         (Kingma & Ba 2014; decoupled: Loshchilov & Hutter 2017)
  virtual void adam(View p, View m, View v, View g, View rows, const AdamOptions& options) = 0;

 private:
  std::string name_;
  Memory memory_;
};

// "reference", "cpu", "emulated" or "cuda". DeviceError with the list of devices, and the reason why this one is absent, otherwise.
Device& device(const std::string& name);
struct DeviceInfo {
  std::string name, about, absent_because;  // absent_because is empty for a usable device
};
std::vector<DeviceInfo> devices();

}  // namespace heed
