// The attention classes of the three articles, with their names, arguments, defaults and parameter names.
//
// Everywhere: x is (B, T, width); a mask is a Mask (1 visible, 0 hidden); hidden scores are -inf, not -1e9 as in the
// articles, so that a row with every key hidden gives 0 and no gradient instead of a uniform row, in any precision.
#pragma once
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/self_attention.h"

namespace heed::nn {

// Article 000. x: (B, T, d_model) -> (B, T, d_k).
// (Its comments have the weights the wrong way round: they are (d_k, d_model).)
class SingleHeadAttention : public SelfAttention {
 public:
  Linear W_q, W_k, W_v;

  SingleHeadAttention(int64_t d_model, int64_t d_k, Random& random);
  Variable forward(const Variable& x, const Mask& mask = {}, Site at = Site::here()) override;

 private:
  int64_t d_model_;
};

// Article 002, 3.1: queries and keys of width attn_dim, values that keep hidden_dim. x: (B, T, hidden_dim) -> the same.
// (The article's takes (T, hidden_dim) for T sequences of length 1; this one refuses it.)
class BasicAttention : public SelfAttention {
 public:
  Linear query_proj, key_proj, value_proj;

  BasicAttention(int64_t hidden_dim, int64_t attn_dim, Random& random);
  explicit BasicAttention(Random& random) : BasicAttention(512, 64, random) {}
  Variable forward(const Variable& x, const Mask& mask = {}, Site at = Site::here()) override;

 private:
  int64_t hidden_dim_;
};

// Article 002, 3.2: one projection for queries, keys and values of all heads, and one for the output.
// x: (B, T, hidden_dim) -> the same; n_heads head_dim need not be hidden_dim. (The mask and the dropout on the weights
// are not in the article.)
class MultiHeadAttention : public SelfAttention {
 public:
  Linear qkv_proj, out_proj;

  MultiHeadAttention(int64_t n_heads, int64_t hidden_dim, int64_t head_dim, double dropout, Random& random);
  MultiHeadAttention(int64_t n_heads, int64_t hidden_dim, int64_t head_dim, Random& random)
      : MultiHeadAttention(n_heads, hidden_dim, head_dim, 0, random) {}
  explicit MultiHeadAttention(Random& random) : MultiHeadAttention(8, 512, 64, random) {}
  Variable forward(const Variable& x, const Mask& mask = {}, Site at = Site::here()) override;

 private:
  int64_t n_heads_, hidden_dim_;
  double dropout_;
};

// Article 003: attention, residual and LayerNorm in one. x: (B, T, d_model) -> output (B, T, d_model) and weights
// (B, num_heads, T, T), so it is always composed. UsageError unless num_heads divides d_model.
// (Its comment promises a mask (B, T, T), which fails there or, if B = num_heads, is taken head-wise; here it works.)
class MultiHeadSelfAttention : public Module {
 public:
  Linear w_q, w_k, w_v, w_o;
  LayerNorm layer_norm;

  MultiHeadSelfAttention(int64_t d_model, int64_t num_heads, Random& random);
  explicit MultiHeadSelfAttention(Random& random) : MultiHeadSelfAttention(64, 8, random) {}
  AttentionOutput forward(const Variable& x, const Mask& mask = {}, Site at = Site::here());

 private:
  int64_t d_model_, num_heads_;
};

}  // namespace heed::nn
