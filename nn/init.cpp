#include "nn/init.h"

#include <cmath>

#include "tensor/host_memory.h"

namespace heed::nn::init {

namespace {

struct Fans {
  double in, out;
};

Fans fans_of(const Shape& shape) {
  if (shape.rank() < 2) throw ShapeError(text("init: a weight of shape ", shape, " has no fan; it needs two axes"));
  double patch = 1;  // kh kw of a convolution
  for (int i = 2; i < shape.rank(); i++) patch *= static_cast<double>(shape[i]);
  return {static_cast<double>(shape[1]) * patch, static_cast<double>(shape[0]) * patch};
}

}  // namespace

Tensor uniform(const Shape& shape, double low, double high, Random& random) {
  Tensor x = rand(shape, random);
  return x.affine_(high - low, low);
}

Tensor normal(const Shape& shape, double mean, double std, Random& random) {
  Tensor x = randn(shape, random);
  return x.affine_(std, mean);
}

Tensor truncated_normal(const Shape& shape, double std, Random& random) {
  std::vector<double> values = host_numbers("truncated_normal", shape);
  for (double& value : values) {
    do value = random.normal();
    while (std::abs(value) > 2);
    value *= std;
  }
  return from_vector(values, shape);
}

Tensor xavier_uniform(const Shape& shape, Random& random, double gain) {
  const Fans fan = fans_of(shape);
  const double bound = gain * std::sqrt(6 / (fan.in + fan.out));
  return uniform(shape, -bound, bound, random);
}

Tensor xavier_normal(const Shape& shape, Random& random, double gain) {
  const Fans fan = fans_of(shape);
  return normal(shape, 0, gain * std::sqrt(2 / (fan.in + fan.out)), random);
}

Tensor kaiming_uniform(const Shape& shape, Random& random, double a) {
  const double bound = std::sqrt(6 / ((1 + a * a) * fans_of(shape).in));
  return uniform(shape, -bound, bound, random);
}

Tensor kaiming_normal(const Shape& shape, Random& random, double a) {
  return normal(shape, 0, std::sqrt(2 / ((1 + a * a) * fans_of(shape).in)), random);
}

Tensor default_weight(const Shape& shape, Random& random) { return kaiming_uniform(shape, random, std::sqrt(5.0)); }

Tensor default_bias(const Shape& weight_shape, Random& random) {
  const double bound = 1 / std::sqrt(fans_of(weight_shape).in);
  return uniform({weight_shape[0]}, -bound, bound, random);
}

}  // namespace heed::nn::init
