// Matrix products by OpenBLAS. What makes it fast:
// - operands are read where they lie whenever one of their two axes is contiguous: a transpose is a flag, a slice a
// distance
//   between rows. Only others are copied first;
// - leading axes that continue the rows become one large product;
// - many products run in parallel, each on one thread; few large ones one after the other, each on all threads;
// - a product with a vector is done as such, three to five times faster than as a matrix of one column.
//
// With another number of threads OpenBLAS may add in another order: results are then equal to rounding, not to the bit.
#include <omp.h>

#include "tensor/blas.h"
#include "tensor/cpu.h"
#include "tensor/scratch.h"

namespace heed {

namespace {

// ---- the problem: a batch of products, c (M, N) = alpha a (M, K) b (K, N) + beta c

struct Matrix {
  void* data;
  int64_t row, column;  // strides

  Matrix transposed() const { return {data, column, row}; }
};

struct Batch {            // a leading axis
  int64_t size, a, b, c;  // and its strides
};

struct Products {
  int64_t M, N, K;
  Matrix a, b, c;
  int rank = 0;
  Batch batch[kMaxRank];

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

  int64_t count() const {
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= batch[i].size;
    return n;
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

// ---- how BLAS reads a matrix: rows of contiguous elements, ld apart, or the transpose of that

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

// A copy of an operand that BLAS cannot read where it lies, with contiguous matrices. Axes with stride 0 are not
// repeated.
class Copy {
 public:
  Copy(Device& device, View v) : original_(v), scratch_(device.memory(), drop_repeats(v)) {
    v.data = scratch_.as<void>();
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
  static size_t drop_repeats(View& v) {
    for (int i = 0; i < v.rank() - 2; i++) {
      if (v.strides[i] == 0) v.shape[i] = 1;
    }
    return static_cast<size_t>(v.numel()) * size_of(v.dtype);
  }

  View original_, once_, all_;  // all_ is once_ with its repeats
  Scratch scratch_;
};

// ---- one product

template <class T>
class Multiply {
 public:
  Multiply(const Products& p, double alpha, double beta)
      : p_(p),
        a_(p.a, p.M, p.K),
        b_(p.b, p.K, p.N),
        c_(p.c, p.M, p.N),
        alpha_(static_cast<T>(alpha)),
        beta_(static_cast<T>(beta)) {}

  void run(int64_t index) const {
    const T *a = static_cast<const T*>(p_.a.data), *b = static_cast<const T*>(p_.b.data);
    T* c = static_cast<T*>(p_.c.data);
    for (int i = 0; i < p_.rank; i++) {
      const Batch& axis = p_.batch[i];
      const int64_t at = index % axis.size;
      index /= axis.size;
      a += at * axis.a, b += at * axis.b, c += at * axis.c;
    }
    if (p_.N == 1) {
      vector_product(a_, p_.M, p_.K, a, b, p_.K == 1 ? 1 : p_.b.row, c, p_.c.row);
    } else if (p_.M == 1) {  // c^T = b^T a^T
      vector_product({p_.b.transposed(), p_.N, p_.K}, p_.N, p_.K, b, a, p_.K == 1 ? 1 : p_.a.column, c, p_.c.column);
    } else if (c_.transposed) {
      gemm(!b_.transposed, !a_.transposed, p_.N, p_.M, p_.K, alpha_, b, b_.ld, a, a_.ld, beta_, c, c_.ld);
    } else {
      gemm(a_.transposed, b_.transposed, p_.M, p_.N, p_.K, alpha_, a, a_.ld, b, b_.ld, beta_, c, c_.ld);
    }
  }

 private:
  // y (rows,) = alpha m (rows, columns) x + beta y
  void vector_product(const Layout& layout, int64_t rows, int64_t columns, const T* m, const T* x, int64_t step_x, T* y,
                      int64_t step_y) const {
    T beta = beta_;
    if (beta == T(0)) {  // not every BLAS leaves y unread then
      for (int64_t i = 0; i < rows; i++) y[i * step_y] = 0;
      beta = 1;
    }
    gemv(layout.transposed, layout.transposed ? columns : rows, layout.transposed ? rows : columns, alpha_, m,
         layout.ld, x, step_x, beta, y, step_y);
  }

  const Products& p_;
  Layout a_, b_, c_;
  T alpha_, beta_;
};

template <class T>
void multiply(const Products& p, double alpha, double beta) {
  const Multiply<T> product(p, alpha, beta);
  const int64_t count = p.count(), work = p.M * p.N * p.K;
  const int threads = count == 1 || count * work < 65536 ? 1 : omp_get_max_threads();
  if (threads > 1 && (count >= 2 * threads || work < 1 << 22)) {
#pragma omp parallel for
    for (int64_t i = 0; i < count; i++) product.run(i);
  } else {
    for (int64_t i = 0; i < count; i++) product.run(i);
  }
}

}  // namespace

void Cpu::matmul(View c, View a, View b, double alpha, double beta) {
  if (c.numel() == 0) return;
  if (a.shape.back() == 0) {  // the empty sum
    if (beta == 0) return fill(c, 0);
    return unary(Unary::affine, c, c, beta, 0);
  }
  const Products p(c, a, b);
  if (!Layout(p.a, p.M, p.K).readable) {
    const Copy copy(*this, a);
    copy.load(*this);
    return matmul(c, copy.view(), b, alpha, beta);
  }
  if (!Layout(p.b, p.K, p.N).readable) {
    const Copy copy(*this, b);
    copy.load(*this);
    return matmul(c, a, copy.view(), alpha, beta);
  }
  if (!Layout(p.c, p.M, p.N).readable) {
    const Copy copy(*this, c);
    if (beta != 0) copy.load(*this);
    matmul(copy.view(), a, b, alpha, beta);
    return copy.store(*this);
  }
  with_floats(c.dtype, [&](auto t) { multiply<decltype(t)>(p, alpha, beta); });
}

}  // namespace heed
