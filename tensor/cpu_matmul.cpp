// Matrix products by OpenBLAS. What makes it fast:
// - operands are read where they lie whenever one of their two axes is contiguous (products.h): a transpose is a flag, a
//   slice a distance between rows. Only others are copied first;
// - leading axes that continue the rows become one large product;
// - many products run in parallel, each on one thread; few large ones one after the other, each on all threads;
// - a product with a vector is done as such, three to five times faster than as a matrix of one column.
// Halves are widened to f32 first: OpenBLAS has no product of f16.
//
// With another number of threads OpenBLAS may add in another order: results are then equal to rounding, not to the bit.
#include <omp.h>

#include <utility>

#include "tensor/blas.h"
#include "tensor/cpu.h"
#include "tensor/products.h"

namespace heed {

namespace {

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
    p_.seek(index, 0, a, b, c);
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

// ---- halves

View swap_last_axes(View v) {
  const int last = v.rank() - 1;
  std::swap(v.shape[last], v.shape[last - 1]);
  std::swap(v.strides[last], v.strides[last - 1]);
  return v;
}

// An operand of halves as f32. Where its columns lie contiguous, so do the copy's: a conversion that also transposes
// would touch a cache line for each element.
class Widened {
 public:
  Widened(Device& device, const View& half)
      : by_columns_(half.strides.back(2) == 1), copy_(device, by_columns_ ? swap_last_axes(half) : half, DType::f32) {
    copy_.load(device);
  }
  View view() const { return by_columns_ ? swap_last_axes(copy_.view()) : copy_.view(); }

 private:
  bool by_columns_;
  ScratchCopy copy_;
};

}  // namespace

void Cpu::matmul(View c, View a, View b, double alpha, double beta) {
  if (c.numel() == 0) return;
  if (a.shape.back() == 0) return empty_product(*this, c, beta);
  if (is_half(a.dtype)) {
    const Widened wide_a(*this, a), wide_b(*this, b);
    return matmul(c, wide_a.view(), wide_b.view(), alpha, beta);
  }
  multiply_readable(*this, c, a, b, beta, [&](const Products& p) {
    with_floats(c.dtype, [&](auto t) { multiply<decltype(t)>(p, alpha, beta); });
  });
}

}  // namespace heed
