// Gradient: what flows backwards. Dense, a Tensor of the variable's shape; or Rows, for a table of which few rows were
// read.
#pragma once
#include <memory>

#include "tensor/ops.h"

namespace heed {

// The gradient of a table (V, ...) that is 0 except in some rows: row indices[i] receives values[i]. An index may occur
// several times; its values add up.
struct Rows {
  Tensor indices;  // i32 (n,)
  Tensor values;   // (n, ...)
};

// Rows with every index once, in ascending order; equal indices' values are added in their order of occurrence.
Rows coalesce(const Rows& rows);

// Only accumulation, clipping and optimizers see Rows; everyone else asks for dense().
class Gradient {
 public:
  Gradient() = default;
  explicit Gradient(Tensor dense) : dense_(std::move(dense)) {}
  Gradient(Rows rows, const Shape& table);  // an Error unless these can be rows of such a table

  bool defined() const { return dense_.defined() || is_rows(); }
  bool is_rows() const { return sparse_ != nullptr; }
  const Rows& rows() const { return sparse_->rows; }  // if is_rows()
  Tensor dense() const;  // of the table's shape if these are rows; undefined if there is none

  // If defined; of the whole, if these are rows.
  const Shape& shape() const { return is_rows() ? sparse_->table : dense_.shape(); }
  DType dtype() const { return is_rows() ? rows().values.dtype() : dense_.dtype(); }
  Device& device() const { return is_rows() ? rows().values.device() : dense_.device(); }

  // this += other. Never writes into a tensor that someone else can see.
  void add(const Gradient& other);
  // this[axis, start : start + piece.size(axis)] += piece, the rest of `shape` being 0: the gradient of a slice.
  void add_slice(const Tensor& piece, const Shape& shape, int axis, int64_t start);
  void scale(double factor);
  // The same numbers in contiguous memory that nobody else can see; copied unless `owners` handles are all there are.
  Gradient own(long owners = 1) const;

 private:
  struct Sparse {
    Rows rows;
    Shape table;
  };
  bool writable() const;  // may dense_ be added to in place?

  Tensor dense_;
  std::shared_ptr<const Sparse> sparse_;  // apart: a million nodes have room for a gradient, few for rows
};

}  // namespace heed
