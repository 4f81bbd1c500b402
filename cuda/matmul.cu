// Matrix products by cuBLAS: c = alpha a b + beta c for every leading index.
//
// cuBLAS counts by columns, heed by rows. A row-major matrix read by columns is its transpose, and c^T = b^T a^T: so a
// and b change places, and nothing is copied. An operand whose rows or whose columns are contiguous is read where it
// lies, a transpose is a flag; only others are copied first. Leading axes that continue the rows become one large
// product; of the others, the longest is cuBLAS's batch.
//
// f32 is multiplied as f32. HEED_TF32=1 allows tensor cores with ten bits of mantissa instead of 23. f16 and bf16 are
// read as they are, and their products added in f32.
#include <cstdlib>
#include <utility>

#include "cuda/device.h"
#include "tensor/error.h"
#include "tensor/products.h"

namespace heed::HEED_GPU {

namespace {

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

constexpr cudaDataType_t code_of(f16) { return CUDA_R_16F; }
constexpr cudaDataType_t code_of(bf16) { return CUDA_R_16BF; }

template <class Half>
cublasStatus_t gemm(cublasHandle_t blas, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                    const float* alpha, const Half* a, int lda, int64_t step_a, const Half* b, int ldb, int64_t step_b,
                    const float* beta, float* c, int ldc, int64_t step_c, int count) {
  const cudaDataType_t code = code_of(Half{});
  return cublasGemmStridedBatchedEx(blas, op_a, op_b, m, n, k, alpha, a, code, lda, step_a, b, code, ldb, step_b, beta,
                                    c, CUDA_R_32F, ldc, step_c, count, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

// The longest batch axis becomes cuBLAS's own: it goes first, and there is one even if its size is 1.
void lead_with_longest(Products& p) {
  for (int i = 1; i < p.rank; i++) {
    if (p.batch[i].size > p.batch[0].size) std::swap(p.batch[i], p.batch[0]);
  }
  if (p.rank == 0) p.batch[p.rank++] = {1, 0, 0, 0};
}

void check_counts(const Products& p) {
  for (int64_t n : {p.M, p.N, p.K, p.batch[0].size}) {
    if (n > INT32_MAX) throw ShapeError(text("matmul: cuBLAS counts to 2^31, and a size is ", n));
  }
}

// All products of the first batch axis, whose other leading indices are already in the pointers. Read by columns, a
// matrix whose rows lie is its own transpose, which is what the product of columns wants: so a and b change places.
template <class In, class Out>
void multiply(cublasHandle_t blas, const Products& p, const In* a, const In* b, Out* c, Out alpha, Out beta) {
  const Layout la(p.a, p.M, p.K), lb(p.b, p.K, p.N), lc(p.c, p.M, p.N);
  const Batch& batch = p.batch[0];
  const int M = static_cast<int>(p.M), N = static_cast<int>(p.N), K = static_cast<int>(p.K);
  const int lda = static_cast<int>(la.ld), ldb = static_cast<int>(lb.ld), ldc = static_cast<int>(lc.ld);
  const int count = static_cast<int>(batch.size);
  const auto op = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const cublasStatus_t status = lc.transposed  // c by columns is c: no change of places
                                    ? gemm(blas, op(!la.transposed), op(!lb.transposed), M, N, K, &alpha, a, lda,
                                           batch.a, b, ldb, batch.b, &beta, c, ldc, batch.c, count)
                                    : gemm(blas, op(lb.transposed), op(la.transposed), N, M, K, &alpha, b, ldb, batch.b,
                                           a, lda, batch.a, &beta, c, ldc, batch.c, count);
  gpu::check(status, "matmul");
}

template <class In, class Out>
void multiply_all(cublasHandle_t blas, const Products& p, double alpha, double beta) {
  for (int64_t call = 0; call < p.count(1); call++) {
    const In *a = static_cast<const In*>(p.a.data), *b = static_cast<const In*>(p.b.data);
    Out* c = static_cast<Out*>(p.c.data);
    p.seek(call, 1, a, b, c);
    multiply(blas, p, a, b, c, static_cast<Out>(alpha), static_cast<Out>(beta));
  }
}

bool tf32_is_asked_for() {
  static const char* setting = std::getenv("HEED_TF32");
  return setting && std::string(setting) == "1";
}

}  // namespace

void Gpu::matmul(View c, View a, View b, double alpha, double beta) {
  if (c.numel() == 0) return;
  if (a.shape.back() == 0) return empty_product(*this, c, beta);
  gpu::check(cublasSetMathMode(blas_, tf32_is_asked_for() ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH),
             "matmul");
  multiply_readable(*this, c, a, b, beta, [&](Products p) {
    lead_with_longest(p);
    check_counts(p);
    if (a.dtype == DType::f16) return multiply_all<f16, float>(blas_, p, alpha, beta);
    if (a.dtype == DType::bf16) return multiply_all<bf16, float>(blas_, p, alpha, beta);
    with_floats(c.dtype, [&](auto t) { multiply_all<decltype(t), decltype(t)>(blas_, p, alpha, beta); });
  });
}

}  // namespace heed::HEED_GPU
