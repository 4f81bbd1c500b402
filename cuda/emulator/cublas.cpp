#include "cuda/emulator/cublas.h"

#include <cblas.h>

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuda/emulator/graph.h"
#include "cuda/emulator/memory.h"
#include "tensor/error.h"

namespace heed::emulated {

struct CublasContext {
  cudaStream_t stream = nullptr;
};

namespace {

// One operand as it lies in memory: `batch` column-major matrices (rows, columns), columns ld elements apart.
struct Matrices {
  const char* name;
  const void* data;
  cudaDataType type;
  int rows, columns, ld;
  long long stride;

  const void* at(int i) const { return static_cast<const char*>(data) + static_cast<size_t>(i * stride) * size(); }
  size_t size() const { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }
  size_t extent() const {
    return static_cast<size_t>(columns - 1) * static_cast<size_t>(ld) + static_cast<size_t>(rows);
  }
};

struct Gemm {
  cublasOperation_t op_a, op_b;
  int m, n, k;
  Matrices a, b, c;
  int batch;
};

void check(const Matrices& x, int batch) {
  const std::string what = text("cublas gemm: matrix ", x.name, " (", x.rows, ", ", x.columns, ", column-major)");
  if (x.ld < x.rows) throw DeviceError(text(what, " has a leading dimension of ", x.ld, ", less than its rows"));
  if (x.stride < 0) throw DeviceError(text(what, " has a stride of ", x.stride));
  if (x.rows == 0 || x.columns == 0) return;
  const size_t elements = static_cast<size_t>(batch - 1) * static_cast<size_t>(x.stride) + x.extent();
  check_device_range(x.data, elements * x.size(),
                     text(what, " of ", batch, " with leading dimension ", x.ld, " and stride ", x.stride).c_str());
}

bool check(const Gemm& g) {
  if (g.m < 0 || g.n < 0 || g.k < 0 || g.batch < 0) {
    throw DeviceError(text("cublas gemm: m = ", g.m, ", n = ", g.n, ", k = ", g.k, ", batch = ", g.batch));
  }
  if (g.m == 0 || g.n == 0 || g.batch == 0) return false;
  for (const Matrices& x : {g.a, g.b, g.c}) check(x, g.batch);
  // One behind the other, or the columns of one between those of the other (heads of a (B, T, H, D) tensor).
  const bool apart = static_cast<size_t>(g.c.stride) >= g.c.extent();
  const bool between = g.c.stride >= g.m && g.c.stride * (g.batch - 1) + g.m <= g.c.ld;
  if (g.batch > 1 && !apart && !between) {
    throw DeviceError(text("cublas gemm: the matrices c overlap: their stride is ", g.c.stride));
  }
  return true;
}

CBLAS_TRANSPOSE flag(cublasOperation_t op) { return op == CUBLAS_OP_N ? CblasNoTrans : CblasTrans; }

template <class T>
void multiply(const Gemm& g, T alpha, const T* a, const T* b, T beta, T* c) {
  const auto gemm = [] {
    if constexpr (std::is_same_v<T, double>)
      return &cblas_dgemm;
    else
      return &cblas_sgemm;
  }();
  gemm(CblasColMajor, flag(g.op_a), flag(g.op_b), g.m, g.n, g.k, alpha, a, g.a.ld, b, g.b.ld, beta, c, g.c.ld);
}

template <class T>
void multiply_all(const Gemm& g, T alpha, T beta) {
  if (!check(g)) return;
  const OpenMemory open;
  for (int i = 0; i < g.batch; i++) {
    multiply(g, alpha, static_cast<const T*>(g.a.at(i)), static_cast<const T*>(g.b.at(i)), beta,
             static_cast<T*>(const_cast<void*>(g.c.at(i))));
  }
}

// One matrix as f32, with the same leading dimension.
std::vector<float> widen(const Matrices& x, int i) {
  std::vector<float> out(x.rows && x.columns ? x.extent() : 0);
  for (int column = 0; column < x.columns; column++) {
    for (int row = 0; row < x.rows; row++) {
      const size_t at = static_cast<size_t>(column) * static_cast<size_t>(x.ld) + static_cast<size_t>(row);
      switch (x.type) {
        case CUDA_R_16F:
          out[at] = static_cast<float>(static_cast<const f16*>(x.at(i))[at]);
          break;
        case CUDA_R_16BF:
          out[at] = static_cast<float>(static_cast<const bf16*>(x.at(i))[at]);
          break;
        case CUDA_R_32F:
          out[at] = static_cast<const float*>(x.at(i))[at];
          break;
        case CUDA_R_64F:
          break;  // never asked for
      }
    }
  }
  return out;
}

void narrow(const std::vector<float>& from, const Matrices& x, int i) {
  void* to = const_cast<void*>(x.at(i));
  for (int column = 0; column < x.columns; column++) {
    for (int row = 0; row < x.rows; row++) {
      const size_t at = static_cast<size_t>(column) * static_cast<size_t>(x.ld) + static_cast<size_t>(row);
      switch (x.type) {
        case CUDA_R_16F:
          static_cast<f16*>(to)[at] = f16(from[at]);
          break;
        case CUDA_R_16BF:
          static_cast<bf16*>(to)[at] = bf16(from[at]);
          break;
        case CUDA_R_32F:
          static_cast<float*>(to)[at] = from[at];
          break;
        case CUDA_R_64F:
          break;
      }
    }
  }
}

void multiply_mixed(const Gemm& g, float alpha, float beta) {
  if (!check(g)) return;
  const OpenMemory open;
  for (int i = 0; i < g.batch; i++) {
    const std::vector<float> a = widen(g.a, i), b = widen(g.b, i);
    std::vector<float> c = beta == 0 ? std::vector<float>(g.c.extent()) : widen(g.c, i);
    multiply(g, alpha, a.data(), b.data(), beta, c.data());
    narrow(c, g.c, i);
  }
}

Matrices operand(const char* name, const void* data, cudaDataType type, cublasOperation_t op, int rows, int columns,
                 int ld, long long stride) {
  if (op == CUBLAS_OP_T) std::swap(rows, columns);
  return {name, data, type, rows, columns, ld, stride};
}

}  // namespace

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "not initialized";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "not supported";
  }
  return "unknown status";
}

