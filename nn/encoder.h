// The Transformer's encoder: blocks of self-attention and a feed-forward network, each with "Add & Norm".
#pragma once
#include <optional>

#include "nn/add_and_norm.h"
#include "nn/feed_forward.h"
#include "nn/multihead_attention.h"

namespace heed::nn {

struct EncoderOptions {
  int64_t dim = 256, heads = 4, layers = 1;
  int64_t ffn_dim = 1024;  // 0: no feed-forward network, attention alone
  Norm norm = Norm::pre;
  bool residual = true;  // the "x +" of Add & Norm
  double dropout = 0.1;  // on the attention weights, in the feed-forward network, and on what a sublayer adds
  Activation activation = Activation::gelu;
};

// x: (B, T, dim) -> (B, T, dim). Its parameters have the names of PyTorch's nn.TransformerEncoderLayer:
// self_attn.in_proj_weight, in_proj_bias, out_proj, linear1, linear2, norm1, norm2.
class EncoderBlock : public Module {
 public:
  std::unique_ptr<SelfAttention> self_attn;
  std::optional<FeedForward> feed_forward;
  std::optional<LayerNorm> norm1, norm2;
  Dropout dropout1, dropout2;

  EncoderBlock(const EncoderOptions& options, Random& random);
  // With another kind of self-attention, of the same width.
  EncoderBlock(const EncoderOptions& options, std::unique_ptr<SelfAttention> attention, Random& random);
  Variable forward(const Variable& x, const Mask& mask = {}, Site at = Site::here());

 private:
  AddAndNorm add_and_norm_;
};

// Blocks one after the other, "layers.0", "layers.1", ..., and with pre-norm a last "norm", as in
// nn.TransformerEncoder.
class Encoder : public Module {
 public:
  std::vector<std::unique_ptr<EncoderBlock>> layers;
  std::optional<LayerNorm> norm;

  Encoder(const EncoderOptions& options, Random& random);
  Variable forward(const Variable& x, const Mask& mask = {}, Site at = Site::here());

  void use_fused(bool on);
  void keep_weights(bool on);
  std::vector<Tensor> weights() const;  // (B, H, T, T) of each layer, of the last forward
};

}  // namespace heed::nn
