#include "nn/encoder.h"

namespace heed::nn {

namespace {

std::unique_ptr<SelfAttention> default_attention(const EncoderOptions& o, Random& random) {
  return std::make_unique<MultiheadAttention>(o.dim, o.heads, o.dropout, random);
}

}  // namespace

EncoderBlock::EncoderBlock(const EncoderOptions& options, Random& random)
    : EncoderBlock(options, default_attention(options, random), random) {}

EncoderBlock::EncoderBlock(const EncoderOptions& o, std::unique_ptr<SelfAttention> attention, Random& random)
    : self_attn(std::move(attention)), dropout1(o.dropout), dropout2(o.dropout), add_and_norm_{o.norm, o.residual} {
  if (!self_attn) throw UsageError("EncoderBlock: the attention is null");
  child("self_attn", *self_attn);
  child("dropout1", dropout1);
  if (o.norm != Norm::none) child("norm1", norm1.emplace(o.dim));
  if (o.ffn_dim == 0) return;
  child("", feed_forward.emplace(o.dim, o.ffn_dim, o.activation, o.dropout,
                                 random));  // linear1 and linear2 are the block's own
  child("dropout2", dropout2);
  if (o.norm != Norm::none) child("norm2", norm2.emplace(o.dim));
}

Variable EncoderBlock::forward(const Variable& x, const Mask& mask, Site at) {
  Scope in(*this);
  const Variable y = add_and_norm_(x, norm1, [&](const Variable& h) {  // (B, T, C)
    return dropout1.forward(self_attn->forward(h, mask, at));
  });
  if (!feed_forward) return y;
  return add_and_norm_(y, norm2, [&](const Variable& h) { return dropout2.forward(feed_forward->forward(h)); });
}

Encoder::Encoder(const EncoderOptions& options, Random& random) {
  require_positive("Encoder", "the number of layers", options.layers);
  for (int64_t i = 0; i < options.layers; i++) {
    layers.push_back(std::make_unique<EncoderBlock>(options, random));
    child(text("layers.", i), *layers.back());
  }
  if (options.norm == Norm::pre) child("norm", norm.emplace(options.dim));
}

Variable Encoder::forward(const Variable& x, const Mask& mask, Site at) {
  Scope in(*this);
  Variable y = x;  // (B, T, C)
  for (const auto& layer : layers) y = layer->forward(y, mask, at);
  return norm ? norm->forward(y) : y;
}

void Encoder::use_fused(bool on) {
  for (const auto& layer : layers) layer->self_attn->use_fused(on);
}

void Encoder::keep_weights(bool on) {
  for (const auto& layer : layers) layer->self_attn->keep_weights(on);
}

std::vector<Tensor> Encoder::weights() const {
  std::vector<Tensor> out;
  for (const auto& layer : layers) out.push_back(layer->self_attn->weights());
  return out;
}

}  // namespace heed::nn
