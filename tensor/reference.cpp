// The reference device: every kernel of device.h in the plainest loops there can be. No BLAS, no SIMD, no threads.
//
// Read it first, step through it in a debugger. It is also the oracle: every other device is tested against it in f64.
// Nothing here is tuned. Whatever the dtype, elements are read as double and rounded once, when they are stored; so
// sums are accumulated in double also for f32, in row-major order. (scatter_add alone adds to its output directly.)
//
// Kernels read and write elements by get and set, with a row-major index, get(x, i), or with coordinates,
// get(x, {b, c, h, w}). row(x, r) is a row of x, a vector; matrix(x, n) one of the matrices in its last two axes.
#include "tensor/reference.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "tensor/host_memory.h"

namespace heed {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// ---- elements

using Index = std::initializer_list<int64_t>;

int64_t offset_at(const View& v, Index index) {
  int64_t offset = 0;
  int axis = 0;
  for (int64_t i : index) offset += i * v.strides[axis++];
  return offset;
}

double get_at(const View& v, int64_t offset) {
  double value = 0;
  with_any(v.dtype, [&](auto t) { value = convert<double>(v.as<decltype(t)>()[offset]); });
  return value;
}

void set_at(const View& v, int64_t offset, double value) {
  with_any(v.dtype, [&](auto t) { v.as<decltype(t)>()[offset] = convert<decltype(t)>(value); });
}

double get(const View& v, int64_t i) { return get_at(v, offset_of(v, i)); }
double get(const View& v, Index index) { return get_at(v, offset_at(v, index)); }
void set(const View& v, int64_t i, double value) { set_at(v, offset_of(v, i), value); }
void set(const View& v, Index index, double value) { set_at(v, offset_at(v, index), value); }
void add(const View& v, int64_t i, double value) { set(v, i, get(v, i) + value); }
void add(const View& v, Index index, double value) { set(v, index, get(v, index) + value); }

int64_t get_index(const View& v, int64_t i) { return static_cast<int64_t>(get(v, i)); }

// Of an optional operand, such as the weight of a norm.
double get_or(const View& v, int64_t i, double otherwise) { return v ? get(v, i) : otherwise; }

// A formula's parameter as elements of x hold it: clamp(x, 0, 0.1) in f32 compares with 0.1f.
double as_element(const View& x, double value) { return x.dtype == DType::f32 ? static_cast<float>(value) : value; }

// ---- rows and matrices

Shape first_axes(const Shape& shape, int count) {
  Shape first;
  for (int axis = 0; axis < count; axis++) first.push_back(shape[axis]);
  return first;
}

// The part of v at the n-th place, in row-major order, of its first `count` axes.
View part(const View& v, int count, int64_t n) {
  View p = {v.data, {}, {}, v.dtype};
  for (int axis = count; axis < v.rank(); axis++) {
    p.shape.push_back(v.shape[axis]);
    p.strides.push_back(v.strides[axis]);
  }
  const int64_t offset = offset_of({v.data, first_axes(v.shape, count), v.strides, v.dtype}, n);
  if (v) p.data = v.as<char>() + offset * static_cast<int64_t>(size_of(v.dtype));
  return p;
}

View row(const View& v, int64_t r) { return part(v, v.rank() == 0 ? 0 : v.rank() - 1, r); }
int64_t rows(const View& v) { return first_axes(v.shape, v.rank() - 1).numel(); }
View matrix(const View& v, int64_t n) { return part(v, v.rank() - 2, n); }
int64_t matrices(const View& v) { return first_axes(v.shape, v.rank() - 2).numel(); }

// Contiguous doubles to sum in, all 0 at first.
struct Sums {
  explicit Sums(const Shape& shape)
      : value(static_cast<size_t>(shape.numel())), view{value.data(), shape, contiguous_strides(shape), DType::f64} {}
  std::vector<double> value;
  View view;
};

// ---- formulas that several kernels share

double combine(Reduction op, double total, double value) {
  if (op == Reduction::max) return formula::Maximum::f<ExactMath>(value, total);
  if (op == Reduction::min) return formula::Minimum::f<ExactMath>(value, total);
  return total + (op == Reduction::sum_squares ? value * value : value);
}

// NaN if there is one among x, -inf if x is empty.
double max_of(const View& x) {
  double max = -kInfinity;
  for (int64_t i = 0; i < x.numel(); i++) max = combine(Reduction::max, max, get(x, i));
  return max;
}

// log sum_i exp(x_i) = max + log sum_i exp(x_i - max), which does not overflow. -inf if every x_i is.
double log_sum_exp(const View& x) {
  const double max = max_of(x);
  if (max == -kInfinity) return max;
  double sum = 0;
  for (int64_t i = 0; i < x.numel(); i++) sum += std::exp(get(x, i) - max);
  return max + std::log(sum);
}

// y_i = exp(x_i - max) / sum_j exp(x_j - max). Only -inf gives 0; NaN or +inf anywhere gives NaN everywhere.
void softmax_row(const View& y, const View& x) {
  const double max = max_of(x);
  double sum = 0;
  for (int64_t i = 0; i < x.numel(); i++) sum += std::exp(get(x, i) - max);
  for (int64_t i = 0; i < x.numel(); i++) set(y, i, max == -kInfinity ? 0 : std::exp(get(x, i) - max) / sum);
}

// Does dropout keep the element at these coordinates? See random.h.
bool keeps(const Dropout& dropout, int64_t b, int64_t lead, int64_t row, int64_t column) {
  if (dropout.p == 0 || dropout.p == 1) return dropout.p == 0;
  const Philox four = dropout_block(dropout.key, dropout.first_sample + b, lead, row, column / 4);
  return four.word[column % 4] >= dropout_threshold(dropout.p);
}

// ---- convolution

bool inside(const View& x, int64_t h, int64_t w) { return h >= 0 && h < x.shape[2] && w >= 0 && w < x.shape[3]; }

int64_t output_size(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  return (size + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
}

// Calls fn(n, b, c, h, w) for each entry n of the columns, in row-major order: it is x[b, c, h, w], or lies outside x.
template <class Fn>
void for_each_entry(const View& x, const ConvOptions& o, Fn fn) {
  const int64_t OH = output_size(x.shape[2], o.kernel_h, o.stride_h, o.pad_h, o.dilation_h);
  const int64_t OW = output_size(x.shape[3], o.kernel_w, o.stride_w, o.pad_w, o.dilation_w);
  int64_t n = 0;
  for (int64_t b = 0; b < x.shape[0]; b++)
    for (int64_t c = 0; c < x.shape[1]; c++)
      for (int64_t i = 0; i < o.kernel_h; i++)
        for (int64_t j = 0; j < o.kernel_w; j++)
          for (int64_t oh = 0; oh < OH; oh++)
            for (int64_t ow = 0; ow < OW; ow++) {
              const int64_t h = oh * o.stride_h - o.pad_h + i * o.dilation_h;
              const int64_t w = ow * o.stride_w - o.pad_w + j * o.dilation_w;
              fn(n++, b, c, h, w);
            }
}

// ---- attention

bool hides(const AttentionMask& mask, int64_t b, int64_t h, int64_t t, int64_t s, int64_t T, int64_t S) {
  const int64_t position = t + (S - T);  // of the query among the keys
  if (mask.causal && s > position) return true;
  if (mask.window > 0 && std::abs(position - s) > mask.window) return true;
  if (mask.lengths && s >= get_index(mask.lengths, b)) return true;
  return mask.keep && get(mask.keep, {b, h, t, s}) == 0;
}

// What one query attends to.
struct Attended {
  std::vector<int64_t> keys;   // those that the mask leaves it; no other key or value is ever read
  double lse;                  // log sum exp of the scores on them
  std::vector<double> p;       // their weights softmax(scale q k^T): one for each of `keys`
  std::vector<double> factor;  // what dropout multiplies each weight by: 1 / (1 - p) or 0
};

Attended attend(const View& q, const View& k, const AttentionOptions& options, int64_t b, int64_t h, int64_t t) {
  const int64_t T = q.shape[2], S = k.shape[2], D = q.shape[3];
  Attended r;
  for (int64_t s = 0; s < S; s++) {
    if (hides(options.mask, b, h, t, s, T, S)) continue;
    double dot = 0;
    for (int64_t d = 0; d < D; d++) dot += get(q, {b, h, t, d}) * get(k, {b, h, s, d});
    r.keys.push_back(s);
    r.p.push_back(options.scale * dot);  // the score, until softmax below
    r.factor.push_back(keeps(options.dropout, b, h, t, s) ? 1 / (1 - options.dropout.p) : 0);
  }
  const View scores = {r.p.data(), {static_cast<int64_t>(r.p.size())}, {1}, DType::f64};
  r.lse = log_sum_exp(scores);
  softmax_row(scores, scores);
  return r;
}

}  // namespace

class Reference final : public Device {
 public:
  Reference() : Device("reference", keeps_freed_blocks()) {}

