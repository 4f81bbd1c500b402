#include "tensor/checks.h"

namespace heed::checks {

Tensor floats(const char* op, const Tensor& x) {
  if (!x.defined()) throw UsageError(text(op, ": an operand is undefined"));
  if (computes(x.dtype())) return x;
  if (x.dtype() == DType::i32) throw DTypeError(text(op, ": an operand is i32; convert it first, for example with to(DType::f32)"));
  return x.to(DType::f32);
}

void same_kind(const char* op, const Tensor& a, const Tensor& b, const char* label, int index) {
  if (a.dtype() != b.dtype()) {
    throw DTypeError(text(op, ": dtypes differ: ", operand(0, "a", a.shape()), " is ", name_of(a.dtype()), " and ",
                          operand(index, label, b.shape()), " is ", name_of(b.dtype()), "; convert one of them with to()"));
  }
  same_device(op, a, b, label, index);
}

void same_device(const char* op, const Tensor& a, const Tensor& b, const char* label, int index) {
  if (&a.device() == &b.device()) return;
  throw DeviceError(text(op, ": devices differ: ", operand(0, "a", a.shape()), " is on ", a.device().name(), " and ",
                         operand(index, label, b.shape()), " is on ", b.device().name(), "; move one of them with to()"));
}

void matches(const char* op, const char* what, const Tensor& x, const Shape& shape, const Tensor& like) {
  if (!x.defined()) throw UsageError(text(op, ": ", what, " is undefined"));
  if (!(x.shape() == shape)) throw ShapeError(text(op, ": ", what, " is ", x.shape(), ", it must be ", shape));
  if (x.dtype() != like.dtype()) throw DTypeError(text(op, ": ", what, " is ", name_of(x.dtype()), ", it must be ", name_of(like.dtype())));
  if (&x.device() != &like.device()) {
    throw DeviceError(text(op, ": ", what, " is on ", x.device().name(), ", it must be on ", like.device().name()));
  }
}

void is_index(const char* op, const Tensor& index, const Tensor& x, const char* what) {
  if (!index.defined()) throw UsageError(text(op, ": the ", what, " is undefined"));
  if (index.dtype() != DType::i32) throw DTypeError(text(op, ": the ", what, " is ", name_of(index.dtype()), ", it must be i32"));
  if (&index.device() != &x.device()) {
    throw DeviceError(text(op, ": the ", what, " is on ", index.device().name(), ", the values are on ", x.device().name()));
  }
}

void writable(const char* op, const Tensor& x) {
  if (!x.repeats()) return;
  throw UsageError(text(op, ": the tensor ", x.shape(), " is an expanded view, several of its elements are one; write to a contiguous_copy()"));
}

void index_values(const char* op, const Tensor& index, int64_t n, const char* what) {
  if (!index.device().on_host()) return;  // such a device checks its own
  index.device().synchronize();
  const View v = index.view();
  const int64_t count = v.numel();
  const bool packed = v.contiguous();
  for (int64_t i = 0; i < count; i++) {
    const int32_t value = v.as<int32_t>()[packed ? i : offset_of(v, i)];
    if (value < 0 || value >= n) {
      throw IndexError(text(op, ": ", what, " ", value, " at position ", i, " of ", index.shape(), " is outside [0, ", n, ")"));
    }
  }
}

}  // namespace heed::checks
