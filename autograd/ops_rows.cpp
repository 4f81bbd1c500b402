// Differentiable functions along one axis: softmax and normalisation.
#include "autograd/ops.h"

namespace heed {

// ---- y = softmax(x) along an axis
struct Softmax final : Node {
  static constexpr Text text{"softmax", "y_i = exp(x_i - max x) / sum_j exp(x_j - max x)",
                             "dx_i = y_i (dy_i - sum_j dy_j y_j)"};
  Saved y{this};
  int axis = -1;

  Tensor forward(const Tensor& x, int axis_in) { return y = heed::softmax(x, axis = axis_in); }
  void backward(const Tensor& dy) override { give(0, softmax_grad(dy, y, axis)); }
};
Variable softmax(const Variable& x, int axis, Site at) { return record<Softmax>(at, x, axis); }

// ---- y = log softmax(x) along an axis
struct LogSoftmax final : Node {
  static constexpr Text text{"log_softmax", "y_i = x_i - max x - log sum_j exp(x_j - max x)",
                             "dx_i = dy_i - exp(y_i) sum_j dy_j"};
  Saved y{this};
  int axis = -1;

  Tensor forward(const Tensor& x, int axis_in) { return y = heed::log_softmax(x, axis = axis_in); }
  void backward(const Tensor& dy) override { give(0, log_softmax_grad(dy, y, axis)); }
};
Variable log_softmax(const Variable& x, int axis, Site at) { return record<LogSoftmax>(at, x, axis); }

// ---- y = n w + b, n = (x - mean) rstd over the last axis (Ba et al. 2016)        x, y: (..., C), w, b: (C,)
struct LayerNorm final : Node {
  static constexpr Text text{
      "layer_norm", "y = n w + b,  n = (x - mean x) rstd,  rstd = 1 / sqrt(var x + eps)",
      "dx = rstd (g - mean g - n mean(g n)) with g = dy w,  dw = sum dy n,  db = sum dy over rows"};
  Saved x{this}, weight{this}, mean{this}, rstd{this};

  Tensor forward(const Tensor& x_in, const Tensor& weight_in, const Tensor& bias, double eps) {
    const NormResult result = heed::layer_norm(x = x_in, weight = weight_in, bias, eps);
    mean = result.mean;
    rstd = result.rstd;
    return result.y;
  }

  void backward(const Tensor& dy) override {
    const NormGrad grad = layer_norm_grad(dy, x, weight, mean, rstd, needs(0), needs(1), needs(2));
    if (needs(0)) give(0, grad.dx);
    if (needs(1)) give(1, grad.dw);
    if (needs(2)) give(2, grad.db);
  }
};
Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias, double eps, Site at) {
  return record<LayerNorm>(at, x, weight, bias, eps);
}

// ---- y = n w, n = x rrms over the last axis (Zhang & Sennrich 2019)        x, y: (..., C), w: (C,)
struct RmsNorm final : Node {
  static constexpr Text text{"rms_norm", "y = n w,  n = x rrms,  rrms = 1 / sqrt(mean x^2 + eps)",
                             "dx = rrms (g - n mean(g n)) with g = dy w,  dw = sum dy n over rows"};
  Saved x{this}, weight{this}, rrms{this};

  Tensor forward(const Tensor& x_in, const Tensor& weight_in, double eps) {
    const NormResult result = heed::rms_norm(x = x_in, weight = weight_in, eps);
    rrms = result.rstd;
    return result.y;
  }

  void backward(const Tensor& dy) override {
    const NormGrad grad = rms_norm_grad(dy, x, weight, rrms, needs(0), needs(1));
    if (needs(0)) give(0, grad.dx);
    if (needs(1)) give(1, grad.dw);
  }
};
Variable rms_norm(const Variable& x, const Variable& weight, double eps, Site at) {
  return record<RmsNorm>(at, x, weight, eps);
}

}  // namespace heed
