// A batch of matrix products as a BLAS wants it: strides instead of views, as few leading axes as can be, and copies of
// operands that cannot be read where they lie. Shared by `cpu` (OpenBLAS) and the CUDA devices (cuBLAS).
#pragma once
#include <cstdint>

#include "tensor/device.h"
#include "tensor/scratch.h"

namespace heed {

struct Matrix {
  void* data;
  int64_t row, column;  // strides

  Matrix transposed() const { return {data, column, row}; }
};

struct Batch {            // a leading axis
  int64_t size, a, b, c;  // and its strides
};

// c (M, N) = alpha a (M, K) b (K, N) + beta c, for every index of the batch axes.
struct Products {
  int64_t M, N, K;
  Matrix a, b, c;
  int rank = 0;
  Batch batch[kMaxRank];  // the innermost first

  Products(const View& c_view, const View& a_view, const View& b_view)
      : M(c_view.shape.back(2)), N(c_view.shape.back()), K(a_view.shape.back()) {
    a = {a_view.data, a_view.strides.back(2), a_view.strides.back()};
    b = {b_view.data, b_view.strides.back(2), b_view.strides.back()};
    c = {c_view.data, c_view.strides.back(2), c_view.strides.back()};
    for (int i = c_view.rank() - 3; i >= 0; i--) {  // from the innermost leading axis outwards
      const Batch axis = {c_view.shape[i], a_view.strides[i], b_view.strides[i], c_view.strides[i]};
      if (axis.size != 1 && !continues_rows(axis)) batch[rank++] = axis;
    }
  }

  // How many products there are along the batch axes from `first` on.
  int64_t count(int first = 0) const {
    int64_t n = 1;
    for (int i = first; i < rank; i++) n *= batch[i].size;
    return n;
  }

  // Moves the three pointers to the product with this index among count(first).
  template <class In, class Out>
  void seek(int64_t index, int first, const In*& a_at, const In*& b_at, Out*& c_at) const {
    for (int i = first; i < rank; i++) {
      const int64_t at = index % batch[i].size;
      index /= batch[i].size;
      a_at += at * batch[i].a, b_at += at * batch[i].b, c_at += at * batch[i].c;
    }
  }

 private:
  // With one b for the whole axis, and the rows of a and c going on across it, it is only more rows.
  bool continues_rows(const Batch& axis) {
    if (rank > 0 || axis.b != 0) return false;
    if (M == 1 && axis.a != 0) {
      a.row = axis.a, c.row = axis.c;
    } else if (axis.a != M * a.row || axis.c != M * c.row) {
      return false;
    }
    M *= axis.size;
    return true;
  }
};

// How a BLAS reads a matrix: rows of contiguous elements, ld apart, or the transpose of that.
struct Layout {
  bool readable, transposed;
  int64_t ld;

  // The stride along an axis of size 1 does not matter.
  Layout(const Matrix& m, int64_t rows, int64_t columns) {
    const bool rows_lie = (m.column == 1 || columns == 1) && (m.row >= columns || rows == 1);
    const bool columns_lie = (m.row == 1 || rows == 1) && (m.column >= rows || columns == 1);
    transposed = !rows_lie;
    const int64_t contiguous = transposed ? rows : columns, others = transposed ? columns : rows;
    ld = others == 1 ? contiguous : transposed ? m.column : m.row;
    readable = (rows_lie || columns_lie) && ld <= INT32_MAX;
  }
};

// A copy of an operand in scratch memory, with contiguous matrices. Leading axes with stride 0 are not repeated.
class ScratchCopy {
 public:
  ScratchCopy(Device& device, const View& v) : ScratchCopy(device, v, v.dtype) {}
  ScratchCopy(Device& device, View v, DType dtype)
      : original_(v), scratch_(device.memory(), drop_repeats(v) * size_of(dtype)) {
    v.data = scratch_.as<void>();
    v.dtype = dtype;
    v.strides = contiguous_strides(v.shape);
    once_ = v;
    for (int i = 0; i < v.rank(); i++) {
      if (v.shape[i] != original_.shape[i]) v.strides[i] = 0;
    }
    v.shape = original_.shape;
    all_ = v;
  }
  View view() const { return all_; }
  void load(Device& device) const {
    View from = original_;
    from.shape = once_.shape;
    device.copy(once_, from);
  }
  void store(Device& device) const { device.copy(original_, all_); }

 private:
  static size_t drop_repeats(View& v) {  // and counts the elements that are left
    for (int i = 0; i < v.rank() - 2; i++) {
      if (v.strides[i] == 0) v.shape[i] = 1;
    }
    return static_cast<size_t>(v.numel());
  }

  View original_, once_, all_;  // all_ is once_ with its repeats
  Scratch scratch_;
};

// Calls multiply(products) with operands that a BLAS can read: the others are copied first, and c back if need be. With
// beta = 0 the old c is not read. c is not empty.
template <class Multiply>
void multiply_readable(Device& device, const View& c, const View& a, const View& b, double beta,
                       const Multiply& multiply) {
  const Products p(c, a, b);
  if (!Layout(p.a, p.M, p.K).readable) {
    const ScratchCopy copy(device, a);
    copy.load(device);
    return multiply_readable(device, c, copy.view(), b, beta, multiply);
  }
  if (!Layout(p.b, p.K, p.N).readable) {
    const ScratchCopy copy(device, b);
    copy.load(device);
    return multiply_readable(device, c, a, copy.view(), beta, multiply);
  }
  if (!Layout(p.c, p.M, p.N).readable) {
    const ScratchCopy copy(device, c);
    if (beta != 0) copy.load(device);
    multiply_readable(device, copy.view(), a, b, beta, multiply);
    return copy.store(device);
  }
  multiply(p);
}

// c = beta c, what a product over K = 0 gives.
inline void empty_product(Device& device, const View& c, double beta) {
  if (beta == 0) return device.fill(c, 0);
  device.unary(Unary::affine, c, c, beta, 0);
}

}  // namespace heed
