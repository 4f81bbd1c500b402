#include "nn/transformer.h"

#include <algorithm>
#include <cmath>

namespace heed::nn {

namespace {

EncoderOptions stack_options(const TransformerOptions& o) {
  return {.dim = o.dim, .heads = o.heads, .layers = o.layers, .ffn_dim = o.ffn_dim, .norm = o.norm,
          .dropout = o.dropout, .activation = o.activation};
}

}  // namespace

Transformer::Transformer(const TransformerOptions& o, Random& random)
    : source_embedding(o.source_words, o.dim, random),
      target_embedding(o.target_words, o.dim, random),
      positions(o.max_length, o.dim),
      encoder(stack_options(o), random),
      decoder(stack_options(o), random),
      dropout(o.dropout),
      generator(o.dim, o.target_words, random),
      scale_(std::sqrt(static_cast<double>(o.dim))) {
  child("source_embedding", source_embedding);
  child("target_embedding", target_embedding);
  child("positions", positions);
  child("encoder", encoder);
  child("decoder", decoder);
  child("dropout", dropout);
  child("generator", generator);
  // So that the scaled embeddings begin with variance 1, beside positions of variance 1/2.
  for (Embedding* e : {&source_embedding, &target_embedding}) {
    e->weight.set_value(init::normal(e->weight.shape(), 0, 1 / scale_, random));
  }
}

Variable Transformer::embed(Embedding& embedding, const Tensor& ids, Site at) {
  if (!ids.defined() || ids.rank() != 2) {
    throw located(ShapeError(text("Transformer: ids ", ids.shape(), " must be (B, T): sentences, words")), at);
  }
  return dropout.forward(positions.forward(embedding.forward(ids, at) * scale_, at));
}

Variable Transformer::encode(const Tensor& source, const Tensor& lengths, Site at) {
  Scope in(*this);
  return encoder.forward(embed(source_embedding, source, at), Mask::padding(lengths), at);
}

Variable Transformer::decode(const Tensor& target, const Variable& memory, const Tensor& lengths, Site at) {
  Scope in(*this);
  const Variable x = embed(target_embedding, target, at);  // (B, T, C)
  return generator.forward(decoder.forward(x, memory, Mask::causal(), Mask::padding(lengths), at));
}

Variable Transformer::forward(const Tensor& source, const Tensor& lengths, const Tensor& target, Site at) {
  return decode(target, encode(source, lengths, at), lengths, at);
}

void Transformer::keep_weights(bool on) {
  encoder.keep_weights(on);
  decoder.keep_weights(on);
}

ShiftedTargets shift_targets(const std::vector<std::vector<int32_t>>& words, int32_t start, int32_t end) {
  size_t longest = 0;
  for (const auto& sentence : words) longest = std::max(longest, sentence.size());
  const auto B = static_cast<int64_t>(words.size()), T = static_cast<int64_t>(longest) + 1;
  std::vector<int32_t> input(static_cast<size_t>(B * T), end), labels(static_cast<size_t>(B * T), -100);
  for (size_t b = 0; b < words.size(); b++) {
    const size_t row = b * static_cast<size_t>(T), n = words[b].size();
    input[row] = start;
    std::copy(words[b].begin(), words[b].end(), input.begin() + static_cast<std::ptrdiff_t>(row + 1));
    std::copy(words[b].begin(), words[b].end(), labels.begin() + static_cast<std::ptrdiff_t>(row));
    labels[row + n] = end;
  }
  return {indices(input, {B, T}), indices(labels, {B, T})};
}

}  // namespace heed::nn
