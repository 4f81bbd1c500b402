// Embedding: a table of vectors, one for each token id.
#pragma once
#include "nn/init.h"
#include "nn/module.h"

namespace heed::nn {

// ids: i32 of any shape -> ids' shape + (dim,). weight (vocab_size, dim) from N(0, 1), as in PyTorch.
// padding_idx: the row of that id is 0 and gets no gradient; -1: there is none.
class Embedding : public Module {
 public:
  Variable weight;

  Embedding(int64_t vocab_size, int64_t dim, int64_t padding_idx, Random& random) : padding_idx_(padding_idx) {
    require_positive("Embedding", "the vocabulary's size", vocab_size);
    require_positive("Embedding", "the width", dim);
    if (padding_idx < -1 || padding_idx >= vocab_size) {
      throw UsageError(text("Embedding: padding_idx ", padding_idx, " is outside [0, ", vocab_size, ") and not -1"));
    }
    Tensor table = init::normal({vocab_size, dim}, 0, 1, random);
    if (padding_idx >= 0) table.select(0, padding_idx).fill_(0);
    weight = parameter("weight", table);
  }
  Embedding(int64_t vocab_size, int64_t dim, Random& random) : Embedding(vocab_size, dim, -1, random) {}

  Variable forward(const Tensor& ids, Site at = Site::here()) {
    Scope in(*this);
    return embedding(weight, ids, padding_idx_, at);
  }

 private:
  int64_t padding_idx_;
};

}  // namespace heed::nn
