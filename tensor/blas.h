// The machine's BLAS (OpenBLAS), its threads, and whether it computes rightly.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace heed {

// c = alpha op(a) op(b) + beta c, row-major; op transposes if asked to. op(a): (m, k), op(b): (k, n), c: (m, n); ld*:
// the distance of rows in memory. beta = 0 does not read c. Inside an OpenMP parallel region it runs on the calling
// thread alone.
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
          const float* b, int64_t ldb, float beta, float* c, int64_t ldc);
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, double alpha, const double* a,
          int64_t lda, const double* b, int64_t ldb, double beta, double* c, int64_t ldc);

// y = alpha op(a) x + beta y. a: (rows, columns) as it lies in memory; step_*: from one element to the next, positive.
void gemv(bool transpose, int64_t rows, int64_t columns, float alpha, const float* a, int64_t lda, const float* x,
          int64_t step_x, float beta, float* y, int64_t step_y);
void gemv(bool transpose, int64_t rows, int64_t columns, double alpha, const double* a, int64_t lda, const double* x,
          int64_t step_x, double beta, double* y, int64_t step_y);

// Threads of OpenMP and of BLAS together; 0: OMP_NUM_THREADS, or one for each core. Returns warnings, one sentence each.
std::vector<std::string> set_threads(int threads);
int threads();

std::string blas_description();  // "OpenBLAS 0.3.21 ..., kernel Haswell, on OpenMP's threads (2)"

// Some OpenBLAS builds compute wrongly on some new processors. Tries products of several shapes, transposed and not, in
// f32 and f64, which takes about a millisecond; NumericError saying what to do if one is wrong.
void check_blas();

}  // namespace heed
