#include "nn/self_attention.h"

namespace heed::nn {

void SelfAttention::keep_weights(bool on) {
  keep_weights_ = on;
  weights_ = Tensor();
}

const Tensor& SelfAttention::weights() const {
  if (!weights_.defined()) throw UsageError("weights: none were kept; call keep_weights(true), then forward");
  return weights_;
}

Variable SelfAttention::attend(const Variable& q, const Variable& k, const Variable& v, const Mask& mask,
                               double dropout, Site at) {
  const DotProductOptions options{.dropout = training() ? dropout : 0};
  if (fused_ && !keep_weights_) return fused_scaled_dot_product_attention(q, k, v, mask, options, at);
  const AttentionOutput attended = scaled_dot_product_attention(q, k, v, mask, options, at);
  if (keep_weights_) weights_ = attended.weights.value();
  return attended.output;
}

Variable split_heads(const Variable& x, int64_t heads, Site at) {
  if (x.rank() != 3 || heads < 1 || x.size(2) % heads != 0) {
    throw located(ShapeError(text("split_heads: x ", x.shape(), " must be (B, T, H D) with H = ", heads, " heads")),
                  at);
  }
  const Variable apart = reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}, at);  // (B, T, H, D)
  return transpose(apart, 1, 2, at);
}

Variable join_heads(const Variable& x, Site at) {
  if (x.rank() != 4) throw located(ShapeError(text("join_heads: x ", x.shape(), " must be (B, H, T, D)")), at);
  return reshape(transpose(x, 1, 2, at), {x.size(0), x.size(2), x.size(1) * x.size(3)}, at);
}

void require_sequences(const char* module, const Variable& x, int64_t width, Site at) {
  if (x.rank() == 3 && x.size(2) == width) return;
  throw located(ShapeError(text(module, ": x ", x.shape(), " must be (B, T, ", width, "): samples, positions, width")),
                at);
}

int64_t head_width(const char* module, int64_t width, int64_t heads) {
  require_positive(module, "the width", width);
  require_positive(module, "the number of heads", heads);
  if (width % heads != 0) throw UsageError(text(module, ": ", heads, " heads do not divide the width ", width));
  return width / heads;
}

}  // namespace heed::nn
