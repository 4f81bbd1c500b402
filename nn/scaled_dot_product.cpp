#include "nn/scaled_dot_product.h"

#include <cmath>
#include <limits>

#include "nn/module.h"

namespace heed::nn {

namespace {

struct Sizes {
  int64_t B, H, T, S;
};

Sizes check(const Variable& q, const Variable& k, const Variable& v, DotProductOptions& options, Site at) {
  const bool ranks = q.rank() == 4 && k.rank() == 4 && v.rank() == 4;
  if (!ranks || q.size(0) != k.size(0) || q.size(1) != k.size(1) || q.size(3) != k.size(3) || k.size(0) != v.size(0) ||
      k.size(1) != v.size(1) || k.size(2) != v.size(2)) {
    throw located(ShapeError(text("scaled_dot_product_attention: q ", q.shape(), ", k ", k.shape(), ", v ", v.shape(),
                                  " must be (B, H, T, D), (B, H, S, D), (B, H, S, E)")),
                  at);
  }
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    throw located(UsageError(text("scaled_dot_product_attention: dropout is ", options.dropout,
                                  ", it must be at least 0 and below 1")),
                  at);
  }
  if (!std::isfinite(options.scale)) {
    throw located(NumericError(text("scaled_dot_product_attention: the scale is ", options.scale,
                                    ", it must be finite; 0 stands for 1 / sqrt(D)")),
                  at);
  }
  if (options.scale == 0) options.scale = 1 / std::sqrt(static_cast<double>(q.size(3)));
  return {q.size(0), q.size(1), q.size(2), k.size(2)};
}

// 1 for keys that no query sees: (S, 1), or four axes that broadcast to (B, H, S, 1).
Tensor unseen_keys(const Tensor& visible) { return affine(max(visible, {-2}, true), -1, 1).transpose(-2, -1); }

bool finite(const Variable& x) { return std::isfinite(sum_of_squares(x.value())); }

}  // namespace

AttentionOutput scaled_dot_product_attention(const Variable& q, const Variable& k, const Variable& v, const Mask& mask,
                                             DotProductOptions options, Site at) {
  const Sizes n = check(q, k, v, options, at);
  const Tensor visible = placed(at, [&] { return mask.dense(n.B, n.H, n.T, n.S); });
  Variable keys = k, values = v;
  if (visible.defined() && n.T > 0) {
    const Tensor unseen = unseen_keys(visible);
    if (sum_of_squares(unseen) > 0) {  // a weight of 0 would not stop a NaN
      keys = masked_fill(k, unseen, 0);
      values = masked_fill(v, unseen, 0);
    }
  }
  Variable scores = matmul(q, transpose(keys, -2, -1)) * options.scale;  // (B, H, T, S)
  if (visible.defined()) {
    const Tensor hidden = affine(visible, -1, 1);
    scores = masked_fill(scores, hidden, -std::numeric_limits<double>::infinity());
  }
  const Variable weights = softmax(scores);  // a row of only -inf becomes 0
  const Variable used = options.dropout > 0 ? dropout(weights, options.dropout) : weights;
  return {matmul(used, values), weights};
}

Variable fused_scaled_dot_product_attention(const Variable& q, const Variable& k, const Variable& v, const Mask& mask,
                                            DotProductOptions options, Site at) {
  const Sizes n = check(q, k, v, options, at);
  AttentionSettings settings = placed(at, [&] { return mask.settings(n.B, n.H, n.T, n.S); });
  settings.scale = options.scale;
  if (options.dropout > 0) settings.dropout = next_dropout(options.dropout);
  // The kernel reads no key that `padding` hides. One that is hidden otherwise it may multiply by 0, which a NaN
  // survives.
  if (n.T > 0 && mask.may_hide_keys(n.T, n.S) && !(finite(k) && finite(v))) {
    const Tensor unseen = unseen_keys(mask.dense(n.B, n.H, n.T, n.S));
    return attention(q, masked_fill(k, unseen, 0), masked_fill(v, unseen, 0), settings, at);
  }
  return attention(q, k, v, settings, at);
}

}  // namespace heed::nn
