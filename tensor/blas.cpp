#include "tensor/blas.h"

#include <cblas.h>
#include <omp.h>

#include <cmath>

#include "tensor/error.h"

// Only OpenBLAS has these; weak, so that another BLAS links too.
extern "C" {
__attribute__((weak)) char* openblas_get_config();
__attribute__((weak)) char* openblas_get_corename();
__attribute__((weak)) int openblas_get_parallel();
__attribute__((weak)) void openblas_set_num_threads(int);
}

namespace heed {

namespace {

constexpr int kOpenMP = 2;  // openblas_get_parallel(): 0 sequential, 1 its own threads, 2 OpenMP's

CBLAS_TRANSPOSE flag(bool transpose) { return transpose ? CblasTrans : CblasNoTrans; }

int size(int64_t n) {
  if (n > INT32_MAX) throw ShapeError(text("matmul: a size or row distance of ", n, " is more than BLAS counts"));
  return static_cast<int>(n);
}

bool shares_openmp() { return openblas_get_parallel && openblas_get_parallel() == kOpenMP; }

}  // namespace

void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
          const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  cblas_sgemm(CblasRowMajor, flag(transpose_a), flag(transpose_b), size(m), size(n), size(k), alpha, a, size(lda), b,
              size(ldb), beta, c, size(ldc));
}

void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, double alpha, const double* a,
          int64_t lda, const double* b, int64_t ldb, double beta, double* c, int64_t ldc) {
  cblas_dgemm(CblasRowMajor, flag(transpose_a), flag(transpose_b), size(m), size(n), size(k), alpha, a, size(lda), b,
              size(ldb), beta, c, size(ldc));
}

void gemv(bool transpose, int64_t rows, int64_t columns, float alpha, const float* a, int64_t lda, const float* x,
          int64_t step_x, float beta, float* y, int64_t step_y) {
  cblas_sgemv(CblasRowMajor, flag(transpose), size(rows), size(columns), alpha, a, size(lda), x, size(step_x), beta, y,
              size(step_y));
}

void gemv(bool transpose, int64_t rows, int64_t columns, double alpha, const double* a, int64_t lda, const double* x,
          int64_t step_x, double beta, double* y, int64_t step_y) {
  cblas_dgemv(CblasRowMajor, flag(transpose), size(rows), size(columns), alpha, a, size(lda), x, size(step_x), beta, y,
              size(step_y));
}

std::vector<std::string> set_threads(int wanted) {
  std::vector<std::string> warnings;
  const int cores = omp_get_num_procs();
  static const int at_start = omp_get_max_threads();  // OMP_NUM_THREADS, or every core
  const int count = wanted > 0 ? wanted : at_start;
  if (count > cores) warnings.push_back(text(count, " threads on ", cores, " cores will wait for each other"));
  omp_set_num_threads(count);
  if (openblas_set_num_threads) openblas_set_num_threads(shares_openmp() ? count : 1);
  if (openblas_get_parallel && !shares_openmp() && count > 1) {
    warnings.push_back(
        "this OpenBLAS does not share OpenMP's threads, so large products run on one; install libopenblas-openmp-dev");
  }
  return warnings;
}

int threads() { return omp_get_max_threads(); }

std::string blas_description() {
  if (!openblas_get_config) return "not OpenBLAS";
  return text(openblas_get_config(), ", kernel ", openblas_get_corename ? openblas_get_corename() : "?",
              shares_openmp() ? text(", on OpenMP's threads (", threads(), ")") : ", not on OpenMP's threads");
}

namespace {

// Numbers of magnitude up to 1 that differ from each other.
template <class T>
std::vector<T> numbers(int64_t count, int64_t step) {
  std::vector<T> out(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; i++) out[static_cast<size_t>(i)] = static_cast<T>((i * step) % 97 - 48) / T(48);
  return out;
}

// Is c = a b + c / 2 computed rightly? Comparing c x with a (b x) + c x / 2 for some vector x tells, and costs m n + m
// k + k n, not m n k (Freivalds 1977).
template <class T>
bool product_is_right(bool ta, bool tb, int64_t m, int64_t n, int64_t k) {
  const auto a = numbers<T>(m * k, 31), b = numbers<T>(k * n, 53), x = numbers<T>(n, 71);
  std::vector<T> c(static_cast<size_t>(m * n), T(1));
  gemm(ta, tb, m, n, k, T(1), a.data(), ta ? m : k, b.data(), tb ? k : n, T(0.5), c.data(), n);

  double half = 0;
  for (T x_j : x) half += 0.5 * x_j;
  std::vector<double> bx(static_cast<size_t>(k)), size(bx);  // b x, and the same of absolute values
  for (int64_t p = 0; p < k; p++) {
    for (int64_t j = 0; j < n; j++) {
      const double term = double(b.data()[tb ? j * k + p : p * n + j]) * x.data()[j];
      bx.data()[p] += term;
      size.data()[p] += std::fabs(term);
    }
  }
  for (int64_t i = 0; i < m; i++) {
    double expected = half, actual = 0, allowed = static_cast<double>(n);
    for (int64_t p = 0; p < k; p++) {
      const double a_ip = a.data()[ta ? p * m + i : i * k + p];
      expected += a_ip * bx.data()[p];
      allowed += std::fabs(a_ip) * size.data()[p];
    }
    for (int64_t j = 0; j < n; j++) actual += double(c.data()[i * n + j]) * x.data()[j];
    if (!(std::fabs(actual - expected) <= allowed * (sizeof(T) == 4 ? 1e-6 : 1e-15))) return false;
  }
  return true;
}

}  // namespace

void check_blas() {
  struct OneThread {  // waiting for a second one would take longer than the products
    int before = threads();
    OneThread() { omp_set_num_threads(1); }
    ~OneThread() { omp_set_num_threads(before); }
  } const one_thread;
  const int64_t shapes[][3] = {{5, 7, 9}, {33, 16, 64}, {64, 48, 33}, {17, 128, 40}, {130, 100, 150}};
  for (const auto& [m, n, k] : shapes) {
    for (int transposes = 0; transposes < 4; transposes++) {
      const bool ta = transposes & 1, tb = transposes & 2;
      if (product_is_right<float>(ta, tb, m, n, k) && product_is_right<double>(ta, tb, m, n, k)) continue;
      throw NumericError(text("blas: a product of (", m, ", ", k, ") and (", k, ", ", n,
                              ") is wrong on this processor (", blas_description(),
                              "); set OPENBLAS_CORETYPE=Haswell in the environment, or install another OpenBLAS"));
    }
  }
}

}  // namespace heed
