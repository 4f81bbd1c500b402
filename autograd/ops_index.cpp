// Differentiable choices by index. What is read forward is added to backward.
#include "autograd/ops.h"

namespace heed {

namespace {

Tensor zeros_of(const Shape& shape, const Tensor& like) {  // a view: one 0, repeated
  Tensor zero({}, like.dtype(), like.device());
  return zero.fill_(0).expand(shape);
}

}  // namespace

// ---- y[.., i, ..] = x[.., index[.., i, ..], ..]
struct Gather final : Node {
  static constexpr Text text{"gather", "y_i = x_index(i)", "dx_index(i) += dy_i"};
  Saved index{this};
  int axis = 0;

  Tensor forward(const Tensor& x, int axis_in, const Tensor& index_in) {
    return heed::gather(x, axis = axis_in, index = index_in);
  }

  void backward(const Tensor& dy) override {
    give(0, heed::scatter_add(zeros_of(input(0)->shape(), dy), axis, index, dy));
  }
};
Variable gather(const Variable& x, int axis, const Tensor& index, Site at) {
  return record<Gather>(at, x, axis, index);
}

// ---- y[.., i, ..] = x[.., index[i], ..]
struct IndexSelect final : Node {
  static constexpr Text text{"index_select", "y_i = x_index(i), whole slices", "dx_index(i) += dy_i"};
  Saved index{this};
  int axis = 0;

  Tensor forward(const Tensor& x, int axis_in, const Tensor& index_in) {
    return heed::index_select(x, axis = axis_in, index = index_in);
  }

  void backward(const Tensor& dy) override { give(0, index_add(zeros_of(input(0)->shape(), dy), axis, index, dy)); }
};
Variable index_select(const Variable& x, int axis, const Tensor& index, Site at) {
  return record<IndexSelect>(at, x, axis, index);
}

// ---- y = x, and y[.., index[.., i, ..], ..] += values[.., i, ..]
struct ScatterAdd final : Node {
  static constexpr Text text{"scatter_add", "y = x,  y_index(i) += v_i", "dx = dy,  dv_i = dy_index(i)"};
  Saved index{this};
  int axis = 0;

  Tensor forward(const Tensor& x, int axis_in, const Tensor& index_in, const Tensor& values) {
    return heed::scatter_add(x, axis = axis_in, index = index_in, values);
  }

  void backward(const Tensor& dy) override {
    give(0, dy);
    if (needs(1)) give(1, heed::gather(dy, axis, index));
  }
};
Variable scatter_add(const Variable& x, int axis, const Tensor& index, const Variable& values, Site at) {
  return record<ScatterAdd>(at, x, axis, index, values);
}

// ---- rows of a table        weight: (V, D), ids: (...,), y: (..., D)
// The gradient is n rows, not a table of V that is 0 nearly everywhere; but a GPU fills the table sooner than the host,
// which would have to wait for it, finds out which rows are the same.
struct Embedding final : Node {
  static constexpr Text text{"embedding", "y_i = W_id(i)", "dW_id(i) += dy_i, but for the padding row"};
  Saved ids{this};
  int64_t padding_idx = -1;
  Shape table;

  Tensor forward(const Tensor& weight, const Tensor& ids_in, int64_t padding_idx_in) {
    padding_idx = padding_idx_in;
    table = weight.shape();
    if (padding_idx < -1 || (weight.rank() == 2 && padding_idx >= weight.size(0))) {
      throw IndexError(heed::text("embedding: padding_idx ", padding_idx, " is outside the rows of ",
                                  operand(0, "weight", weight.shape()), " and not -1"));
    }
    return heed::embedding(weight, ids = ids_in);
  }

  void backward(const Tensor& dy) override {
    const int64_t n = ids.get().numel();
    Rows rows{ids.get().reshape({n}), dy.reshape({n, dy.size(-1)})};
    if (!dy.device().on_host()) {
      Tensor dense = Gradient(rows, table).dense();
      if (padding_idx >= 0) dense.slice(0, padding_idx, padding_idx + 1).fill_(0);
      return give(0, dense);
    }
    if (padding_idx >= 0) rows = without(padding_idx, rows);
    give(0, rows);
  }

 private:
  static Rows without(int64_t id, const Rows& rows) {
    const std::vector<int32_t> all = rows.indices.to_vector<int32_t>();
    std::vector<int32_t> kept;
    for (size_t i = 0; i < all.size(); i++) {
      if (all[i] != id) kept.push_back(static_cast<int32_t>(i));
    }
    if (kept.size() == all.size()) return rows;
    const Tensor positions = indices(kept).to(rows.values.device());
    return {heed::index_select(rows.indices, 0, positions), heed::index_select(rows.values, 0, positions)};
  }
};
Variable embedding(const Variable& weight, const Tensor& ids, int64_t padding_idx, Site at) {
  return record<Embedding>(at, weight, ids, padding_idx);
}

}  // namespace heed
