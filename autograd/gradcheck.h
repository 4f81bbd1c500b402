// gradcheck: are the gradients right? Backpropagation against central differences, in f64.
#pragma once
#include <functional>

#include "autograd/variable.h"

namespace heed {

struct GradcheckOptions {
  double step = 1e-6;       // h in (f(x + h) - f(x - h)) / 2h, times max(1, |x|)
  double tolerance = 1e-6;  // |analytic - numeric| <= tolerance * max(1, |analytic|, |numeric|)
  uint64_t seed = 1;        // of the upstream gradient
};

struct GradcheckResult {
  bool passed = false;
  double largest_error = 0;  // relative, as compared with the tolerance
  std::string report;        // names the input, the element, both values; says so if every gradient was 0
  explicit operator bool() const { return passed; }
};

// f: f64 inputs -> one output of any shape. The full Jacobian is checked row by row (one backward pass for each output
// element, up to 64 of them, else random rows), then the product with a random non-uniform upstream gradient. Fails on
// NaN, on a missing gradient, and if all gradients are 0 although an input moves the output, or when nothing moves at
// all. The inputs are copied; f must be deterministic.
GradcheckResult gradcheck(const std::function<Variable(const std::vector<Variable>&)>& f,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});

}  // namespace heed
