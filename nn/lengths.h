// Lengths of the samples of a padded batch.
#pragma once
#include "tensor/ops.h"

namespace heed::nn {

// lengths i32 (B,) as numbers. IndexError unless all are in [0, longest]: they are looked up in a table of all lengths, so
// that each device checks them in its own time; a host that reads them would wait for a GPU in every forward pass.
inline Tensor length_numbers(const Tensor& lengths, int64_t longest, DType dtype) {
  return index_select(arange(longest + 1, dtype).to(lengths.device()), 0, lengths);
}

}  // namespace heed::nn
