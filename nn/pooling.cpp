#include "nn/pooling.h"

#include <limits>

#include "nn/lengths.h"

namespace heed::nn {

namespace {

// lengths as numbers of x's dtype, (B, 1)
Tensor column(const Variable& x, const Tensor& lengths, Site at) {
  if (x.rank() != 3 || !lengths.defined() || !(lengths.shape() == Shape{x.size(0)})) {
    throw located(
        ShapeError(text("pooling: x ", x.shape(), " and lengths ", lengths.shape(), " must be (B, T, C) and (B,)")),
        at);
  }
  if (lengths.dtype() != DType::i32) {
    throw located(DTypeError(text("pooling: lengths are ", name_of(lengths.dtype()), ", they must be i32")), at);
  }
  try {
    return length_numbers(lengths, x.size(1), x.dtype()).unsqueeze(1);
  } catch (const IndexError& error) {
    throw located(IndexError(text("pooling: a length of x ", x.shape(), " is wrong: ", error.what())), at);
  }
}

// 1 at positions beyond the length, (B, T, 1)
Tensor padding(const Variable& x, const Tensor& lengths) {
  const Tensor position = arange(x.size(1), x.dtype()).to(lengths.device());
  return ge(position, lengths).unsqueeze(2);
}

}  // namespace

Variable masked_mean(const Variable& x, const Tensor& lengths, Site at) {
  const Tensor n = column(x, lengths, at);
  const Variable total = sum(masked_fill(x, padding(x, n), 0, at), {1}, false, at);  // (B, C)
  return mul(total, Variable(reciprocal(clamp(n, 1, std::numeric_limits<float>::max()))), at);
}

Variable masked_max(const Variable& x, const Tensor& lengths, Site at) {
  const Tensor n = column(x, lengths, at);
  if (x.size(1) == 0) return sum(x, {1}, false, at);  // of no positions: 0
  const Variable real = masked_fill(x, padding(x, n), -std::numeric_limits<double>::infinity(), at);
  const Tensor empty = le(n, zeros_like(n));                    // (B, 1)
  return masked_fill(max(real, {1}, false, at), empty, 0, at);  // (B, C)
}

}  // namespace heed::nn
