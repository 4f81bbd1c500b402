// Layer norm and RMS norm of the fast CPU device, by the same loops: RMS norm is layer norm with a mean of 0.
//
// A row stays in the cache over its passes, which are vectorised. In the gradient of w and b each part of the rows has
// sums of its own, added up in order: how the rows are cut depends on the shape alone, so the result does not depend on
// the threads.
#include <vector>

#include "tensor/cpu.h"
#include "tensor/cpu_rows.h"
#include "tensor/scratch.h"

namespace heed {

namespace {

using cpu::LastAxisRows;

// The elements of a vector (C,) side by side; `otherwise` for each element of an absent one.
template <class T>
class Vector {
 public:
  Vector(const View& v, int64_t C, T otherwise) {
    if (v && (v.strides[0] == 1 || C == 1)) {
      data_ = v.as<T>();
    } else {
      own_.assign(static_cast<size_t>(C), otherwise);
      for (int64_t c = 0; v && c < C; c++) own_[static_cast<size_t>(c)] = v.as<T>()[c * v.strides[0]];
      data_ = own_.data();
    }
  }
  Vector(const Vector&) = delete;
  const T* data() const { return data_; }

 private:
  std::vector<T> own_;
  const T* data_;
};

// ---- y = (x - mean) rstd w + b; without `mean`, y = x rstd w + b

template <class T>
void norm(Cpu& cpu, const View& y_view, const View& mean, const View& rstd, const View& x_view, const View& w_view,
          const View& b_view, double eps) {
  const LastAxisRows<T> y(cpu, y_view);
  const LastAxisRows<const T> x(cpu, x_view);
  const int64_t C = x.length();
  const double columns = static_cast<double>(C);
  const Vector<T> w_vector(w_view, C, 1), b_vector(b_view, C, 0);
  const T *w = w_vector.data(), *b = b_vector.data();

  cpu::parallel_for(x.count(), C, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      const T* from = x[r];
      T* to = y[r];
      T mu = 0;
      if (mean) mean.as<T>()[r] = mu = static_cast<T>(cpu::sum_of<T>(C, [=](int64_t c) { return from[c]; }) / columns);
      const double squares = cpu::sum_of<T>(C, [=](int64_t c) { return (from[c] - mu) * (from[c] - mu); });
      const T rs = static_cast<T>(1 / std::sqrt(squares / columns + eps));
#pragma omp simd
      for (int64_t c = 0; c < C; c++) to[c] = (from[c] - mu) * rs * w[c] + b[c];
      rstd.as<T>()[r] = rs;
    }
  });
}

// ---- the gradient, with n = (x - mean) rstd and g = dy w

// Sums over rows of dy n and dy, the gradients of w and b: 64 rows in T, all of them in f64.
template <class T>
class ColumnSums {
 public:
  ColumnSums(int64_t C, double* total) : C_(C), total_(total), part_(static_cast<size_t>(2 * stride())) {
    std::fill_n(total, 2 * C, 0.0);
  }
  T* dw() { return part_.data(); }
  T* db() { return part_.data() + stride(); }
  void row_is_done() {
    if (++rows_ % 64 == 0) flush();
  }
  void flush() {
    for (int64_t c = 0; c < C_; c++) {
      total_[c] += static_cast<double>(dw()[c]);
      total_[C_ + c] += static_cast<double>(db()[c]);
    }
    std::fill(part_.begin(), part_.end(), T(0));
  }

 private:
  // Not a multiple of 4096 bytes: at that distance a processor takes a store and a load for the same address.
  int64_t stride() const { return C_ + 32; }

  int64_t C_, rows_ = 0;
  double* total_;        // dw, then db
  std::vector<T> part_;  // the same
};

// dx = rstd (g - mean(g) - n mean(g n)); RMS norm has no mean(g).
template <class T>
void norm_grad_row(T* dx, const T* dy, const T* x, const T* w, int64_t C, T mu, T rs, bool centred, double gn_sum) {
  const double columns = static_cast<double>(C);
  const T gn_mean = static_cast<T>(gn_sum / columns);
  const T g_mean =
      centred ? static_cast<T>(cpu::sum_of<T>(C, [=](int64_t c) { return dy[c] * w[c]; }) / columns) : T(0);
#pragma omp simd
  for (int64_t c = 0; c < C; c++) dx[c] = rs * (dy[c] * w[c] - g_mean - (x[c] - mu) * rs * gn_mean);
}

