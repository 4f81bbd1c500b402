// Differentiable products: matmul, linear, convolution, attention.
#include "autograd/ops.h"

namespace heed {

namespace {

Tensor as_rows(const Tensor& x) {  // (..., N) -> (R, N)
  int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank(); i++) rows *= x.shape()[i];
  return x.reshape({rows, x.size(-1)});
}

}  // namespace

// ---- y = a b        a: (..., M, K), b: (..., K, N), y: (..., M, N); a vector a is one row, a vector b one column
struct Matmul final : Node {
  static constexpr Text text{"matmul", "y_mn = sum_k a_mk b_kn", "da = dy b^T,  db = a^T dy"};
  Saved a{this}, b{this};
  bool row = false, column = false;

  Tensor forward(const Tensor& a_in, const Tensor& b_in) {
    if (needs(0)) b = b_in;
    if (needs(1)) a = a_in;
    row = a_in.rank() == 1, column = b_in.rank() == 1;
    return heed::matmul(a_in, b_in);
  }

  void backward(const Tensor& dy_in) override {
    Tensor dy = column ? dy_in.unsqueeze(-1) : dy_in;  // (..., M, N) again
    if (row) dy = dy.unsqueeze(-2);
    if (needs(0)) {
      const Tensor bm = column ? b.get().unsqueeze(-1) : b.get();
      const Tensor da = heed::matmul(dy, bm.transpose(-1, -2));
      give(0, row ? da.squeeze(-2) : da);
    }
    if (needs(1)) {
      const Tensor am = row ? a.get().unsqueeze(0) : a.get();
      // One b for many a: the sum over the leading axes is part of the product of (K, R) and (R, N).
      const bool shared = input(1)->shape().rank() <= 2;
      const Tensor db =
          shared ? heed::matmul(as_rows(am).transpose(0, 1), as_rows(dy)) : heed::matmul(am.transpose(-1, -2), dy);
      give(1, column ? db.squeeze(-1) : db);
    }
  }
};
Variable matmul(const Variable& a, const Variable& b, Site at) { return record<Matmul>(at, a, b); }

// ---- y = x W^T + b        x: (..., in), W: (out, in), b: (out,), y: (..., out)
struct Linear final : Node {
  static constexpr Text text{"linear", "y = x W^T + b", "dx = dy W,  dW = dy^T x,  db = sum of dy's rows"};
  Saved x{this}, weight{this};

  Tensor forward(const Tensor& x_in, const Tensor& weight_in, const Tensor& bias) {
    if (needs(0)) weight = weight_in;
    if (needs(1)) x = x_in;
    return heed::linear(x_in, weight_in, bias);
  }

  void backward(const Tensor& dy) override {
    if (needs(0)) give(0, heed::matmul(dy, weight));
    if (needs(1)) give(1, heed::matmul(as_rows(dy).transpose(0, 1), as_rows(x)));
    if (needs(2)) give(2, dy);  // the bias was broadcast: the engine sums
  }
};
Variable linear(const Variable& x, const Variable& weight, const Variable& bias, Site at) {
  return record<Linear>(at, x, weight, bias);
}

// ---- convolution as a product: the patch under each output position is a column
// x: (B, C, H, W), w: (O, C / G, kh, kw), b: (O,), y: (B, O, OH, OW); G groups, L = OH OW positions, K = C / G kh kw
struct Conv2d final : Node {
  static constexpr Text text{"conv2d", "y = w unfold(x) + b",
                             "dx = fold(w^T dy),  dw = dy unfold(x)^T,  db = sum of dy over all but channels"};
  Saved x{this}, weight{this};
  ConvOptions options;
  int64_t groups = 1;

  Tensor forward(const Tensor& x_in, const Tensor& weight_in, const Tensor& bias, const ConvOptions& options_in,
                 int64_t groups_in) {
    const Tensor y = heed::conv2d(x = x_in, weight = weight_in, bias, options = options_in, groups = groups_in);
    options.kernel_h = weight_in.size(2), options.kernel_w = weight_in.size(3);
    return y;
  }

  void backward(const Tensor& dy_in) override {
    const Shape x_shape = x.get().shape(), w_shape = weight.get().shape();
    const int64_t B = x_shape[0], G = groups, O = w_shape[0], K = w_shape[1] * w_shape[2] * w_shape[3],
                  L = dy_in.size(2) * dy_in.size(3);
    const Tensor dy = dy_in.reshape({B, G, O / G, L});
    if (needs(0)) {
      const Tensor w = weight.get().reshape({G, O / G, K});
      const Tensor dcolumns = heed::matmul(w.transpose(1, 2), dy);  // (B, G, K, L)
      give(0, fold(dcolumns.reshape({B, G * K, L}), x_shape, options));
    }
    if (needs(1)) {
      const Tensor columns = unfold(x, options).reshape({B, G, K, L});
      const Tensor dw = heed::matmul(dy, columns.transpose(2, 3));  // (B, G, O / G, K)
      give(1, heed::sum(dw, {0}).reshape(w_shape));
    }
    if (needs(2)) give(2, heed::sum(dy_in, {0, 2, 3}));
  }
};
Variable conv2d(const Variable& x, const Variable& weight, const Variable& bias, const ConvOptions& options,
                int64_t groups, Site at) {
  return record<Conv2d>(at, x, weight, bias, options, groups);
}

// ---- scaled dot-product attention, fused        q: (B, H, T, D), k: (B, H, S, D), v: (B, H, S, E), o: (B, H, T, E)
// The weights p are not saved: backward computes them again from the logarithms lse of their sums (Dao et al. 2022).
struct Attention final : Node {
  static constexpr Text text{
      "attention", "o = a v,  a = dropout(p),  p = softmax(scale q k^T + mask)",
      "dv = a^T do,  ds = p (dp - sum_j dp_j p_j) with dp = dropout(do v^T),  dq = scale ds k,  dk = scale ds^T q"};
  Saved q{this}, k{this}, v{this}, o{this}, lse{this}, lengths{this}, keep{this};
  AttentionSettings settings;

  Tensor forward(const Tensor& q_in, const Tensor& k_in, const Tensor& v_in, const AttentionSettings& settings_in) {
    const AttentionResult result = heed::attention(q = q_in, k = k_in, v = v_in, settings_in);
    settings = settings_in;
    settings.lengths = settings.keep = {};
    lengths = settings_in.lengths;
    keep = settings_in.keep;
    lse = result.lse;
    return o = result.o;
  }

  void backward(const Tensor& dout) override {
    AttentionSettings s = settings;
    s.lengths = lengths;
    s.keep = keep;
    const AttentionGrad grad = attention_grad(dout, q, k, v, {o, lse}, s);
    give(0, grad.dq);
    give(1, grad.dk);
    give(2, grad.dv);
  }
};
Variable attention(const Variable& q, const Variable& k, const Variable& v, const AttentionSettings& settings,
                   Site at) {
  return record<Attention>(at, q, k, v, settings);
}

}  // namespace heed