  // ---- memory

  void* allocate(size_t bytes) override { return allocate_host(*this, bytes); }
  void release(void* block, size_t) override { release_host(block); }
  void upload(void* to, const void* host, size_t bytes) override { std::memcpy(to, host, bytes); }
  void download(void* host, const void* from, size_t bytes) override { std::memcpy(host, from, bytes); }

  // ---- elementwise

  void fill(View y, double value) override {
    for (int64_t i = 0; i < y.numel(); i++) set(y, i, value);
  }

  void copy(View y, View x) override {
    for (int64_t i = 0; i < y.numel(); i++) set(y, i, get(x, i));
  }

  // y = f(x); the formulas are in formulas.h.
  void unary(Unary op, View y, View x, double p, double q) override {
    p = as_element(y, p), q = as_element(y, q);
    with_formula(op, [&](auto formula) {
      for (int64_t i = 0; i < y.numel(); i++) set(y, i, formula.template f<ExactMath>(get(x, i), p, q));
    });
  }

  // dx = dy * df(x, y)
  void unary_grad(Unary op, View dx, View dy, View x, View y, double p, double q) override {
    p = as_element(dx, p), q = as_element(dx, q);
    with_formula(op, [&](auto formula) {
      for (int64_t i = 0; i < dx.numel(); i++) {
        set(dx, i, get(dy, i) * formula.template df<ExactMath>(get_or(x, i, 0), get_or(y, i, 0), p, q));
      }
    });
  }

