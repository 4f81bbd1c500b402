// Initial weights. Each function makes a tensor of the default dtype on the default device from the next numbers of
// `random`.
//
// fan_in and fan_out are how many numbers flow into one output, and out of one input: for a linear weight (out, in)
// they are `in` and `out`; for a convolution weight (O, C, kh, kw) they are C kh kw and O kh kw.
#pragma once
#include "tensor/tensor.h"

namespace heed::nn::init {

Tensor uniform(const Shape& shape, double low, double high, Random& random);
Tensor normal(const Shape& shape, double mean, double std, Random& random);

// The normal distribution with what lies beyond two standard deviations drawn again: BERT's weights, with std 0.02
// (Devlin et al. 2018 by way of TensorFlow's truncated_normal).
Tensor truncated_normal(const Shape& shape, double std, Random& random);

// Keeps the variance of values and gradients equal from layer to layer (Glorot & Bengio 2010, equation 16):
// U(-b, b) with b = gain sqrt(6 / (fan_in + fan_out)), or N(0, gain^2 2 / (fan_in + fan_out)).
Tensor xavier_uniform(const Shape& shape, Random& random, double gain = 1);
Tensor xavier_normal(const Shape& shape, Random& random, double gain = 1);

// The same for layers that a ReLU follows, a being its slope for negative x (He et al. 2015, equations 10 and 15):
// U(-b, b) with b = sqrt(6 / ((1 + a^2) fan_in)), or N(0, 2 / ((1 + a^2) fan_in)).
Tensor kaiming_uniform(const Shape& shape, Random& random, double a = 0);
Tensor kaiming_normal(const Shape& shape, Random& random, double a = 0);

// PyTorch's default for linear and convolution layers: weight and bias from U(-1 / sqrt(fan_in), 1 / sqrt(fan_in)),
// which is kaiming_uniform with a = sqrt 5.
Tensor default_weight(const Shape& shape, Random& random);
Tensor default_bias(const Shape& weight_shape, Random& random);

}  // namespace heed::nn::init
