#include "nn/attention.h"

namespace heed::nn {

// ---- article 000

SingleHeadAttention::SingleHeadAttention(int64_t d_model, int64_t d_k, Random& random)
    : W_q(d_model, d_k, random), W_k(d_model, d_k, random), W_v(d_model, d_k, random), d_model_(d_model) {
  child("W_q", W_q);
  child("W_k", W_k);
  child("W_v", W_v);
}

Variable SingleHeadAttention::forward(const Variable& x, const Mask& mask, Site at) {
  Scope in(*this);
  require_sequences("SingleHeadAttention", x, d_model_, at);
  const Variable Q = split_heads(W_q.forward(x), 1);  // (B, 1, T, d_k)
  const Variable K = split_heads(W_k.forward(x), 1);
  const Variable V = split_heads(W_v.forward(x), 1);
  return join_heads(attend(Q, K, V, mask, 0, at));  // (B, T, d_k)
}

// ---- article 002

BasicAttention::BasicAttention(int64_t hidden_dim, int64_t attn_dim, Random& random)
    : query_proj(hidden_dim, attn_dim, random),
      key_proj(hidden_dim, attn_dim, random),
      value_proj(hidden_dim, hidden_dim, random),
      hidden_dim_(hidden_dim) {
  child("query_proj", query_proj);
  child("key_proj", key_proj);
  child("value_proj", value_proj);
}

Variable BasicAttention::forward(const Variable& x, const Mask& mask, Site at) {
  Scope in(*this);
  require_sequences("BasicAttention", x, hidden_dim_, at);
  const Variable Q = split_heads(query_proj.forward(x), 1);  // (B, 1, T, attn_dim)
  const Variable K = split_heads(key_proj.forward(x), 1);    // (B, 1, T, attn_dim)
  const Variable V = split_heads(value_proj.forward(x), 1);  // (B, 1, T, hidden_dim)
  return join_heads(attend(Q, K, V, mask, 0, at));           // (B, T, hidden_dim)
}

MultiHeadAttention::MultiHeadAttention(int64_t n_heads, int64_t hidden_dim, int64_t head_dim, double dropout,
                                       Random& random)
    : qkv_proj(hidden_dim, 3 * n_heads * head_dim, random),
      out_proj(n_heads * head_dim, hidden_dim, random),
      n_heads_(n_heads),
      hidden_dim_(hidden_dim),
      dropout_(dropout) {
  require_positive("MultiHeadAttention", "the number of heads", n_heads);
  require_positive("MultiHeadAttention", "the width of a head", head_dim);
  require_dropout("MultiHeadAttention", dropout);
  child("qkv_proj", qkv_proj);
  child("out_proj", out_proj);
}

Variable MultiHeadAttention::forward(const Variable& x, const Mask& mask, Site at) {
  Scope in(*this);
  require_sequences("MultiHeadAttention", x, hidden_dim_, at);
  const std::vector<Variable> qkv = chunk(qkv_proj.forward(x), 3, -1);  // (B, T, H D) each
  const Variable Q = split_heads(qkv[0], n_heads_);                     // (B, H, T, D)
  const Variable K = split_heads(qkv[1], n_heads_);
  const Variable V = split_heads(qkv[2], n_heads_);
  const Variable joined = join_heads(attend(Q, K, V, mask, dropout_, at));  // (B, T, H D)
  return out_proj.forward(joined);                                          // (B, T, hidden_dim)
}

// ---- article 003

MultiHeadSelfAttention::MultiHeadSelfAttention(int64_t d_model, int64_t num_heads, Random& random)
    : w_q(d_model, d_model, random),
      w_k(d_model, d_model, random),
      w_v(d_model, d_model, random),
      w_o(d_model, d_model, random),
      layer_norm(d_model),
      d_model_(d_model),
      num_heads_(num_heads) {
  head_width("MultiHeadSelfAttention", d_model, num_heads);
  child("w_q", w_q);
  child("w_k", w_k);
  child("w_v", w_v);
  child("w_o", w_o);
  child("layer_norm", layer_norm);
}

AttentionOutput MultiHeadSelfAttention::forward(const Variable& x, const Mask& mask, Site at) {
  Scope in(*this);
  require_sequences("MultiHeadSelfAttention", x, d_model_, at);
  const Variable q = split_heads(w_q.forward(x), num_heads_);  // (B, H, T, d_k)
  const Variable k = split_heads(w_k.forward(x), num_heads_);
  const Variable v = split_heads(w_v.forward(x), num_heads_);
  const AttentionOutput attended = scaled_dot_product_attention(q, k, v, mask, {}, at);
  const Variable output = w_o.forward(join_heads(attended.output));  // (B, T, d_model)
  return {layer_norm.forward(x + output), attended.weights};         // Add & Norm
}

}  // namespace heed::nn
