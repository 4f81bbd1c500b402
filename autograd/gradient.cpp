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
  Tensor table(table_, rows_.values.dtype(), rows_.values.device());
  table.fill_(0);
  return index_add(table, 0, rows_.indices, rows_.values);
}

void Gradient::add(const Gradient& other) {
  if (!other.defined()) return;
  if (!defined()) {
    *this = other;
  } else if (is_rows() && other.is_rows()) {
    rows_ = {cat({rows_.indices, other.rows_.indices}), cat({rows_.values, other.rows_.values})};
  } else if (is_rows()) {
    *this = Gradient(index_add(other.dense_, 0, rows_.indices, rows_.values));
  } else if (other.is_rows()) {
    dense_ = index_add(dense_, 0, other.rows_.indices, other.rows_.values);
  } else if (dense_.owns_storage()) {
    dense_.add_(other.dense_);
  } else {
    dense_ = heed::add(dense_, other.dense_);
  }
}

void Gradient::add_slice(const Tensor& piece, const Shape& shape, int axis, int64_t start) {
  if (is_rows()) dense_ = dense(), rows_ = {};
  if (!dense_.defined()) {
    dense_ = Tensor(shape, piece.dtype(), piece.device());
    dense_.fill_(0);
  } else if (!dense_.owns_storage()) {
    dense_ = dense_.contiguous_copy();
  }
  dense_.slice(axis, start, start + piece.size(axis)).add_(piece);
}

void Gradient::scale(double factor) {
  if (is_rows()) {
    rows_.values = affine(rows_.values, factor, 0);
  } else if (dense_.defined()) {
    dense_ = affine(dense_, factor, 0);
  }
}

}  // namespace heed
