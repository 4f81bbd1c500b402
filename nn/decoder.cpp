#include "nn/decoder.h"

namespace heed::nn {

DecoderBlock::DecoderBlock(const EncoderOptions& o, Random& random)
    : self_attn(o.dim, o.heads, o.dropout, random),
      multihead_attn(o.dim, o.heads, o.dropout, random),
      feed_forward(o.dim, o.ffn_dim, o.activation, o.dropout, random),
      dropout1(o.dropout),
      dropout2(o.dropout),
      dropout3(o.dropout),
      add_and_norm_{o.norm, o.residual} {
  child("self_attn", self_attn);
  child("multihead_attn", multihead_attn);
  child("", feed_forward);  // linear1 and linear2 are the block's own
  if (o.norm != Norm::none) {
    child("norm1", norm1.emplace(o.dim));
    child("norm2", norm2.emplace(o.dim));
    child("norm3", norm3.emplace(o.dim));
  }
  child("dropout1", dropout1);
  child("dropout2", dropout2);
  child("dropout3", dropout3);
}

Variable DecoderBlock::forward(const Variable& x, const Variable& memory, const Mask& mask, const Mask& memory_mask,
                               Site at) {
  Scope in(*this);
  const Variable said = add_and_norm_(x, norm1, [&](const Variable& h) {  // (B, T, C)
    return dropout1.forward(self_attn.forward(h, mask, at));
  });
  const Variable read = add_and_norm_(said, norm2, [&](const Variable& h) {
    return dropout2.forward(multihead_attn.forward(h, memory, memory, memory_mask, at));
  });
  return add_and_norm_(read, norm3, [&](const Variable& h) { return dropout3.forward(feed_forward.forward(h)); });
}

Decoder::Decoder(const EncoderOptions& options, Random& random) {
  require_positive("Decoder", "the number of layers", options.layers);
  for (int64_t i = 0; i < options.layers; i++) {
    layers.push_back(std::make_unique<DecoderBlock>(options, random));
    child(text("layers.", i), *layers.back());
  }
  if (options.norm == Norm::pre) child("norm", norm.emplace(options.dim));
}

Variable Decoder::forward(const Variable& x, const Variable& memory, const Mask& mask, const Mask& memory_mask,
                          Site at) {
  Scope in(*this);
  Variable y = x;  // (B, T, C)
  for (const auto& layer : layers) y = layer->forward(y, memory, mask, memory_mask, at);
  return norm ? norm->forward(y) : y;
}

void Decoder::use_fused(bool on) {
  for (const auto& layer : layers) layer->self_attn.use_fused(on), layer->multihead_attn.use_fused(on);
}

void Decoder::keep_weights(bool on) {
  for (const auto& layer : layers) layer->self_attn.keep_weights(on), layer->multihead_attn.keep_weights(on);
}

std::vector<Tensor> Decoder::self_weights() const {
  std::vector<Tensor> out;
  for (const auto& layer : layers) out.push_back(layer->self_attn.weights());
  return out;
}

std::vector<Tensor> Decoder::cross_weights() const {
  std::vector<Tensor> out;
  for (const auto& layer : layers) out.push_back(layer->multihead_attn.weights());
  return out;
}

}  // namespace heed::nn
