// Products of matrices small enough to stay in the caches ("tiles"), in plain C++, and the packing that they need.
#pragma once
#include <algorithm>
#include <cstdint>

namespace heed::cpu {

// Rows are padded to whole cache lines: 64 bytes, which are whole vectors too.
template <class T>
constexpr int64_t padded(int64_t n) {
  constexpr int64_t line = 64 / sizeof(T);
  return (n + line - 1) / line * line;
}

// The left operand: any strides.
template <class T>
struct Operand {
  const T* data;
  int64_t row, column;  // strides
};

// c = a b, or c += a b with `add`. a: (M, K); b: (K, N), c: (M, N), rows ldb and ldc apart; N is a multiple of 64
// bytes. Sums are taken in order of k.
template <class T>
void tile_product(int64_t M, int64_t N, int64_t K, T* c, int64_t ldc, Operand<T> a, const T* b, int64_t ldb, bool add);

// The same, but an infinity or NaN in b's row k goes nowhere in c's row i where a_ik is 0.
template <class T>
void careful_product(int64_t M, int64_t N, int64_t K, T* c, int64_t ldc, Operand<T> a, const T* b, int64_t ldb,
                     bool add) {
  for (int64_t i = 0; i < M; i++) {
    if (!add) std::fill_n(c + i * ldc, N, T(0));
    for (int64_t k = 0; k < K; k++) {
      const T x = a.data[i * a.row + k * a.column];
      if (x == T(0)) continue;
      for (int64_t j = 0; j < N; j++) c[i * ldc + j] += x * b[k * ldb + j];
    }
  }
}

// Copies rows and pads each with zeros to ld. Returns whether all values are finite.
template <class T>
bool pack_rows(T* out, int64_t ld, const T* in, int64_t stride, int64_t rows, int64_t columns) {
  T check = 0;  // NaN from the first infinity or NaN on
  for (int64_t r = 0; r < rows; r++) {
    const T* from = in + r * stride;
    T* to = out + r * ld;
    // The rows of a strided tensor lie on pages of their own: the processor does not read ahead there by itself.
    for (int64_t c = 0; c < columns; c += 64 / sizeof(T)) __builtin_prefetch(from + 16 * stride + c);
#pragma omp simd reduction(+ : check)
    for (int64_t c = 0; c < columns; c++) {
      to[c] = from[c];
      check += from[c] * T(0);
    }
    std::fill(to + columns, to + ld, T(0));
  }
  return check == T(0);
}

// out = factor in^T: (columns, rows), rows ld apart, each padded with zeros. In blocks, so that the lines of `in` stay
// at hand.
template <class T>
void pack_transposed(T* out, int64_t ld, const T* in, int64_t stride, int64_t rows, int64_t columns, T factor) {
  constexpr int64_t size = 64 / sizeof(T);
  for (int64_t r0 = 0; r0 < rows; r0 += size) {
    const int64_t r1 = std::min(r0 + size, rows);
    for (int64_t c = 0; c < columns; c++) {
      for (int64_t r = r0; r < r1; r++) out[c * ld + r] = factor * in[r * stride + c];
    }
  }
  for (int64_t c = 0; c < columns; c++) std::fill(out + c * ld + rows, out + c * ld + padded<T>(rows), T(0));
}

}  // namespace heed::cpu
