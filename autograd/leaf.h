// The node of a leaf: where gradients arrive and stay.
#pragma once
#include "autograd/node.h"

namespace heed {

struct Leaf final : Node {
  static constexpr Text text{"leaf", "a parameter or an input", "its gradient adds up here"};
  void backward(const Tensor& dy) override { receive(Gradient(dy)); }

 private:
  void receive(const Gradient& dy) override;
  bool is_leaf() const override { return true; }
};

}  // namespace heed
