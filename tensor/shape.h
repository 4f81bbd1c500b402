// Shape: the sizes of a tensor's axes. Strides use the same type: how many elements one step along an axis skips.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <vector>

#include "tensor/host_device.h"

namespace heed {

constexpr int kMaxRank = 8;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes);
  explicit Shape(const std::vector<int64_t>& sizes);
  static Shape filled(int rank, int64_t value);

  HEED_BOTH int rank() const { return rank_; }
  HEED_BOTH int64_t operator[](int axis) const { return size_[axis]; }  // 0 <= axis < rank
  HEED_BOTH int64_t& operator[](int axis) { return size_[axis]; }
  HEED_BOTH int64_t numel() const {  // the product; 1 for rank 0
    int64_t n = 1;
    for (int i = 0; i < rank_; i++) n *= size_[i];
    return n;
  }
  int64_t back(int i = 1) const { return size_[rank_ - i]; }  // back(1) is the last size, back(2) the one before

  const int64_t* begin() const { return size_; }
  const int64_t* end() const { return size_ + rank_; }
  void push_back(int64_t size);
  void insert(int axis, int64_t size);
  void erase(int axis);

  friend bool operator==(const Shape& a, const Shape& b) {
    bool same = a.rank_ == b.rank_;
    for (int i = 0; same && i < a.rank_; i++) same = a.size_[i] == b.size_[i];
    return same;
  }

 private:
  int64_t size_[kMaxRank] = {};
  int rank_ = 0;
};
using Strides = Shape;

std::ostream& operator<<(std::ostream& out, const Shape& shape);  // (2, 3), (4,), ()

Strides contiguous_strides(const Shape& shape);  // row-major: the last axis has stride 1
bool is_contiguous(const Shape& shape, const Strides& strides);
bool has_repeats(const Shape& shape,
                 const Strides& strides);  // is an element at several places? so it is in an expanded view

// axis in [-rank, rank) -> [0, rank); IndexError otherwise, naming `op`.
int normalize_axis(const char* op, int axis, int rank);

// NumPy's rule: aligned at the last axis, sizes must be equal or 1. ShapeError naming `op` and both shapes.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);
bool broadcastable_to(const Shape& from, const Shape& to);
// Strides with which a tensor of shape `from` reads as one of shape `to` (0 along repeated axes).
Strides broadcast_strides(const Shape& from, const Strides& strides, const Shape& to);

// The product, checked: ShapeError on a negative size or more than 2^56 elements (so that bytes are countable too, and
// strides where a size is 0).
int64_t checked_numel(const char* op, const Shape& shape);

}  // namespace heed
