// PyTorch's nn.MultiheadAttention (with a small h), for weights that cross over unchanged. The article's
// MultiHeadAttention, whose parameters have other names, is in attention.h.
#pragma once
#include "nn/linear.h"
#include "nn/self_attention.h"

namespace heed::nn {

// Queries from one sequence, keys and values from another or the same.
// in_proj_weight (3 E, E) holds the query, key and value projections one below the other, in_proj_bias (3 E,) likewise;
// out_proj is a Linear(E, E). Initial weights as in PyTorch: in_proj by xavier_uniform, all biases 0.
class MultiheadAttention : public SelfAttention {
 public:
  Variable in_proj_weight, in_proj_bias;
  Linear out_proj;

  // UsageError unless num_heads divides embed_dim.
  MultiheadAttention(int64_t embed_dim, int64_t num_heads, double dropout, Random& random);

  // x: (B, T, E) -> (B, T, E)
  Variable forward(const Variable& x, const Mask& mask = {}, Site at = Site::here()) override;
  // query: (B, T, E), key and value: (B, S, E) -> (B, T, E)
  Variable forward(const Variable& query, const Variable& key, const Variable& value, const Mask& mask = {},
                   Site at = Site::here());
  // Composed, with the weights (B, H, T, S) of each head as a second output.
  AttentionOutput forward_with_weights(const Variable& query, const Variable& key, const Variable& value,
                                       const Mask& mask = {}, Site at = Site::here());

 private:
  struct Heads {
    Variable q, k, v;  // (B, H, T or S, D)
  };
  Heads project(const Variable& query, const Variable& key, const Variable& value, Site at);

  int64_t embed_dim_, num_heads_;
  double dropout_;
};

}  // namespace heed::nn
