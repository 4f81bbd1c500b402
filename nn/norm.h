// Normalisation of each vector by itself, over the last axis.
#pragma once
#include "nn/module.h"

namespace heed::nn {

// y = (x - mean) / sqrt(var + eps) * weight + bias  (Ba, Kiros & Hinton 2016). x: (..., dim); weight starts at 1, bias
// at 0.
class LayerNorm : public Layer {
 public:
  Variable weight, bias;

  explicit LayerNorm(int64_t dim, double eps = 1e-5) : eps_(eps) {
    require_positive("LayerNorm", "the width", dim);
    weight = parameter("weight", ones({dim}));
    bias = parameter("bias", zeros({dim}));
  }

  Variable forward(const Variable& x, Site at = Site::here()) override {
    Scope in(*this);
    return layer_norm(x, weight, bias, eps_, at);
  }

 private:
  double eps_;
};

// y = x / sqrt(mean(x^2) + eps) * weight  (Zhang & Sennrich 2019). x: (..., dim); weight starts at 1.
class RMSNorm : public Layer {
 public:
  Variable weight;

  explicit RMSNorm(int64_t dim, double eps = 1e-6) : eps_(eps) {
    require_positive("RMSNorm", "the width", dim);
    weight = parameter("weight", ones({dim}));
  }

  Variable forward(const Variable& x, Site at = Site::here()) override {
    Scope in(*this);
    return rms_norm(x, weight, eps_, at);
  }

 private:
  double eps_;
};

}  // namespace heed::nn
