// Dropout: in training each number is 0 with probability p and scaled by 1 / (1 - p) otherwise (Srivastava et al.
// 2014).
#pragma once
#include "nn/module.h"

namespace heed::nn {

// Axis 0 of x is the sample. In evaluation, or with p = 0, it hands x on. Which numbers are dropped is decided by
// set_dropout_stream and the coordinates within the sample: padding a batch does not change it.
class Dropout : public Layer {
 public:
  explicit Dropout(double p = 0.5) : p_(p) { require_dropout("Dropout", p); }
  double p() const { return p_; }

  Variable forward(const Variable& x, Site at = Site::here()) override {
    if (!training() || p_ == 0) return x;
    Scope in(*this);
    return dropout(x, p_, at);
  }

 private:
  double p_;
};

}  // namespace heed::nn
