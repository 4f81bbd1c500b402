// Pooling: one vector for a sequence of vectors.
#pragma once
#include "nn/choices.h"
#include "nn/module.h"

namespace heed::nn {

enum class Pooling { mean, max, class_token };
constexpr Choice<Pooling> kPoolings[] = {
    {Pooling::mean, "mean"}, {Pooling::max, "max"}, {Pooling::class_token, "class_token"}};

// x: (B, T, C), lengths: i32 (B,) -> (B, C): over positions 0 .. lengths[b] - 1 alone, whatever stands in the others. A
// sample of length 0 gives 0.
Variable masked_mean(const Variable& x, const Tensor& lengths, Site at = Site::here());
Variable masked_max(const Variable& x, const Tensor& lengths, Site at = Site::here());

}  // namespace heed::nn
