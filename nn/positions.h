// Positions: attention by itself is blind to the order of its keys; a vector added for each place tells them apart.
#pragma once
#include "nn/init.h"
#include "nn/module.h"

namespace heed::nn {

// Fixed sines and cosines, interleaved (Vaswani et al. 2017, section 3.5); even i = 2 j, odd i = 2 j + 1:
//   PE(t, 2 j) = sin(t / 10000^(2 j / dim)),  PE(t, 2 j + 1) = cos(t / 10000^(2 j / dim))
Tensor sinusoidal_table(int64_t length, int64_t dim);  // (length, dim)

// x: (B, T, dim) -> x + PE. ShapeError if T is above max_length.
class SinusoidalPositions : public Layer {
 public:
  SinusoidalPositions(int64_t max_length, int64_t dim);
  Variable forward(const Variable& x, Site at = Site::here()) override;

 private:
  Variable table_;  // a constant: neither a parameter nor part of the state
};

// x: (B, T, dim) -> x + weight[:T]. weight (max_length, dim) from N(0, 0.02^2), as in GPT-2. ShapeError if T is above
// max_length.
class LearnedPositions : public Layer {
 public:
  Variable weight;

  LearnedPositions(int64_t max_length, int64_t dim, Random& random);
  Variable forward(const Variable& x, Site at = Site::here()) override;
};

}  // namespace heed::nn
