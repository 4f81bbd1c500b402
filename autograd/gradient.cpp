#include "autograd/gradient.h"

#include <algorithm>
#include <numeric>

namespace heed {

Rows coalesce(const Rows& rows) {
  const std::vector<int32_t> ids = rows.indices.to_vector<int32_t>();
  std::vector<int32_t> unique = ids;
  std::sort(unique.begin(), unique.end());
  unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
  std::vector<int32_t> position(ids.size());
  for (size_t i = 0; i < ids.size(); i++) {
    position[i] = static_cast<int32_t>(std::lower_bound(unique.begin(), unique.end(), ids[i]) - unique.begin());
  }
  Shape shape = rows.values.shape();
  shape[0] = static_cast<int64_t>(unique.size());
  Device& device = rows.values.device();
  const Tensor empty = zeros(shape, rows.values.dtype()).to(device);
  return {indices(unique).to(device), index_add(empty, 0, indices(position).to(device), rows.values)};
}

Gradient::Gradient(Rows rows, const Shape& table) {
  if (!rows.indices.defined() || !rows.values.defined())
    throw UsageError("rows: their indices or values are undefined");
  Shape expected = table;
  if (table.rank() > 0) expected[0] = rows.indices.numel();
  if (table.rank() == 0 || rows.indices.rank() != 1 || !(rows.values.shape() == expected)) {
    throw ShapeError(text("rows: indices ", rows.indices.shape(), " and values ", rows.values.shape(),
                          " are not (n,) and n rows of a table ", table));
  }
  if (rows.indices.dtype() != DType::i32 || &rows.indices.device() != &rows.values.device()) {
    throw DTypeError(text("rows: indices are ", name_of(rows.indices.dtype()), " on ", rows.indices.device().name(),
                          ", they must be i32 on ", rows.values.device().name(), ", where the values are"));
  }
  sparse_ = std::make_shared<const Sparse>(Sparse{std::move(rows), table});
}

Tensor Gradient::dense() const {
  if (!is_rows()) return dense_;
  const Rows& r = rows();
  Tensor zero({}, r.values.dtype(), r.values.device());
  zero.fill_(0);
  return index_add(zero.expand(sparse_->table), 0, r.indices, r.values);
}

// Not while another tensor sees the storage, nor if it is repeated along an axis, like the gradient of a sum.
bool Gradient::writable() const { return dense_.owns_storage() && !dense_.repeats(); }

void Gradient::add(const Gradient& other) {
  if (!other.defined()) return;
  if (!defined()) {
    *this = other;
  } else if (is_rows() && other.is_rows()) {
    const Rows &a = rows(), &b = other.rows();
    *this = Gradient({cat({a.indices, b.indices}), cat({a.values, b.values})}, sparse_->table);
  } else if (is_rows()) {
    *this = Gradient(index_add(other.dense_, 0, rows().indices, rows().values));
  } else if (other.is_rows()) {
    dense_ = index_add(dense_, 0, other.rows().indices, other.rows().values);
  } else if (writable()) {
    dense_.add_(other.dense_);
  } else {
    dense_ = heed::add(dense_, other.dense_);
  }
}

void Gradient::add_slice(const Tensor& piece, const Shape& shape, int axis, int64_t start) {
  if (is_rows()) *this = Gradient(dense());
  if (!dense_.defined()) {
    dense_ = Tensor(shape, piece.dtype(), piece.device());
    dense_.fill_(0);
  } else if (!writable()) {
    dense_ = dense_.contiguous_copy();
  }
  dense_.slice(axis, start, start + piece.size(axis)).add_(piece);
}

void Gradient::scale(double factor) {
  if (is_rows()) {
    *this = Gradient({rows().indices, affine(rows().values, factor, 0)}, sparse_->table);
  } else if (dense_.defined()) {
    dense_ = affine(dense_, factor, 0);
  }
}

Gradient Gradient::own(long owners) const {
  const auto alone = [&](const Tensor& x) {
    return x.contiguous() && x.storage_owners() <= owners ? x : x.contiguous_copy();
  };
  if (is_rows()) return Gradient({alone(rows().indices), alone(rows().values)}, sparse_->table);
  return dense_.defined() ? Gradient(alone(dense_)) : Gradient();
}

}  // namespace heed