cublasStatus_t cublasCreate(cublasHandle_t* handle) { return *handle = new CublasContext, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasDestroy(cublasHandle_t handle) { return delete handle, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  return handle->stream = stream, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) { return *version = 0, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, size_t) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                                          int k, const void* alpha, const void* a, cudaDataType a_type, int lda,
                                          long long stride_a, const void* b, cudaDataType b_type, int ldb,
                                          long long stride_b, const void* beta, void* c, cudaDataType c_type, int ldc,
                                          long long stride_c, int batch, cublasComputeType_t compute,
                                          cublasGemmAlgo_t) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  const Gemm gemm{op_a,
                  op_b,
                  m,
                  n,
                  k,
                  operand("a", a, a_type, op_a, m, k, lda, stride_a),
                  operand("b", b, b_type, op_b, k, n, ldb, stride_b),
                  operand("c", c, c_type, CUBLAS_OP_N, m, n, ldc, stride_c),
                  batch};
  const bool doubles = a_type == CUDA_R_64F || b_type == CUDA_R_64F || c_type == CUDA_R_64F;
  const bool all_doubles = a_type == CUDA_R_64F && b_type == CUDA_R_64F && c_type == CUDA_R_64F;
  if (doubles != (compute == CUBLAS_COMPUTE_64F) || doubles != all_doubles || a_type != b_type ||
      (c_type != a_type && c_type != CUDA_R_32F)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  // alpha and beta are read now, the matrices when the product's turn comes.
  const auto value = [&](const void* x) { return doubles ? *static_cast<const double*>(x) : *static_cast<const float*>(x); };
  const double factor = value(alpha), keep = value(beta);
  submit(handle->stream, GraphNode::Kind::product, [=] {
    if (doubles) {
      multiply_all(gemm, factor, keep);
    } else if (a_type == CUDA_R_32F && c_type == CUDA_R_32F) {
      multiply_all(gemm, static_cast<float>(factor), static_cast<float>(keep));
    } else {
      multiply_mixed(gemm, static_cast<float>(factor), static_cast<float>(keep));
    }
  });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                         int n, int k, const float* alpha, const float* a, int lda, long long stride_a,
                                         const float* b, int ldb, long long stride_b, const float* beta, float* c,
                                         int ldc, long long stride_c, int batch) {
  return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, CUDA_R_32F, lda, stride_a, b, CUDA_R_32F,
                                    ldb, stride_b, beta, c, CUDA_R_32F, ldc, stride_c, batch, CUBLAS_COMPUTE_32F,
                                    CUBLAS_GEMM_DEFAULT);
}

cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                         int n, int k, const double* alpha, const double* a, int lda,
                                         long long stride_a, const double* b, int ldb, long long stride_b,
                                         const double* beta, double* c, int ldc, long long stride_c, int batch) {
  return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, CUDA_R_64F, lda, stride_a, b, CUDA_R_64F,
                                    ldb, stride_b, beta, c, CUDA_R_64F, ldc, stride_c, batch, CUBLAS_COMPUTE_64F,
                                    CUBLAS_GEMM_DEFAULT);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                            const void* alpha, const void* a, cudaDataType a_type, int lda, const void* b,
                            cudaDataType b_type, int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c,
                                    c_type, ldc, 0, 1, compute, algorithm);
}

}  // namespace heed::emulated
