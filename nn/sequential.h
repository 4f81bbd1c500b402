// Sequential: layers one after the other, named "0", "1", ... as in PyTorch.
//
//   Sequential net;
//   net.add<Linear>(2, 8, random);
//   net.add<Tanh>();
//   net.add<Linear>(8, 1, random);
//   Variable y = net.forward(x);
#pragma once
#include <memory>

#include "nn/module.h"

namespace heed::nn {

class Sequential : public Layer {
 public:
  template <class L, class... Args>
  L& add(Args&&... args) {
    auto layer = std::make_unique<L>(std::forward<Args>(args)...);
    L& added = *layer;
    child(std::to_string(layers_.size()), added);
    layers_.push_back(std::move(layer));
    return added;
  }

  size_t size() const { return layers_.size(); }
  Layer& operator[](size_t i) { return *layers_[i]; }

  Variable forward(const Variable& x, Site at = Site::here()) override {
    Scope in(*this);
    Variable y = x;
    for (const std::unique_ptr<Layer>& layer : layers_) y = layer->forward(y, at);
    return y;
  }

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
};

}  // namespace heed::nn
