// Differentiable changes of shape. Views forward, views backward: only joining, cutting and triangles write anything.
#include "autograd/ops.h"

namespace heed {

// ---- y: the elements of x in another shape
struct Reshape final : Node {
  static constexpr Text text{"reshape", "y = x in another shape", "dx = dy in x's shape"};

  Tensor forward(const Tensor& x, const Shape& shape) { return x.reshape(shape); }
  void backward(const Tensor& dy) override { give(0, dy.reshape(input(0)->shape())); }
};
Variable reshape(const Variable& x, const Shape& shape, Site at) { return record<Reshape>(at, x, shape); }

// ---- y: the axes of x from first_axis on as one
struct Flatten final : Node {
  static constexpr Text text{"flatten", "y = x, the last axes merged", "dx = dy in x's shape"};

  Tensor forward(const Tensor& x, int first_axis) { return x.flatten(first_axis); }
  void backward(const Tensor& dy) override { give(0, dy.reshape(input(0)->shape())); }
};
Variable flatten(const Variable& x, int first_axis, Site at) { return record<Flatten>(at, x, first_axis); }

// ---- y: x with two axes swapped
struct Transpose final : Node {
  static constexpr Text text{"transpose", "y = x, two axes swapped", "dx = dy, the same axes swapped"};
  int axis0 = 0, axis1 = 0;

  Tensor forward(const Tensor& x, int axis0_in, int axis1_in) {
    return x.transpose(axis0 = axis0_in, axis1 = axis1_in);
  }
  void backward(const Tensor& dy) override { give(0, dy.transpose(axis0, axis1)); }
};
Variable transpose(const Variable& x, int axis0, int axis1, Site at) { return record<Transpose>(at, x, axis0, axis1); }

// ---- y: axis i of y is axis axes[i] of x
struct Permute final : Node {
  static constexpr Text text{"permute", "axis i of y = axis axes[i] of x", "axis axes[i] of dx = axis i of dy"};
  std::vector<int> back;

  Tensor forward(const Tensor& x, const std::vector<int>& axes) {
    const Tensor y = x.permute(axes);
    back.resize(axes.size());
    for (int i = 0; i < x.rank(); i++)
      back[static_cast<size_t>(normalize_axis("permute", axes[static_cast<size_t>(i)], x.rank()))] = i;
    return y;
  }

  void backward(const Tensor& dy) override { give(0, dy.permute(back)); }
};
Variable permute(const Variable& x, const std::vector<int>& axes, Site at) { return record<Permute>(at, x, axes); }

// ---- y: x repeated along axes of size 1
struct Expand final : Node {
  static constexpr Text text{"expand", "y = x, repeated along some axes", "dx = dy summed over those axes"};

  Tensor forward(const Tensor& x, const Shape& shape) { return x.expand(shape); }
  void backward(const Tensor& dy) override { give(0, dy); }  // x was broadcast: the engine sums
};
Variable expand(const Variable& x, const Shape& shape, Site at) { return record<Expand>(at, x, shape); }

// ---- y: x with a new axis of size 1
struct Unsqueeze final : Node {
  static constexpr Text text{"unsqueeze", "y = x with a new axis of size 1", "dx = dy without that axis"};
  int axis = 0;

  Tensor forward(const Tensor& x, int axis_in) { return x.unsqueeze(axis = axis_in); }
  void backward(const Tensor& dy) override { give(0, dy.squeeze(axis)); }
};
Variable unsqueeze(const Variable& x, int axis, Site at) { return record<Unsqueeze>(at, x, axis); }

// ---- y: x without an axis of size 1
struct Squeeze final : Node {
  static constexpr Text text{"squeeze", "y = x without an axis of size 1", "dx = dy with that axis again"};
  int axis = 0;

  Tensor forward(const Tensor& x, int axis_in) { return x.squeeze(axis = axis_in); }
  void backward(const Tensor& dy) override { give(0, dy.unsqueeze(axis)); }
};
Variable squeeze(const Variable& x, int axis, Site at) { return record<Squeeze>(at, x, axis); }

// ---- y = x[start : end] along an axis
struct Slice final : Node {
  static constexpr Text text{"slice", "y_i = x_(start + i)", "dx_(start + i) = dy_i, 0 elsewhere"};
  int axis = 0;
  int64_t start = 0;

  Tensor forward(const Tensor& x, int axis_in, int64_t start_in, int64_t end) {
    const Tensor y = x.slice(axis = axis_in, start_in, end);
    start = start_in < 0 ? start_in + x.size(axis) : start_in;
    return y;
  }

  void backward(const Tensor& dy) override { give_slice(0, dy, axis, start); }
};
Variable slice(const Variable& x, int axis, int64_t start, int64_t end, Site at) {
  return record<Slice>(at, x, axis, start, end);
}

// ---- y = x[index] along an axis, which is gone
struct Select final : Node {
  static constexpr Text text{"select", "y = x_index", "dx_index = dy, 0 elsewhere"};
  int axis = 0;
  int64_t index = 0;

