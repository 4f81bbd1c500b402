// BLAS copies its operands into an order of its own at every call, which for a tile costs up to a third of the time.
// Here the caller packs what needs packing once and uses it many times. The inner block keeps kRows x kVectors vectors
// of c in registers, and that is all that makes it fast: each k costs kVectors loads of b and kRows of a for kRows *
// kVectors multiply-adds.
#include "tensor/cpu_tile.h"

namespace heed::cpu {

namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kRows = 12, kVectors = 2;  // 24 sums, in 32 registers
#elif defined(__AVX__)
constexpr int kVectorBytes = 32, kRows = 6, kVectors = 2;  // 12 sums, in 16 registers
#else
constexpr int kVectorBytes = 16, kRows = 6, kVectors = 2;
#endif

template <class T>
struct Lanes {
  static constexpr int64_t count = kVectorBytes / sizeof(T);
  typedef T Vector __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
};

// c[0..R) [0..C vectors) = a b, or += a b with `add`. a: (R, K); b: (K, C vectors), rows ldb apart.
template <class T, int R, int C>
[[gnu::always_inline]] inline void block(T* c, int64_t ldc, Operand<T> a, const T* b, int64_t ldb, int64_t K,
                                         bool add) {
  using Vector = typename Lanes<T>::Vector;
  constexpr int64_t lanes = Lanes<T>::count;
  Vector sum[R][C] = {};
  for (int64_t k = 0; k < K; k++) {
    for (int i = 0; i < R; i++) {
      const T x = a.data[i * a.row + k * a.column];
      for (int j = 0; j < C; j++) sum[i][j] += x * *reinterpret_cast<const Vector*>(b + k * ldb + j * lanes);
    }
  }
  for (int i = 0; i < R; i++) {
    for (int j = 0; j < C; j++) {
      Vector& out = *reinterpret_cast<Vector*>(c + i * ldc + j * lanes);
      out = add ? out + sum[i][j] : sum[i][j];
    }
  }
}

// The next R rows of c; where fewer are left, the template counts down to their number.
template <class T, int R>
void band(int64_t rows, int64_t N, int64_t K, T* c, int64_t ldc, Operand<T> a, const T* b, int64_t ldb, bool add) {
  constexpr int64_t lanes = Lanes<T>::count;
  if (rows < R) {
    if constexpr (R > 1) band<T, R - 1>(rows, N, K, c, ldc, a, b, ldb, add);
    return;
  }
  int64_t j = 0;
  for (; j + kVectors * lanes <= N; j += kVectors * lanes) block<T, R, kVectors>(c + j, ldc, a, b + j, ldb, K, add);
  for (; j < N; j += lanes) block<T, R, 1>(c + j, ldc, a, b + j, ldb, K, add);
}

}  // namespace

template <class T>
void tile_product(int64_t M, int64_t N, int64_t K, T* c, int64_t ldc, Operand<T> a, const T* b, int64_t ldb, bool add) {
  for (int64_t i = 0; i < M; i += kRows) {
    band<T, kRows>(M - i, N, K, c + i * ldc, ldc, {a.data + i * a.row, a.row, a.column}, b, ldb, add);
  }
}

template void tile_product(int64_t, int64_t, int64_t, float*, int64_t, Operand<float>, const float*, int64_t, bool);
template void tile_product(int64_t, int64_t, int64_t, double*, int64_t, Operand<double>, const double*, int64_t, bool);

}  // namespace heed::cpu