  // y = f(a, b)
  void binary(Binary op, View y, View a, View b) override {
    with_formula(op, [&](auto formula) {
      for (int64_t i = 0; i < y.numel(); i++) set(y, i, formula.template f<ExactMath>(get(a, i), get(b, i)));
    });
  }

  // y = condition != 0 ? a : b
  void where(View y, View condition, View a, View b) override {
    for (int64_t i = 0; i < y.numel(); i++) set(y, i, get(condition, i) != 0 ? get(a, i) : get(b, i));
  }

  // y = keep ? x / (1 - p) : 0, for x seen as (B, L, R, C)
  void dropout(View y, View x, const Dropout& dropout) override {
    const int rank = x.rank();  // (B, ..., R, C); absent axes count as 1
    const int64_t C = rank > 1 ? x.shape.back() : 1, R = rank > 2 ? x.shape.back(2) : 1;
    int64_t L = 1;
    for (int axis = 1; axis < rank - 2; axis++) L *= x.shape[axis];
    for (int64_t i = 0; i < x.numel(); i++) {
      const bool kept = keeps(dropout, i / (L * R * C), i / (R * C) % L, i / C % R, i % C);
      set(y, i, kept ? get(x, i) / (1 - dropout.p) : 0);
    }
  }

  // Word i % 4 of counter i / 4.
  void uniform(View y, uint64_t key) override {
    for (int64_t i = 0; i < y.numel(); i++) {
      const uint64_t block = static_cast<uint64_t>(i) / 4;
      const Philox four = philox(static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0, key);
      set(y, i, uniform_from_bits(four.word[i % 4]));
    }
  }

  // ---- reductions

  // total repeats along the reduced axes (stride 0), so each x meets the total it belongs to.
  void reduce(Reduction op, View y, View x) override {
    Sums totals(y.shape);
    fill(totals.view, op == Reduction::max ? -kInfinity : op == Reduction::min ? kInfinity : 0);
    View total = totals.view;
    total.shape = x.shape;
    total.strides = broadcast_strides(y.shape, totals.view.strides, x.shape);
    for (int64_t i = 0; i < x.numel(); i++) set(total, i, combine(op, get(total, i), get(x, i)));
    copy(y, totals.view);
  }

