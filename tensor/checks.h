// What every tensor function checks before it calls a device. Private to tensor/.
#pragma once
#include "tensor/ops.h"

namespace heed::checks {

// x itself, or as f32 if it is a half; DTypeError if it is i32, UsageError if undefined.
Tensor floats(const char* op, const Tensor& x);
// DTypeError or DeviceError unless a and b, operand `index` of the op, have the same dtype and device.
void same_kind(const char* op, const Tensor& a, const Tensor& b, const char* label = "b", int index = 1);
void same_device(const char* op, const Tensor& a, const Tensor& b, const char* label = "b", int index = 1);
// UsageError, ShapeError, DTypeError or DeviceError unless x is a tensor of this shape, with the dtype and device of `like`.
void matches(const char* op, const char* what, const Tensor& x, const Shape& shape, const Tensor& like);
// i32 on x's device, every value in [0, n): IndexError names the value and its position otherwise.
void index_values(const char* op, const Tensor& index, int64_t n, const char* what);
void is_index(const char* op, const Tensor& index, const Tensor& x, const char* what = "index");
// UsageError if x holds an element at several places, as an expanded view does: a write there would be one to all of them.
void writable(const char* op, const Tensor& x);

}  // namespace heed::checks
