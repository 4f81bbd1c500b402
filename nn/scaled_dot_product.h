// Scaled dot-product attention: softmax(q k^T / sqrt(D)) v  (Vaswani et al. 2017, equation 1).
//
// Twice: composed of small ops, which is what one reads, steps through and draws; and fused, which never stores the (T,
// S) weights. They take the same arguments and agree to rounding, forward and backward, for every mask, and drop the
// same weights.
//
// q: (B, H, T, D), k: (B, H, S, D), v: (B, H, S, E)  ->  (B, H, T, E)
//
// - A query that sees no key gets 0 and gives no gradient.
// - A key that no query of its sample and head sees does not matter, whatever it holds: NaN and infinity there do not
//   spread, forwards or backwards. (A NaN in a key that some queries see may reach those too that do not: 0 * NaN is
//   NaN.)
#pragma once
#include "autograd/ops.h"
#include "nn/mask.h"

namespace heed::nn {

struct DotProductOptions {
  double scale = 0;    // 0: 1 / sqrt(D). Needed at every width, not only above 64 as article 002 has it.
  double dropout = 0;  // probability, applied to the weights; the decisions come from set_dropout_stream
};

struct AttentionOutput {
  Variable output;   // (B, H, T, E)
  Variable weights;  // (B, H, T, S), before dropout: rows sum to 1, or are 0 if every key is hidden
};

AttentionOutput scaled_dot_product_attention(const Variable& q, const Variable& k, const Variable& v,
                                             const Mask& mask = {}, DotProductOptions options = {},
                                             Site at = Site::here());

Variable fused_scaled_dot_product_attention(const Variable& q, const Variable& k, const Variable& v,
                                            const Mask& mask = {}, DotProductOptions options = {},
                                            Site at = Site::here());

}  // namespace heed::nn
