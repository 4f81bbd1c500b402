#include "nn/positions.h"

#include <cmath>

#include "tensor/host_memory.h"

namespace heed::nn {

Tensor sinusoidal_table(int64_t length, int64_t dim) {
  require_positive("positions", "the length", length);
  require_positive("positions", "the width", dim);
  std::vector<double> table = host_numbers("positions", {length, dim});
  for (int64_t t = 0; t < length; t++) {
    for (int64_t i = 0; i < dim; i++) {
      const double frequency = std::exp(-std::log(10000.0) * static_cast<double>(i / 2 * 2) / static_cast<double>(dim));
      const double angle = static_cast<double>(t) * frequency;
      table[static_cast<size_t>(t * dim + i)] = i % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
  return from_vector(table, {length, dim});
}

namespace {

Variable add_positions(const Variable& x, const Variable& table, Site at) {
  if (x.rank() != 3 || x.size(2) != table.size(1)) {
    throw located(ShapeError(text("positions: x ", x.shape(), " must be (B, T, ", table.size(1), ")")), at);
  }
  if (x.size(1) > table.size(0)) {
    throw located(ShapeError(text("positions: a sequence of ", x.size(1), " tokens, but there are positions for ",
                                  table.size(0), "; truncate it, or build the model with a larger maximum length")),
                  at);
  }
  return add(x, slice(table, 0, 0, x.size(1), at), at);
}

}  // namespace

SinusoidalPositions::SinusoidalPositions(int64_t max_length, int64_t dim) : table_(sinusoidal_table(max_length, dim)) {}

Variable SinusoidalPositions::forward(const Variable& x, Site at) {
  Scope in(*this);
  return add_positions(x, table_, at);
}

LearnedPositions::LearnedPositions(int64_t max_length, int64_t dim, Random& random) {
  require_positive("positions", "the length", max_length);
  require_positive("positions", "the width", dim);
  weight = parameter("weight", init::normal({max_length, dim}, 0, 0.02, random));
}

Variable LearnedPositions::forward(const Variable& x, Site at) {
  Scope in(*this);
  return add_positions(x, weight, at);
}

}  // namespace heed::nn
