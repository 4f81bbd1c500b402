// Activations: what bends the line between two linear layers.
#pragma once
#include "nn/choices.h"
#include "nn/module.h"

namespace heed::nn {

enum class Activation { relu, gelu, gelu_tanh, silu, tanh, sigmoid };

constexpr Choice<Activation> kActivations[] = {
    {Activation::relu, "relu"}, {Activation::gelu, "gelu"}, {Activation::gelu_tanh, "gelu_tanh"},
    {Activation::silu, "silu"}, {Activation::tanh, "tanh"}, {Activation::sigmoid, "sigmoid"},
};

inline Variable activate(Activation activation, const Variable& x, Site at = Site::here()) {
  switch (activation) {
    case Activation::relu:
      return relu(x, at);
    case Activation::gelu:
      return gelu(x, at);
    case Activation::gelu_tanh:
      return gelu_tanh(x, at);
    case Activation::silu:
      return silu(x, at);
    case Activation::tanh:
      return tanh(x, at);
    case Activation::sigmoid:
      return sigmoid(x, at);
  }
  return x;
}

// The same as layers, for Sequential.
class ActivationLayer : public Layer {
 public:
  explicit ActivationLayer(Activation activation) : activation_(activation) {}

  Variable forward(const Variable& x, Site at = Site::here()) override {
    Scope in(*this);
    return activate(activation_, x, at);
  }

 private:
  Activation activation_;
};

struct ReLU : ActivationLayer {
  ReLU() : ActivationLayer(Activation::relu) {}
};
struct GELU : ActivationLayer {
  GELU() : ActivationLayer(Activation::gelu) {}
};
struct SiLU : ActivationLayer {
  SiLU() : ActivationLayer(Activation::silu) {}
};
struct Tanh : ActivationLayer {
  Tanh() : ActivationLayer(Activation::tanh) {}
};
struct Sigmoid : ActivationLayer {
  Sigmoid() : ActivationLayer(Activation::sigmoid) {}
};

}  // namespace heed::nn
