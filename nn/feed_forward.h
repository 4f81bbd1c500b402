// FeedForward: two linear layers at every position by itself (Vaswani et al. 2017, section 3.3).
#pragma once
#include "nn/activation.h"
#include "nn/dropout.h"
#include "nn/linear.h"

namespace heed::nn {

// x: (..., dim) -> linear2(dropout(activation(linear1(x)))): (..., dim); ffn_dim is the width in between.
class FeedForward : public Layer {
 public:
  Linear linear1, linear2;
  Dropout dropout;

  FeedForward(int64_t dim, int64_t ffn_dim, Activation activation, double dropout_p, Random& random)
      : linear1(dim, ffn_dim, random), linear2(ffn_dim, dim, random), dropout(dropout_p), activation_(activation) {
    child("linear1", linear1);
    child("linear2", linear2);
    child("dropout", dropout);
  }

  Variable forward(const Variable& x, Site at = Site::here()) override {
    Scope in(*this);
    const Variable hidden = activate(activation_, linear1.forward(x, at));  // (..., ffn_dim)
    return linear2.forward(dropout.forward(hidden));                        // (..., dim)
  }

 private:
  Activation activation_;
};

}  // namespace heed::nn