// Adds a row to dw and db, and returns sum g n: one pass for both.
template <class T>
double add_row(T* dw, T* db, const T* dy, const T* x, const T* w, int64_t C, T mu, T rs) {
  return cpu::sum_of<T>(C, [=](int64_t c) {
    const T dyn = dy[c] * ((x[c] - mu) * rs);
    dw[c] += dyn;
    db[c] += dy[c];
    return dyn * w[c];
  });
}

// y[c] = the sum of the parts p[c], p[stride + c], ..., in order
template <class T>
void add_parts(const View& y, double* p, int64_t parts, int64_t stride) {
  if (!y) return;
  const int64_t C = y.shape[0];
  for (int64_t i = 1; i < parts; i++) {
    for (int64_t c = 0; c < C; c++) p[c] += p[i * stride + c];
  }
  for (int64_t c = 0; c < C; c++) y.as<T>()[c * y.strides[0]] = static_cast<T>(p[c]);
}

template <class T>
void norm_grad(Cpu& cpu, const View& dx_view, const View& dw, const View& db, const View& dy_view, const View& x_view,
               const View& w_view, const View& mean, const View& rstd) {
  const LastAxisRows<T> dx(
      cpu, dx_view ? dx_view : View{nullptr, x_view.shape, contiguous_strides(x_view.shape), x_view.dtype});
  const LastAxisRows<const T> dy(cpu, dy_view), x(cpu, x_view);
  const int64_t N = x.count(), C = x.length();
  const Vector<T> w_vector(w_view, C, 1);
  const T* w = w_vector.data();
  const bool sums = dw || db;
  const int64_t parts = std::clamp<int64_t>(N * C / cpu::kSerial, 1, 64), part = (N + parts - 1) / parts;
  const Scratch scratch(cpu.memory(), sums ? static_cast<size_t>(parts * 2 * C) * sizeof(double) : 0);
  double* total = scratch.as<double>();

  cpu::parallel_for(parts, part * C, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) {
      ColumnSums<T> columns(sums ? C : 0, total + p * 2 * C);
      for (int64_t r = p * part; r < std::min(N, (p + 1) * part); r++) {
        const T *g = dy[r], *from = x[r];
        const T mu = mean ? mean.as<T>()[r] : T(0), rs = rstd.as<T>()[r];
        double gn_sum;
        if (sums) {
          gn_sum = add_row(columns.dw(), columns.db(), g, from, w, C, mu, rs);
          columns.row_is_done();
        } else {
          gn_sum = cpu::sum_of<T>(C, [=](int64_t c) { return g[c] * w[c] * ((from[c] - mu) * rs); });
        }
        if (dx_view) norm_grad_row(dx[r], g, from, w, C, mu, rs, static_cast<bool>(mean), gn_sum);
      }
      if (sums) columns.flush();
    }
  });
  add_parts<T>(dw, total, parts, 2 * C);
  add_parts<T>(db, total + C, parts, 2 * C);
}

}  // namespace

void Cpu::layer_norm(View y, View mean, View rstd, View x, View w, View b, double eps) {
  with_floats(x.dtype, [&](auto t) { norm<decltype(t)>(*this, y, mean, rstd, x, w, b, eps); });
}

void Cpu::layer_norm_grad(View dx, View dw, View db, View dy, View x, View w, View mean, View rstd) {
  with_floats(x.dtype, [&](auto t) { norm_grad<decltype(t)>(*this, dx, dw, db, dy, x, w, mean, rstd); });
}

void Cpu::rms_norm(View y, View rrms, View x, View w, double eps) {
  with_floats(x.dtype, [&](auto t) { norm<decltype(t)>(*this, y, View{}, rrms, x, w, View{}, eps); });
}

void Cpu::rms_norm_grad(View dx, View dw, View dy, View x, View w, View rrms) {
  with_floats(x.dtype, [&](auto t) { norm_grad<decltype(t)>(*this, dx, dw, View{}, dy, x, w, View{}, rrms); });
}

}  // namespace heed
