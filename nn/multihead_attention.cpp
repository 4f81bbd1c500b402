#include "nn/multihead_attention.h"

namespace heed::nn {

MultiheadAttention::MultiheadAttention(int64_t embed_dim, int64_t num_heads, double dropout, Random& random)
    : out_proj(embed_dim, embed_dim, random), embed_dim_(embed_dim), num_heads_(num_heads), dropout_(dropout) {
  head_width("MultiheadAttention", embed_dim, num_heads);
  require_dropout("MultiheadAttention", dropout);
  in_proj_weight = parameter("in_proj_weight", init::xavier_uniform({3 * embed_dim, embed_dim}, random));
  in_proj_bias = parameter("in_proj_bias", zeros({3 * embed_dim}));
  out_proj.bias.set_value(zeros({embed_dim}));
  child("out_proj", out_proj);
}

Variable MultiheadAttention::forward(const Variable& x, const Mask& mask, Site at) {
  Scope in(*this);
  require_sequences("MultiheadAttention", x, embed_dim_, at);
  const std::vector<Variable> qkv = chunk(linear(x, in_proj_weight, in_proj_bias), 3, -1);  // (B, T, E) each
  const Variable q = split_heads(qkv[0], num_heads_);                                       // (B, H, T, D)
  const Variable k = split_heads(qkv[1], num_heads_);
  const Variable v = split_heads(qkv[2], num_heads_);
  return out_proj.forward(join_heads(attend(q, k, v, mask, dropout_, at)));
}

MultiheadAttention::Heads MultiheadAttention::project(const Variable& query, const Variable& key, const Variable& value,
                                                      Site at) {
  for (const Variable& x : {query, key, value}) require_sequences("MultiheadAttention", x, embed_dim_, at);
  const std::vector<Variable> weight = chunk(in_proj_weight, 3), bias = chunk(in_proj_bias, 3);  // (E, E), (E,) each
  return {split_heads(linear(query, weight[0], bias[0]), num_heads_),
          split_heads(linear(key, weight[1], bias[1]), num_heads_),
          split_heads(linear(value, weight[2], bias[2]), num_heads_)};
}

Variable MultiheadAttention::forward(const Variable& query, const Variable& key, const Variable& value,
                                     const Mask& mask, Site at) {
  Scope in(*this);
  const Heads heads = project(query, key, value, at);
  return out_proj.forward(join_heads(attend(heads.q, heads.k, heads.v, mask, dropout_, at)));
}

AttentionOutput MultiheadAttention::forward_with_weights(const Variable& query, const Variable& key,
                                                         const Variable& value, const Mask& mask, Site at) {
  Scope in(*this);
  const Heads heads = project(query, key, value, at);
  const double dropout = training() ? dropout_ : 0;
  const AttentionOutput a = scaled_dot_product_attention(heads.q, heads.k, heads.v, mask, {.dropout = dropout}, at);
  return {out_proj.forward(join_heads(a.output)), a.weights};
}

}  // namespace heed::nn
