// Views of a tensor: the same storage read with another shape, other strides, another offset.
#include "tensor/tensor.h"

namespace heed {

namespace {

// Strides with which a view of the new shape reads the same elements in the same order, if there are such strides.
// Axes of the old shape that lie together in memory form a run; every run must be cut up exactly by new axes.
bool view_strides(const Shape& shape, const Strides& strides, const Shape& target, Strides& out) {
  out = contiguous_strides(target);
  if (target.numel() == 0) return true;
  int t = target.rank() - 1;
  int64_t run = 1, base = 1;  // elements in the run so far, stride of its innermost axis
  int64_t taken = 1;          // elements of the run that new axes have used
  for (int i = shape.rank() - 1; i >= 0; i--) {
    if (shape[i] == 1) continue;
    if (run == 1) base = strides[i];
    run *= shape[i];
    int next = i - 1;
    while (next >= 0 && shape[next] == 1) next--;
    if (next >= 0 && strides[next] == base * run) continue;  // the next axis outwards goes on in the same run
    while (t >= 0 && (taken < run || target[t] == 1)) {
      out[t] = taken * base;
      taken *= target[t--];
    }
    if (taken != run) return false;
    run = taken = 1;
  }
  return true;
}

Shape resolve_shape(const Shape& from, const Shape& target) {
  Shape shape = target, others;
  int unknown = -1;
  for (int i = 0; i < shape.rank(); i++) {
    if (shape[i] != -1) {
      others.push_back(shape[i]);
    } else if (unknown == -1) {
      unknown = i;
    } else {
      throw ShapeError(text("reshape: only one size may be -1, asked for ", target));
    }
  }
  const int64_t known = checked_numel("reshape", others);
  if (unknown >= 0 && known > 0 && from.numel() % known == 0) shape[unknown] = from.numel() / known;
  if (unknown >= 0 && shape[unknown] == -1) {
    throw ShapeError(text("reshape: ", operand(0, "x", from), " has ", from.numel(), " elements, which no size in place of the -1 in ",
                          target, " matches"));
  }
  if (checked_numel("reshape", shape) != from.numel()) {
    throw ShapeError(text("reshape: ", operand(0, "x", from), " has ", from.numel(), " elements, ", shape, " has ", shape.numel()));
  }
  return shape;
}

}  // namespace

Tensor Tensor::with(const Shape& shape, const Strides& strides, int64_t offset) const {
  Tensor y = *this;
  y.shape_ = shape;
  y.strides_ = strides;
  y.offset_ = offset;
  return y;
}

Tensor Tensor::reshape(const Shape& target) const {
  const Shape shape = resolve_shape(shape_, target);
  Strides strides;
  if (view_strides(shape_, strides_, shape, strides)) return with(shape, strides, offset_);
  const Tensor copy = contiguous_copy();
  return copy.with(shape, contiguous_strides(shape), 0);
}

Tensor Tensor::flatten(int first_axis) const {
  if (rank() == 0) return reshape({1});
  const int first = normalize_axis("flatten", first_axis, rank());
  Shape shape;
  int64_t rest = 1;
  for (int i = 0; i < rank(); i++) {
    if (i < first) {
      shape.push_back(shape_[i]);
    } else {
      rest *= shape_[i];
    }
  }
  shape.push_back(rest);
  return reshape(shape);
}

Tensor Tensor::transpose(int axis0, int axis1) const {
  const int a = normalize_axis("transpose", axis0, rank()), b = normalize_axis("transpose", axis1, rank());
  Tensor y = *this;
  std::swap(y.shape_[a], y.shape_[b]);
  std::swap(y.strides_[a], y.strides_[b]);
  return y;
}

Tensor Tensor::permute(const std::vector<int>& axes) const {
  bool valid = static_cast<int>(axes.size()) == rank(), used[kMaxRank] = {};
  Tensor y = *this;
  for (int i = 0; valid && i < rank(); i++) {
    const int axis = normalize_axis("permute", axes[static_cast<size_t>(i)], rank());
    valid = !used[axis];
    used[axis] = true;
    y.shape_[i] = shape_[axis];
    y.strides_[i] = strides_[axis];
  }
  if (!valid) throw ShapeError(text("permute: the axes must be each of the ", rank(), " axes of ", operand(0, "x", shape_), " once"));
  return y;
}

Tensor Tensor::slice(int axis, int64_t start, int64_t end, int64_t step) const {
  const int a = normalize_axis("slice", axis, rank());
  const int64_t n = shape_[a], from = start < 0 ? start + n : start, to = end < 0 ? end + n : end;
  if (step < 1 || from < 0 || to > n || from > to) {
    throw IndexError(text("slice: [", start, ", ", end, ") step ", step, " does not fit axis ", axis, " of size ", n, " in ",
                          operand(0, "x", shape_)));
  }
  Tensor y = *this;
  y.shape_[a] = to == from ? 0 : (to - from - 1) / step + 1;
  y.strides_[a] = strides_[a] * (y.shape_[a] > 1 ? step : 1);  // the product with a step beyond the end might overflow
  y.offset_ += from * strides_[a];
  return y;
}

Tensor Tensor::select(int axis, int64_t index) const {
  const int a = normalize_axis("select", axis, rank());
  const int64_t n = shape_[a], i = index < 0 ? index + n : index;
  if (i < 0 || i >= n) throw IndexError(text("select: index ", index, " is outside axis ", axis, " of size ", n));
  Tensor y = *this;
  y.shape_.erase(a);
  y.strides_.erase(a);
  y.offset_ += i * strides_[a];
  return y;
}

Tensor Tensor::expand(const Shape& shape) const {
  if (shape == shape_) return *this;
  if (!broadcastable_to(shape_, shape)) {
    throw ShapeError(text("expand: ", operand(0, "x", shape_), " does not broadcast to ", shape,
                          "; counted from the last axis, sizes must be equal or 1"));
  }
  checked_numel("expand", shape);
  return with(shape, broadcast_strides(shape_, strides_, shape), offset_);
}

Tensor Tensor::unsqueeze(int axis) const {
  const int a = normalize_axis("unsqueeze", axis, rank() + 1);
  Tensor y = *this;
  y.shape_.insert(a, 1);
  y.strides_.insert(a, a < rank() ? strides_[a] * shape_[a] : 1);
  return y;
}

Tensor Tensor::squeeze(int axis) const {
  const int a = normalize_axis("squeeze", axis, rank());
  if (shape_[a] != 1) throw ShapeError(text("squeeze: axis ", axis, " of ", operand(0, "x", shape_), " has size ", shape_[a], ", not 1"));
  Tensor y = *this;
  y.shape_.erase(a);
  y.strides_.erase(a);
  return y;
}

}  // namespace heed
