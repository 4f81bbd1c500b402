// Matrix products by cuBLAS: c = alpha a b + beta c for every leading index.
//
// cuBLAS counts by columns, heed by rows. A row-major matrix read by columns is its transpose, and c^T = b^T a^T: so a
// and b change places, and nothing is copied. An operand whose rows or whose columns are contiguous is read where it
// lies, a transpose is a flag; only others are copied first. Leading axes that continue the rows become one large
// product; of the others, the longest is cuBLAS's batch.
//
// f32 is multiplied as f32. HEED_TF32=1 allows tensor cores with ten bits of mantissa instead of 23.
#include <cstdlib>
#include <utility>

#include "cuda/device.h"
#include "tensor/error.h"
#include "tensor/scratch.h"

namespace heed::HEED_GPU {

namespace {

struct Matrix {
  void* data;
  int64_t rows, columns, row_step, column_step;

  Matrix transposed() const { return {data, columns, rows, column_step, row_step}; }
  bool rows_lie() const {  // each contiguous; the step along an axis of size 1 does not matter
    return (column_step == 1 || columns == 1) && (row_step >= columns || rows == 1);
  }
  bool readable() const { return rows_lie() || transposed().rows_lie(); }
  int ld() const { return static_cast<int>(rows == 1 ? columns : row_step); }  // of a matrix whose rows lie
};

Matrix matrix_of(const View& v) {
  return {v.data, v.shape.back(2), v.shape.back(), v.strides.back(2), v.strides.back()};
}

struct Batch {            // a leading axis
  int64_t size, c, a, b;  // and its strides
};

struct Products {
  Matrix c, a, b;
  int rank = 0;
  Batch batch[kMaxRank];  // the innermost first

  Products(const View& c_view, const View& a_view, const View& b_view)
      : c(matrix_of(c_view)), a(matrix_of(a_view)), b(matrix_of(b_view)) {
    for (int i = c_view.rank() - 3; i >= 0; i--) {
      const Batch axis = {c_view.shape[i], c_view.strides[i], a_view.strides[i], b_view.strides[i]};
      if (axis.size != 1 && !continues_rows(axis)) batch[rank++] = axis;
    }
    for (int i = 1; i < rank; i++) {  // the longest first
      if (batch[i].size > batch[0].size) std::swap(batch[i], batch[0]);
    }
    if (rank == 0) batch[rank++] = {1, 0, 0, 0};
  }

 private:
  // With one b for the whole axis, and the rows of a and c going on across it, it is only more rows.
  bool continues_rows(const Batch& axis) {
    if (rank > 0 || axis.b != 0) return false;
    if (c.rows == 1 && axis.a != 0) {
      a.row_step = axis.a, c.row_step = axis.c;
    } else if (axis.a != a.rows * a.row_step || axis.c != c.rows * c.row_step) {
      return false;
    }
    a.rows *= axis.size, c.rows *= axis.size;
    return true;
  }
};

// ---- operands that are copied

class Copy {
 public:
  Copy(Device& device, const View& v)
      : original_(v), scratch_(device.memory(), static_cast<size_t>(v.numel()) * size_of(v.dtype)) {
    copy_ = {scratch_.as<void>(), v.shape, contiguous_strides(v.shape), v.dtype};
  }
  View view() const { return copy_; }
  void load(Device& device) const { device.copy(copy_, original_); }
  void store(Device& device) const { device.copy(original_, copy_); }

