// One step of Adam for one parameter, as every fast device does it: the factors found once in f64, the rest in the
// dtype of the parameters. `reference` has the same as the papers write it.
#pragma once
#include <cmath>

#include "tensor/device.h"
#include "tensor/host_device.h"

namespace heed {

template <class T>
struct AdamStep {
  T beta1, beta2, beta1_rest, beta2_rest;  // the rest is 1 - beta
  T l2;                                    // g += l2 p
  T keep;                                  // 1 - lr weight_decay if decoupled
  T rate, v_scale, eps;                    // p = keep p - rate m / (v_scale sqrt(v) + eps)

  explicit AdamStep(const AdamOptions& o) {
    const double step = static_cast<double>(o.step);
    beta1 = static_cast<T>(o.beta1), beta1_rest = static_cast<T>(1 - o.beta1);
    beta2 = static_cast<T>(o.beta2), beta2_rest = static_cast<T>(1 - o.beta2);
    l2 = static_cast<T>(o.decoupled ? 0 : o.weight_decay);
    keep = static_cast<T>(o.decoupled ? 1 - o.lr * o.weight_decay : 1);
    rate = static_cast<T>(o.lr / (1 - std::pow(o.beta1, step)));
    v_scale = static_cast<T>(1 / std::sqrt(1 - std::pow(o.beta2, step)));
    eps = static_cast<T>(o.eps);
  }

  HEED_BOTH void update(T& p, T& m, T& v, T gradient, T grad_scale) const {
    const T g = gradient * grad_scale + l2 * p;
    const T m_new = beta1 * m + beta1_rest * g, v_new = beta2 * v + beta2_rest * g * g;
    m = m_new;
    v = v_new;
    p = keep * p - rate * m_new / (v_scale * std::sqrt(v_new) + eps);
  }
};

}  // namespace heed
