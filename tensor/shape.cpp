#include "tensor/shape.h"

#include <ostream>

#include "tensor/error.h"

namespace heed {

Shape::Shape(std::initializer_list<int64_t> sizes) {
  for (int64_t size : sizes) push_back(size);
}

Shape::Shape(const std::vector<int64_t>& sizes) {
  for (int64_t size : sizes) push_back(size);
}

Shape Shape::filled(int rank, int64_t value) {
  Shape s;
  for (int i = 0; i < rank; i++) s.push_back(value);
  return s;
}

void Shape::push_back(int64_t size) { insert(rank_, size); }

void Shape::insert(int axis, int64_t size) {
  if (rank_ == kMaxRank) throw ShapeError(text("shape: a tensor has at most ", kMaxRank, " axes"));
  for (int i = rank_; i > axis; i--) size_[i] = size_[i - 1];
  size_[axis] = size;
  rank_++;
}

void Shape::erase(int axis) {
  for (int i = axis; i + 1 < rank_; i++) size_[i] = size_[i + 1];
  size_[--rank_] = 0;
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '(';
  for (int i = 0; i < shape.rank(); i++) out << (i ? ", " : "") << shape[i];
  return out << (shape.rank() == 1 ? ",)" : ")");
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides = Shape::filled(shape.rank(), 1);
  for (int i = shape.rank() - 2; i >= 0; i--) strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

bool is_contiguous(const Shape& shape, const Strides& strides) {
  int64_t expected = 1;
  for (int i = shape.rank() - 1; i >= 0; i--) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

bool has_repeats(const Shape& shape, const Strides& strides) {
  bool repeats = false, empty = false;
  for (int i = 0; i < shape.rank(); i++) {
    repeats |= strides[i] == 0 && shape[i] > 1;
    empty |= shape[i] == 0;
  }
  return repeats && !empty;
}

int normalize_axis(const char* op, int axis, int rank) {
  if (axis < -rank || axis >= rank) {
    throw IndexError(
        text(op, ": axis ", axis, " is outside a tensor of rank ", rank, "; valid are ", -rank, " to ", rank - 1));
  }
  return axis < 0 ? axis + rank : axis;
}

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  if (a == b) return a;
  const int rank = a.rank() > b.rank() ? a.rank() : b.rank();
  Shape out = Shape::filled(rank, 1);
  for (int i = 1; i <= rank; i++) {
    const int64_t x = i <= a.rank() ? a.back(i) : 1, y = i <= b.rank() ? b.back(i) : 1;
    if (x != y && x != 1 && y != 1) {
      throw ShapeError(text(op, ": shapes do not broadcast: ", operand(0, "a", a), " and ", operand(1, "b", b),
                            "; counted from the last axis, sizes must be equal or 1, and ", x, " meets ", y));
    }
    out[rank - i] = x == 1 ? y : x;
  }
  return out;
}

bool broadcastable_to(const Shape& from, const Shape& to) {
  if (from.rank() > to.rank()) return false;
  for (int i = 1; i <= from.rank(); i++) {
    if (from.back(i) != to.back(i) && from.back(i) != 1) return false;
  }
  return true;
}

Strides broadcast_strides(const Shape& from, const Strides& strides, const Shape& to) {
  Strides out = Shape::filled(to.rank(), 0);
  const int lead = to.rank() - from.rank();
  for (int i = 0; i < from.rank(); i++) out[lead + i] = from[i] == 1 && to[lead + i] != 1 ? 0 : strides[i];
  return out;
}

int64_t checked_numel(const char* op, const Shape& shape) {
  int64_t n = 1;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0) throw ShapeError(text(op, ": a size is negative in shape ", shape));
    empty |= size == 0;
    if (size > 0 && (__builtin_mul_overflow(n, size, &n) || n > (int64_t{1} << 56))) {
      throw ShapeError(text(op, ": shape ", shape, " has more than 2^56 elements"));
    }
  }
  return empty ? 0 : n;
}

}  // namespace heed
