// What a kernel sees of a tensor: a raw pointer, a shape and strides. It owns nothing and can be passed by value.
#pragma once
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace heed {

struct View {
  void* data = nullptr;  // of element (0, ..., 0); null for an absent optional operand
  Shape shape;
  Strides strides;  // in elements; 0 along a repeated axis
  DType dtype = DType::f32;

  template <class T> HEED_BOTH T* as() const { return static_cast<T*>(data); }
  HEED_BOTH int64_t numel() const { return shape.numel(); }
  HEED_BOTH int rank() const { return shape.rank(); }
  explicit operator bool() const { return data != nullptr; }
  bool contiguous() const { return is_contiguous(shape, strides); }
};

// Memory offset (in elements) of the index-th element in row-major order of the shape.
HEED_BOTH inline int64_t offset_of(const View& v, int64_t index) {
  int64_t offset = 0;
  for (int axis = v.shape.rank() - 1; axis >= 0; axis--) {
    offset += index % v.shape[axis] * v.strides[axis];
    index /= v.shape[axis];
  }
  return offset;
}

}  // namespace heed
