// SelfAttention: what every kind of self-attention has in common, so that an encoder block can hold any of them.
#pragma once
#include "nn/module.h"
#include "nn/scaled_dot_product.h"

namespace heed::nn {

class SelfAttention : public Module {
 public:
  // x: (B, T, C) -> (B, T, C'), where C' = C for the kinds that fit into a block. ShapeError for another rank or width.
  virtual Variable forward(const Variable& x, const Mask& mask = {}, Site at = Site::here()) = 0;

  // Fused (the default) or composed of small ops: the same numbers to rounding; the composed one can be stepped
  // through.
  void use_fused(bool on) { fused_ = on; }
  // Keeps the weights of each forward from now on, for heat maps. This takes the composed path, and T x S numbers a
  // head.
  void keep_weights(bool on);
  const Tensor& weights() const;  // (B, H, T, S) of the last forward; UsageError if they were not kept

 protected:
  // Attention by the chosen path; `dropout` is for training only.
  Variable attend(const Variable& q, const Variable& k, const Variable& v, const Mask& mask, double dropout, Site at);

 private:
  bool fused_ = true, keep_weights_ = false;
  Tensor weights_;
};

Variable split_heads(const Variable& x, int64_t heads, Site at = Site::here());  // (B, T, H D) -> (B, H, T, D)
Variable join_heads(const Variable& x, Site at = Site::here());                  // (B, H, T, D) -> (B, T, H D)

// ShapeError unless x is (B, T, width).
void require_sequences(const char* module, const Variable& x, int64_t width, Site at);
// UsageError unless heads divides width; returns width / heads.
int64_t head_width(const char* module, int64_t width, int64_t heads);

}  // namespace heed::nn
