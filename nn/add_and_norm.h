// "Add & Norm": what stands around every sublayer of a Transformer.
#pragma once
#include <optional>

#include "nn/choices.h"
#include "nn/norm.h"

namespace heed::nn {

// Where LayerNorm stands around a sublayer f:
//   pre   x + f(norm(x))    trains without a warm-up (Xiong et al. 2020); the stack ends with one more norm
//   post  norm(x + f(x))    Vaswani et al. 2017, and article 003's Add & Norm
//   none  x + f(x)
enum class Norm { none, pre, post };
constexpr Choice<Norm> kNorms[] = {{Norm::none, "none"}, {Norm::pre, "pre"}, {Norm::post, "post"}};

struct AddAndNorm {
  Norm norm = Norm::pre;
  bool residual = true;  // the "x +" above

  // f: (..., C) -> (..., C); layer_norm has a value unless this is Norm::none.
  template <class Sublayer>
  Variable operator()(const Variable& x, std::optional<LayerNorm>& layer_norm, Sublayer&& f) const {
    const Variable y = f(norm == Norm::pre ? layer_norm->forward(x) : x);
    const Variable sum = residual ? x + y : y;
    return norm == Norm::post ? layer_norm->forward(sum) : sum;
  }
};

}  // namespace heed::nn
