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

Tensor Gradient::dense() const {
  if (!is_rows()) return dense_;
  const Rows& r = rows();
  Tensor zero({}, r.values.dtype(), r.values.device());
  zero.fill_(0);
  return index_add(zero.expand(sparse_->table), 0, r.indices, r.values);
}

// Not while another tensor sees the storage, nor if it is repeated along an axis, like the gradient of a sum.
bool Gradient::writable() const {
  bool repeated = false;
  for (int i = 0; i < dense_.rank(); i++) repeated |= dense_.strides()[i] == 0 && dense_.shape()[i] > 1;
  return dense_.owns_storage() && !repeated;
}

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
