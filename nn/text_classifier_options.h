// What a text classifier is made of: switches with names, for command lines and model files.
#pragma once
#include <map>
#include <string>

#include "nn/encoder.h"
#include "nn/pooling.h"

namespace heed::nn {

enum class Positions { none, sinusoidal, learned };
constexpr Choice<Positions> kPositions[] = {
    {Positions::none, "none"}, {Positions::sinusoidal, "sinusoidal"}, {Positions::learned, "learned"}};

struct TextClassifierOptions {
  int64_t vocab_size = 50000;
  int64_t embed_dim = 128;   // width of the embedding
  int64_t hidden_dim = 256;  // width of the attention; a projection leads there if it differs
  int64_t classes = 2;
  int64_t heads = 4;
  int64_t layers = 1;
  int64_t ffn_dim = 512;  // 0: no feed-forward network, attention alone
  Positions positions = Positions::sinusoidal;
  bool residual = true;
  Norm norm = Norm::pre;
  double dropout = 0.1;     // of embeddings, in every block, and before the last layer
  double word_dropout = 0;  // probability that a whole token's vector is 0 in training
  Pooling pooling = Pooling::mean;
  int64_t max_length = 512;  // tokens; the positions end there
  // The article's version as printed, but for the projection that it needs in order to run: one attention, mean over
  // all positions, padding included, and no positions, residual, norm or dropout. Overrides the switches above.
  bool printed = false;

  // UsageError for sizes that are not positive, heads that do not divide hidden_dim, a dropout outside [0, 1).
  void check() const;
  TextClassifierOptions resolved() const;  // with what `printed` overrides

  // As text, one entry for each field by its name. from_map passes over other keys and leaves absent fields at their
  // defaults; UsageError for a value that it cannot read.
  std::map<std::string, std::string> to_map() const;
  static TextClassifierOptions from_map(const std::map<std::string, std::string>& map);
};

}  // namespace heed::nn
