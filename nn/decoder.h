// The Transformer's decoder: blocks that attend to the words said so far and to what the encoder made of the source.
#pragma once
#include "nn/encoder.h"

namespace heed::nn {

// x: (B, T, dim), memory: (B, S, dim) -> (B, T, dim): masked self-attention, then attention from x to the memory (queries
// from x, keys and values from the memory: article 003's cross-attention), then the feed-forward network, each with Add
// & Norm. Parameters have the names of PyTorch's nn.TransformerDecoderLayer: self_attn, multihead_attn, linear1,
// linear2, norm1, norm2, norm3. (The article describes cross-attention, but its class takes x alone.)
class DecoderBlock : public Module {
 public:
  MultiheadAttention self_attn, multihead_attn;
  FeedForward feed_forward;
  std::optional<LayerNorm> norm1, norm2, norm3;
  Dropout dropout1, dropout2, dropout3;

  // UsageError if ffn_dim is 0, or as Encoder.
  DecoderBlock(const EncoderOptions& options, Random& random);
  // mask: over x itself, Mask::causal() unless all of it is known; memory_mask: over the memory, its padding say.
  Variable forward(const Variable& x, const Variable& memory, const Mask& mask = Mask::causal(),
                   const Mask& memory_mask = {}, Site at = Site::here());

 private:
  AddAndNorm add_and_norm_;
};

// Blocks one after the other, "layers.0", "layers.1", ..., and with pre-norm a last "norm", as in
// nn.TransformerDecoder.
class Decoder : public Module {
 public:
  std::vector<std::unique_ptr<DecoderBlock>> layers;
  std::optional<LayerNorm> norm;

  Decoder(const EncoderOptions& options, Random& random);
  Variable forward(const Variable& x, const Variable& memory, const Mask& mask = Mask::causal(),
                   const Mask& memory_mask = {}, Site at = Site::here());

  void use_fused(bool on);
  void keep_weights(bool on);
  std::vector<Tensor> self_weights() const;   // (B, H, T, T) of each layer, of the last forward
  std::vector<Tensor> cross_weights() const;  // (B, H, T, S)
};

}  // namespace heed::nn