  // y = the first j at which x is largest, NaN counting as larger than any number
  void argmax(View y, View x) override {
    int axis = 0;  // the reduced one
    while (axis < x.rank() && x.shape[axis] == y.shape[axis]) axis++;
    if (axis == x.rank()) return fill(y, 0);  // it has size 1
    for (int64_t i = 0; i < y.numel(); i++) {
      const int64_t start = offset_of({x.data, y.shape, x.strides, x.dtype}, i);
      int64_t where = 0;
      double best = -kInfinity;
      for (int64_t j = 0; j < x.shape[axis]; j++) {
        const double value = get_at(x, start + j * x.strides[axis]);
        if (value > best || (std::isnan(value) && !std::isnan(best))) best = value, where = j;
      }
      set(y, i, static_cast<double>(where));
    }
  }

  // ---- matrix product

  // c_mn = alpha sum_k a_mk b_kn + beta c_mn
  void matmul(View c, View a, View b, double alpha, double beta) override {
    for (int64_t i = 0; i < matrices(c); i++) {
      const View ci = matrix(c, i), ai = matrix(a, i), bi = matrix(b, i);
      const int64_t M = ci.shape[0], N = ci.shape[1], K = ai.shape[1];
      for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
          double sum = 0;
          for (int64_t k = 0; k < K; k++) sum += get(ai, {m, k}) * get(bi, {k, n});
          set(ci, {m, n}, alpha * sum + (beta == 0 ? 0 : beta * get(ci, {m, n})));
        }
      }
    }
  }

  // ---- along the last axis

  void softmax(View y, View x) override {
    for (int64_t r = 0; r < rows(x); r++) softmax_row(row(y, r), row(x, r));
  }

  // dx_i = y_i (dy_i - sum_j dy_j y_j)
  void softmax_grad(View dx, View dy, View y) override {
    for (int64_t r = 0; r < rows(y); r++) {
      const View dx_r = row(dx, r), dy_r = row(dy, r), y_r = row(y, r);
      double sum = 0;
      for (int64_t i = 0; i < y_r.numel(); i++) sum += get(dy_r, i) * get(y_r, i);
      for (int64_t i = 0; i < y_r.numel(); i++) set(dx_r, i, get(y_r, i) * (get(dy_r, i) - sum));
    }
  }

  // y_i = x_i - max - log sum_j exp(x_j - max). A row of only -inf gives -inf, the logarithm of softmax's 0.
  void log_softmax(View y, View x) override {
    for (int64_t r = 0; r < rows(x); r++) {
      const View y_r = row(y, r), x_r = row(x, r);
      const double lse = log_sum_exp(x_r);
      for (int64_t i = 0; i < x_r.numel(); i++) set(y_r, i, lse == -kInfinity ? -kInfinity : get(x_r, i) - lse);
    }
  }

  // dx_i = dy_i - exp(y_i) sum_j dy_j
  void log_softmax_grad(View dx, View dy, View y) override {
    for (int64_t r = 0; r < rows(y); r++) {
      const View dx_r = row(dx, r), dy_r = row(dy, r), y_r = row(y, r);
      double sum = 0;
      for (int64_t i = 0; i < y_r.numel(); i++) sum += get(dy_r, i);
      for (int64_t i = 0; i < y_r.numel(); i++) set(dx_r, i, get(dy_r, i) - std::exp(get(y_r, i)) * sum);
    }
  }

  // mean = sum x / C, rstd = 1 / sqrt(sum (x - mean)^2 / C + eps), y = (x - mean) rstd w + b
  void layer_norm(View y, View mean, View rstd, View x, View w, View b, double eps) override {
    const int64_t C = x.shape.back();
    for (int64_t r = 0; r < rows(x); r++) {
      const View y_r = row(y, r), x_r = row(x, r);
      double sum = 0, squares = 0;
      for (int64_t c = 0; c < C; c++) sum += get(x_r, c);
      const double mu = sum / static_cast<double>(C);
      for (int64_t c = 0; c < C; c++) squares += (get(x_r, c) - mu) * (get(x_r, c) - mu);
      const double rs = 1 / std::sqrt(squares / static_cast<double>(C) + eps);
      for (int64_t c = 0; c < C; c++) set(y_r, c, (get(x_r, c) - mu) * rs * get_or(w, c, 1) + get_or(b, c, 0));
      set(mean, r, mu);
      set(rstd, r, rs);
    }
  }

  // With n = (x - mean) rstd and g = dy w:  dx = rstd (g - mean(g) - n mean(g n))
  // and, summed over rows,  dw = sum dy n,  db = sum dy
  void layer_norm_grad(View dx, View dw, View db, View dy, View x, View w, View mean, View rstd) override {
    const int64_t C = x.shape.back();
    Sums dw_sum({C}), db_sum({C});
    for (int64_t r = 0; r < rows(x); r++) {
      const View dy_r = row(dy, r), x_r = row(x, r);
      const double mu = get(mean, r), rs = get(rstd, r);
      double g_sum = 0, gn_sum = 0;
      for (int64_t c = 0; c < C; c++) {
        const double n = (get(x_r, c) - mu) * rs, g = get(dy_r, c) * get_or(w, c, 1);
        g_sum += g;
        gn_sum += g * n;
        add(dw_sum.view, c, get(dy_r, c) * n);
        add(db_sum.view, c, get(dy_r, c));
      }
      const double g_mean = g_sum / static_cast<double>(C), gn_mean = gn_sum / static_cast<double>(C);
      for (int64_t c = 0; dx && c < C; c++) {
        const double n = (get(x_r, c) - mu) * rs, g = get(dy_r, c) * get_or(w, c, 1);
        set(row(dx, r), c, rs * (g - g_mean - n * gn_mean));
      }
    }
    if (dw) copy(dw, dw_sum.view);
    if (db) copy(db, db_sum.view);
  }

  // rrms = 1 / sqrt(sum x^2 / C + eps), y = x rrms w
  void rms_norm(View y, View rrms, View x, View w, double eps) override {
    const int64_t C = x.shape.back();
    for (int64_t r = 0; r < rows(x); r++) {
      const View y_r = row(y, r), x_r = row(x, r);
      double squares = 0;
      for (int64_t c = 0; c < C; c++) squares += get(x_r, c) * get(x_r, c);
      const double rr = 1 / std::sqrt(squares / static_cast<double>(C) + eps);
      for (int64_t c = 0; c < C; c++) set(y_r, c, get(x_r, c) * rr * get_or(w, c, 1));
      set(rrms, r, rr);
    }
  }

  // With n = x rrms and g = dy w:  dx = rrms (g - n mean(g n)),  dw = sum dy n
  void rms_norm_grad(View dx, View dw, View dy, View x, View w, View rrms) override {
    const int64_t C = x.shape.back();
    Sums dw_sum({C});
    for (int64_t r = 0; r < rows(x); r++) {
      const View dy_r = row(dy, r), x_r = row(x, r);
      const double rr = get(rrms, r);
      double gn_sum = 0;
      for (int64_t c = 0; c < C; c++) {
        const double n = get(x_r, c) * rr;
        gn_sum += get(dy_r, c) * get_or(w, c, 1) * n;
        add(dw_sum.view, c, get(dy_r, c) * n);
      }
      const double gn_mean = gn_sum / static_cast<double>(C);
      for (int64_t c = 0; dx && c < C; c++) {
        const double n = get(x_r, c) * rr, g = get(dy_r, c) * get_or(w, c, 1);
        set(row(dx, r), c, rr * (g - n * gn_mean));
      }
    }
    if (dw) copy(dw, dw_sum.view);
  }

  // log p = logits - lse;  loss = -(1 - s) w_t log p_t - s / C sum_c w_c log p_c,  weight = w_t
  void cross_entropy(View loss, View weight, View lse, View logits, View target,
                     const CrossEntropyOptions& o) override {
    const int64_t C = logits.shape[1];
    for (int64_t n = 0; n < logits.shape[0]; n++) {
      const View x = row(logits, n);
      const double lse_n = log_sum_exp(x);
      const int64_t t = get_index(target, n);
      double w_t = 0, total = 0;  // of an ignored row
      if (t != o.ignore_index) {
        w_t = get_or(o.weight, t, 1);
        total = (1 - o.smoothing) * w_t * (lse_n - get(x, t));
        // Not with s = 0: a class with a logit of -inf would add 0 * inf.
        for (int64_t c = 0; o.smoothing > 0 && c < C; c++) {
          total += o.smoothing / static_cast<double>(C) * get_or(o.weight, c, 1) * (lse_n - get(x, c));
        }
      }
      set(loss, n, total);
      set(weight, n, w_t);
      set(lse, n, lse_n);
    }
  }

  // dlogits_c = dloss (p_c ((1 - s) w_t + s / C sum_k w_k) - (1 - s) w_t [c = t] - s / C w_c)
  void cross_entropy_grad(View dlogits, View dloss, View lse, View logits, View target,
                          const CrossEntropyOptions& o) override {
    const int64_t C = logits.shape[1];
    const double s = o.smoothing, share = s / static_cast<double>(C);
    double w_sum = 0;
    for (int64_t c = 0; c < C; c++) w_sum += get_or(o.weight, c, 1);
    for (int64_t n = 0; n < logits.shape[0]; n++) {
      const View dx = row(dlogits, n), x = row(logits, n);
      const int64_t t = get_index(target, n);
      if (t == o.ignore_index) {
        fill(dx, 0);
        continue;
      }
      const double w_t = get_or(o.weight, t, 1);
      for (int64_t c = 0; c < C; c++) {
        const double p = std::exp(get(x, c) - get(lse, n)), one_hot = c == t ? 1 : 0;
        const double dx_c =
            p * ((1 - s) * w_t + share * w_sum) - (1 - s) * w_t * one_hot - share * get_or(o.weight, c, 1);
        set(dx, c, get(dloss, n) * dx_c);
      }
    }
  }

  // ---- by index

  // y[.., i, ..] = x[.., index[.., i, ..], ..]
  void gather(View y, View x, View index, int axis) override {
    View start = {x.data, y.shape, x.strides, x.dtype};  // x at the coordinates of y, but for `axis`: there at 0
    start.strides[axis] = 0;
    for (int64_t i = 0; i < y.numel(); i++) {
      const int64_t j = get_index(index, i);
      set(y, i, get_at(x, offset_of(start, i) + j * x.strides[axis]));
    }
  }

  // y[.., index[.., i, ..], ..] += x[.., i, ..]
  void scatter_add(View y, View x, View index, int axis) override {
    View start = {y.data, x.shape, y.strides, y.dtype};
    start.strides[axis] = 0;
    for (int64_t i = 0; i < x.numel(); i++) {
      const int64_t j = get_index(index, i);
      const int64_t at = offset_of(start, i) + j * y.strides[axis];
      set_at(y, at, get_at(y, at) + get(x, i));
    }
  }

  // ---- convolution by unfolding

  // columns_n = x[b, c, h, w], or 0 outside x
  void unfold(View columns, View x, const ConvOptions& options) override {
    for_each_entry(x, options, [&](int64_t n, int64_t b, int64_t c, int64_t h, int64_t w) {
      set(columns, n, inside(x, h, w) ? get(x, {b, c, h, w}) : 0);
    });
  }

  // x[b, c, h, w] = sum of the columns_n that unfold took from there
  void fold(View x, View columns, const ConvOptions& options) override {
    Sums sum(x.shape);
    for_each_entry(x, options, [&](int64_t n, int64_t b, int64_t c, int64_t h, int64_t w) {
      if (inside(x, h, w)) add(sum.view, {b, c, h, w}, get(columns, n));
    });
    copy(x, sum.view);
  }

  // ---- attention

  // o_t = sum_s a_ts v_s with a = dropout(p), p = softmax(scale q k^T) over the keys s that the mask leaves to query t
  void attention(View o, View lse, View q, View k, View v, const AttentionOptions& options) override {
    const int64_t B = q.shape[0], H = q.shape[1], T = q.shape[2], E = v.shape[3];
    for (int64_t b = 0; b < B; b++)
      for (int64_t h = 0; h < H; h++)
        for (int64_t t = 0; t < T; t++) {
          const Attended r = attend(q, k, options, b, h, t);
          for (int64_t e = 0; e < E; e++) {
            double sum = 0;
            for (size_t j = 0; j < r.keys.size(); j++) sum += r.p[j] * r.factor[j] * get(v, {b, h, r.keys[j], e});
            set(o, {b, h, t, e}, sum);
          }
          set(lse, {b, h, t}, r.lse);
        }
  }

  // The weights are computed again, so o and lse are not needed here; faster devices save time with them.
  void attention_grad(View dq, View dk, View dv, View dout, View q, View k, View v, View /*o*/, View /*lse*/,
                      const AttentionOptions& options) override {
    const int64_t B = q.shape[0], H = q.shape[1], T = q.shape[2], D = q.shape[3], E = v.shape[3];
    Sums dq_sum(q.shape), dk_sum(k.shape), dv_sum(v.shape);
    for (int64_t b = 0; b < B; b++)
      for (int64_t h = 0; h < H; h++)
        for (int64_t t = 0; t < T; t++) {
          const Attended r = attend(q, k, options, b, h, t);
          const size_t count = r.keys.size();
          std::vector<double> dp(count);
          double sum = 0;  // sum_j dp_j p_j
          for (size_t j = 0; j < count; j++) {
            // forward: o = sum_j a_j v_j, a_j = p_j factor_j
            // so dv_j = a_j do, da_j = do . v_j, dp_j = da_j factor_j
            for (int64_t e = 0; e < E; e++) {
              const double dout_e = get(dout, {b, h, t, e});
              add(dv_sum.view, {b, h, r.keys[j], e}, r.p[j] * r.factor[j] * dout_e);
              dp[j] += dout_e * get(v, {b, h, r.keys[j], e}) * r.factor[j];
            }
            sum += dp[j] * r.p[j];
          }
          for (size_t j = 0; j < count; j++) {
            // forward: p = softmax(s), s_j = scale q . k_j
            // so ds_j = p_j (dp_j - sum), dq = sum_j scale ds_j k_j, dk_j = scale ds_j q
            const double ds = r.p[j] * (dp[j] - sum);
            for (int64_t d = 0; d < D; d++) {
              add(dq_sum.view, {b, h, t, d}, options.scale * ds * get(k, {b, h, r.keys[j], d}));
              add(dk_sum.view, {b, h, r.keys[j], d}, options.scale * ds * get(q, {b, h, t, d}));
            }
          }
        }
    if (dq) copy(dq, dq_sum.view);
    if (dk) copy(dk, dk_sum.view);
    if (dv) copy(dv, dv_sum.view);
  }

  // ---- optimizers

  // m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2,
  // p -= lr (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps)
  void adam(View p, View m, View v, View g, View rows, const AdamOptions& o) override {
    const double m_scale = 1 - std::pow(o.beta1, static_cast<double>(o.step));
    const double v_scale = 1 - std::pow(o.beta2, static_cast<double>(o.step));
    const double grad_scale = o.grad_scale ? get(o.grad_scale, 0) : 1;
    const int64_t width = rows ? p.numel() / rows.numel() : 1;
    for (int64_t i = 0; i < p.numel(); i++) {
      int64_t from = i;  // where g holds the gradient of p_i; -1 if it is 0
      if (rows) {
        const int64_t r = get_index(rows, i / width);
        from = r < 0 ? -1 : r * width + i % width;
      }
      double p_i = get(p, i), g_i = from < 0 ? 0 : get(g, from) * grad_scale;
      if (!o.decoupled) g_i += o.weight_decay * p_i;
      if (o.decoupled) p_i -= o.lr * o.weight_decay * p_i;
      const double m_i = o.beta1 * get(m, i) + (1 - o.beta1) * g_i;
      const double v_i = o.beta2 * get(v, i) + (1 - o.beta2) * g_i * g_i;
      set(m, i, m_i);
      set(v, i, v_i);
      set(p, i, p_i - o.lr * (m_i / m_scale) / (std::sqrt(v_i / v_scale) + o.eps));
    }
  }
};

Device& reference_device() {
  static Reference* device = new Reference;  // never destroyed: tensors in static variables may outlive it
  return *device;
}

}  // namespace heed
