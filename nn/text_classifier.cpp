#include "nn/text_classifier.h"

namespace heed::nn {

namespace {

TextClassifierOptions checked(const TextClassifierOptions& options) {
  options.check();
  return options.resolved();
}

}  // namespace

TextClassifier::TextClassifier(const TextClassifierOptions& options, Random& random)
    : options_(checked(options)),
      embedding(options.vocab_size, options.embed_dim, random),
      dropout(options_.dropout),
      fc(options.hidden_dim, options.classes, random) {
  const TextClassifierOptions& o = options_;
  // N(0, 0.02^2), as in BERT: from N(0, 1) Adam's small steps would take a thousand updates to move a word's vector.
  Tensor table = embedding.weight.value();
  table.affine_(0.02, 0);
  const bool with_token = o.pooling == Pooling::class_token;
  if (with_token) class_token = parameter("class_token", init::normal({o.hidden_dim}, 0, 0.02, random));
  child("embedding", embedding);
  if (o.embed_dim != o.hidden_dim) child("project", project.emplace(o.embed_dim, o.hidden_dim, random));
  const int64_t length = o.max_length + (with_token ? 1 : 0);
  if (o.positions == Positions::sinusoidal) positions = std::make_unique<SinusoidalPositions>(length, o.hidden_dim);
  if (o.positions == Positions::learned) positions = std::make_unique<LearnedPositions>(length, o.hidden_dim, random);
  if (positions) child("positions", *positions);
  if (o.printed) {
    child("attention", attention.emplace(o.heads, o.hidden_dim, o.hidden_dim / o.heads, random));
  } else {
    const EncoderOptions blocks{.dim = o.hidden_dim,
                                .heads = o.heads,
                                .layers = o.layers,
                                .ffn_dim = o.ffn_dim,
                                .norm = o.norm,
                                .residual = o.residual,
                                .dropout = o.dropout};
    child("encoder", encoder.emplace(blocks, random));
  }
  child("dropout", dropout);
  child("fc", fc);
}

TextClassifier::TextClassifier(int64_t vocab_size, int64_t embed_dim, int64_t hidden_dim, Random& random)
    : TextClassifier({.vocab_size = vocab_size, .embed_dim = embed_dim, .hidden_dim = hidden_dim}, random) {}

namespace {

void check_batch(const Tensor& ids, const Tensor& lengths, Site at) {
  if (!ids.defined() || ids.rank() != 2) {
    throw located(ShapeError(text("TextClassifier: ids ", ids.shape(), " must be (B, T): reviews, tokens")), at);
  }
  if (ids.dtype() != DType::i32) {
    throw located(DTypeError(text("TextClassifier: ids are ", name_of(ids.dtype()), ", they must be i32")), at);
  }
  if (!lengths.defined()) return;
  if (lengths.dtype() != DType::i32 || !(lengths.shape() == Shape{ids.size(0)})) {
    throw located(ShapeError(text("TextClassifier: lengths ", name_of(lengths.dtype()), " ", lengths.shape(),
                                  " must be i32 (", ids.size(0), ",), one for each of the reviews ", ids.shape())),
                  at);
  }
  if (!lengths.device().on_host()) return;  // attention and pooling check them there
  const std::vector<int32_t> n = lengths.to_vector<int32_t>();
  for (size_t b = 0; b < n.size(); b++) {
    if (n[b] < 0 || n[b] > ids.size(1)) {
      throw located(
          IndexError(text("TextClassifier: length ", n[b], " of review ", b, " is outside [0, ", ids.size(1), "]")),
          at);
    }
  }
}

// With the class token, which comes first.
Tensor plus_one(const Tensor& lengths) { return affine(lengths.to(DType::f64), 1, 1).to(DType::i32); }

}  // namespace

Variable TextClassifier::embed(const Tensor& ids) {
  Variable x = embedding.forward(ids);  // (B, T, E)
  if (training() && options_.word_dropout > 0) {
    const Variable token(ones({ids.size(0), ids.size(1), 1}, x.dtype()).to(ids.device()));
    x = x * heed::dropout(token, options_.word_dropout);  // all numbers of a token or none
  }
  if (project) x = project->forward(x);  // (B, T, C)
  if (class_token.defined()) {           // (B, 1 + T, C)
    const int64_t C = options_.hidden_dim;
    x = cat({expand(reshape(class_token, {1, 1, C}), {ids.size(0), 1, C}), x}, 1);
  }
  if (positions) x = positions->forward(x);
  return dropout.forward(x);
}

Variable TextClassifier::pool(const Variable& x, const Tensor& lengths) {
  switch (options_.pooling) {
    case Pooling::mean:
      return masked_mean(x, lengths);
    case Pooling::max:
      return masked_max(x, lengths);
    case Pooling::class_token:
      return select(x, 1, 0);
  }
  return x;
}

Variable TextClassifier::forward(const Tensor& ids, const Tensor& lengths, Site at) {
  Scope in(*this);
  check_batch(ids, lengths, at);
  if (ids.size(1) == 0) {  // a batch of empty reviews: one column of padding
    const Tensor none = indices(std::vector<int32_t>(static_cast<size_t>(ids.size(0)))).to(ids.device());
    return forward(none.unsqueeze(1), none, at);
  }
  if (positions && ids.size(1) > options_.max_length) {
    throw located(ShapeError(text("TextClassifier: a review of ", ids.size(1), " tokens, but max_length is ",
                                  options_.max_length, "; truncate it, or build the model with a larger one")),
                  at);
  }
  if (attention) {  // the printed version: padding is attended to and counts in the mean
    return fc.forward(mean(attention->forward(embed(ids), {}, at), {1}));
  }
  Tensor n = lengths;
  if (!n.defined())
    n = indices(std::vector<int32_t>(static_cast<size_t>(ids.size(0)), static_cast<int32_t>(ids.size(1))))
            .to(ids.device());
  if (class_token.defined()) n = plus_one(n);
  const Variable x = encoder->forward(embed(ids), Mask::padding(n), at);  // (B, T, C)
  return fc.forward(dropout.forward(pool(x, n)));
}

void TextClassifier::use_fused(bool on) {
  if (encoder) encoder->use_fused(on);
  if (attention) attention->use_fused(on);
}

void TextClassifier::keep_weights(bool on) {
  if (encoder) encoder->keep_weights(on);
  if (attention) attention->keep_weights(on);
}

std::vector<Tensor> TextClassifier::weights() const {
  return encoder ? encoder->weights() : std::vector<Tensor>{attention->weights()};
}

}  // namespace heed::nn