 private:
  View original_, copy_;
  Scratch scratch_;
};

// ---- the calls

cublasStatus_t gemm(cublasHandle_t blas, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                    const float* alpha, const float* a, int lda, int64_t step_a, const float* b, int ldb,
                    int64_t step_b, const float* beta, float* c, int ldc, int64_t step_c, int count) {
  return cublasSgemmStridedBatched(blas, op_a, op_b, m, n, k, alpha, a, lda, step_a, b, ldb, step_b, beta, c, ldc,
                                   step_c, count);
}
cublasStatus_t gemm(cublasHandle_t blas, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                    const double* alpha, const double* a, int lda, int64_t step_a, const double* b, int ldb,
                    int64_t step_b, const double* beta, double* c, int ldc, int64_t step_c, int count) {
  return cublasDgemmStridedBatched(blas, op_a, op_b, m, n, k, alpha, a, lda, step_a, b, ldb, step_b, beta, c, ldc,
                                   step_c, count);
}

void check_counts(const Products& p) {
  for (int64_t n : {p.c.rows, p.c.columns, p.a.columns, p.c.row_step, p.c.column_step, p.a.row_step, p.a.column_step,
                    p.b.row_step, p.b.column_step, p.batch[0].size}) {
    if (n > INT32_MAX) throw ShapeError(text("matmul: cuBLAS counts to 2^31, and a size or a stride is ", n));
  }
}

// All products of the first batch axis, whose other leading indices are already in the data pointers.
template <class T>
void multiply(cublasHandle_t blas, const Products& p, const T* a_data, const T* b_data, T* c_data, T alpha, T beta) {
  Matrix a = p.a, b = p.b, c = p.c;
  Batch batch = p.batch[0];
  if (!c.rows_lie()) {  // c^T = b^T a^T
    std::swap(a, b), std::swap(a_data, b_data), std::swap(batch.a, batch.b);
    a = a.transposed(), b = b.transposed(), c = c.transposed();
  }
  // Read by columns, a matrix whose rows lie is its own transpose, which is what the product of columns wants.
  const auto op = [](const Matrix& m) { return m.rows_lie() ? CUBLAS_OP_N : CUBLAS_OP_T; };
  const auto ld = [](const Matrix& m) { return m.rows_lie() ? m.ld() : m.transposed().ld(); };
  gpu::check(gemm(blas, op(b), op(a), static_cast<int>(c.columns), static_cast<int>(c.rows),
                  static_cast<int>(a.columns), &alpha, b_data, ld(b), batch.b, a_data, ld(a), batch.a, &beta, c_data,
                  c.ld(), batch.c, static_cast<int>(batch.size)),
             "matmul");
}

template <class T>
void multiply_all(cublasHandle_t blas, const Products& p, double alpha, double beta) {
  int64_t calls = 1;
  for (int i = 1; i < p.rank; i++) calls *= p.batch[i].size;
  for (int64_t call = 0; call < calls; call++) {
    const T *a = static_cast<const T*>(p.a.data), *b = static_cast<const T*>(p.b.data);
    T* c = static_cast<T*>(p.c.data);
    int64_t rest = call;
    for (int i = 1; i < p.rank; i++) {
      const int64_t at = rest % p.batch[i].size;
      rest /= p.batch[i].size;
      a += at * p.batch[i].a, b += at * p.batch[i].b, c += at * p.batch[i].c;
    }
    multiply(blas, p, a, b, c, static_cast<T>(alpha), static_cast<T>(beta));
  }
}

bool tf32_is_asked_for() {
  static const char* setting = std::getenv("HEED_TF32");
  return setting && std::string(setting) == "1";
}

}  // namespace

void Gpu::matmul(View c, View a, View b, double alpha, double beta) {
  if (c.numel() == 0) return;
  if (a.shape.back() == 0) {  // the empty sum
    if (beta == 0) return fill(c, 0);
    return unary(Unary::affine, c, c, beta, 0);
  }
  const Products p(c, a, b);
  if (!p.a.readable()) {
    const Copy copy(*this, a);
    copy.load(*this);
    return matmul(c, copy.view(), b, alpha, beta);
  }
  if (!p.b.readable()) {
    const Copy copy(*this, b);
    copy.load(*this);
    return matmul(c, a, copy.view(), alpha, beta);
  }
  if (!p.c.readable()) {
    const Copy copy(*this, c);
    if (beta != 0) copy.load(*this);
    matmul(copy.view(), a, b, alpha, beta);
    return copy.store(*this);
  }
  check_counts(p);
  gpu::check(cublasSetMathMode(blas_, tf32_is_asked_for() ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH),
             "matmul");
  with_floats(c.dtype, [&](auto t) { multiply_all<decltype(t)>(blas_, p, alpha, beta); });
}

}  // namespace heed::HEED_GPU
