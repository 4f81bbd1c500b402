// Linear: y = x W^T + b.
#pragma once
#include "nn/init.h"
#include "nn/module.h"

namespace heed::nn {

// x: (..., in) -> (..., out). weight (out, in) and bias (out,), both from U(-1 / sqrt(in), 1 / sqrt(in)), as in
// PyTorch.
class Linear : public Layer {
 public:
  Variable weight, bias;  // bias is undefined if there is none

  Linear(int64_t in, int64_t out, bool with_bias, Random& random) {
    require_positive("Linear", "the input width", in);
    require_positive("Linear", "the output width", out);
    weight = parameter("weight", init::default_weight({out, in}, random));
    if (with_bias) bias = parameter("bias", init::default_bias({out, in}, random));
  }
  Linear(int64_t in, int64_t out, Random& random) : Linear(in, out, true, random) {}

  Variable forward(const Variable& x, Site at = Site::here()) override {
    Scope in(*this);
    return linear(x, weight, bias, at);
  }
};

}  // namespace heed::nn