  Tensor forward(const Tensor& x, int axis_in, int64_t index_in) {
    const Tensor y = x.select(axis = axis_in, index_in);
    index = index_in < 0 ? index_in + x.size(axis) : index_in;
    return y;
  }

  void backward(const Tensor& dy) override { give_slice(0, dy.unsqueeze(axis), axis, index); }
};
Variable select(const Variable& x, int axis, int64_t index, Site at) { return record<Select>(at, x, axis, index); }

// ---- y: the parts one after another along an axis
struct Cat final : Node {
  static constexpr Text text{"cat", "y = the parts, one after another", "d(part) = its part of dy"};
  int axis = 0;
  std::vector<int64_t> sizes;

  Tensor forward(const std::vector<Tensor>& parts, int axis_in) {
    const Tensor y = heed::cat(parts, axis = axis_in);
    for (const Tensor& part : parts) sizes.push_back(part.size(axis));
    return y;
  }

  void backward(const Tensor& dy) override {
    int64_t start = 0;
    for (int i = 0; i < input_count(); i++) {
      const int64_t size = sizes[static_cast<size_t>(i)];
      give(i, dy.slice(axis, start, start + size));
      start += size;
    }
  }
};
Variable cat(const std::vector<Variable>& parts, int axis, Site at) { return record<Cat>(at, parts, axis); }

// ---- y: the parts along a new axis
struct Stack final : Node {
  static constexpr Text text{"stack", "y_i = part i", "d(part i) = dy_i"};
  int axis = 0;

  Tensor forward(const std::vector<Tensor>& parts, int axis_in) { return heed::stack(parts, axis = axis_in); }

  void backward(const Tensor& dy) override {
    for (int i = 0; i < input_count(); i++) give(i, dy.select(axis, i));
  }
};
Variable stack(const std::vector<Variable>& parts, int axis, Site at) { return record<Stack>(at, parts, axis); }

// ---- x in pieces along an axis: a node for each piece. The pieces' gradients meet in one buffer of x's shape.
struct Split final : Node {
  static constexpr Text text{"split", "y = one of x's pieces", "that piece of dx = dy"};
  int axis = 0;
  int64_t start = 0;

  Tensor forward(const Tensor& /*x*/, const Tensor& piece, int axis_in, int64_t start_in) {
    axis = axis_in;
    start = start_in;
    return piece;
  }

  void backward(const Tensor& dy) override { give_slice(0, dy, axis, start); }
};

namespace {

std::vector<Variable> record_pieces(const Variable& x, const std::vector<Tensor>& pieces, int axis, Site at) {
  std::vector<Variable> out;
  int64_t start = 0;
  for (const Tensor& piece : pieces) {
    out.push_back(record<Split>(at, x, piece, axis, start));
    start += piece.size(axis);
  }
  return out;
}

}  // namespace

std::vector<Variable> split(const Variable& x, const std::vector<int64_t>& sizes, int axis, Site at) {
  return record_pieces(x,
                       placed(
                           at, [&] { return heed::split(x.value(), sizes, axis); }, x),
                       axis, at);
}
std::vector<Variable> chunk(const Variable& x, int64_t chunks, int axis, Site at) {
  return record_pieces(x,
                       placed(
                           at, [&] { return heed::chunk(x.value(), chunks, axis); }, x),
                       axis, at);
}

// ---- y: x on and below a diagonal of the last two axes, 0 above
struct Tril final : Node {
  static constexpr Text text{"tril", "y_ij = x_ij [j <= i + diagonal]", "dx_ij = dy_ij [j <= i + diagonal]"};
  int64_t diagonal = 0;

  Tensor forward(const Tensor& x, int64_t diagonal_in) { return heed::tril(x, diagonal = diagonal_in); }
  void backward(const Tensor& dy) override { give(0, heed::tril(dy, diagonal)); }
};
Variable tril(const Variable& x, int64_t diagonal, Site at) { return record<Tril>(at, x, diagonal); }

// ---- y: x on and above a diagonal of the last two axes, 0 below
struct Triu final : Node {
  static constexpr Text text{"triu", "y_ij = x_ij [j >= i + diagonal]", "dx_ij = dy_ij [j >= i + diagonal]"};
  int64_t diagonal = 0;

  Tensor forward(const Tensor& x, int64_t diagonal_in) { return heed::triu(x, diagonal = diagonal_in); }
  void backward(const Tensor& dy) override { give(0, heed::triu(dy, diagonal)); }
};
Variable triu(const Variable& x, int64_t diagonal, Site at) { return record<Triu>(at, x, diagonal); }

}  // namespace heed
