// Losses as modules. The formulas and their derivatives are in autograd/ops_loss.cpp.
#pragma once
#include "nn/module.h"

namespace heed::nn {

// logits (N, C), target i32 (N,): class indices.
class CrossEntropyLoss : public Module {
 public:
  explicit CrossEntropyLoss(const CrossEntropySettings& settings = {}, Reduce reduce = Reduce::mean)
      : settings_(settings), reduce_(reduce) {}

  Variable forward(const Variable& logits, const Tensor& target, Site at = Site::here()) {
    Scope in(*this);
    return cross_entropy(logits, target, settings_, reduce_, at);
  }

 private:
  CrossEntropySettings settings_;
  Reduce reduce_;
};

// logits and target of the same shape; targets between 0 and 1.
class BCEWithLogitsLoss : public Module {
 public:
  explicit BCEWithLogitsLoss(Reduce reduce = Reduce::mean) : reduce_(reduce) {}

  Variable forward(const Variable& logits, const Tensor& target, Site at = Site::here()) {
    Scope in(*this);
    return binary_cross_entropy_with_logits(logits, target, reduce_, at);
  }

 private:
  Reduce reduce_;
};

// prediction and target of the same shape.
class MSELoss : public Module {
 public:
  explicit MSELoss(Reduce reduce = Reduce::mean) : reduce_(reduce) {}

  Variable forward(const Variable& prediction, const Variable& target, Site at = Site::here()) {
    Scope in(*this);
    return mse(prediction, target, reduce_, at);
  }

 private:
  Reduce reduce_;
};

}  // namespace heed::nn
