// How the fast kernels walk over strided views and share the work among threads.
//
// Every view is cut into lines along which each operand has one constant step; a kernel is a loop over one line, which
// the compiler vectorises. Work is cut into pieces that depend on shapes alone, never on the number of threads, and one
// piece is always done by one thread in order: so results are equal bit for bit for any number of threads.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "tensor/view.h"

namespace heed::cpu {

constexpr int64_t kPiece = 4096;    // elements that a thread takes at a time
constexpr int64_t kSerial = 32768;  // work on fewer elements costs less than waking another thread
constexpr int64_t kTile = 512;      // elements of a buffer that stays in the first-level cache

// Calls body(begin, end) for consecutive pieces of [0, count), on all threads if it is worth it. `cost`: elements of
// work for each of the `count`.
template <class Body>
void parallel_for(int64_t count, int64_t cost, const Body& body) {
  const int64_t piece = std::max<int64_t>(1, kPiece / std::max<int64_t>(1, cost));
  const int64_t pieces = (count + piece - 1) / piece;
  if (pieces <= 1 || count * cost < kSerial) {
    for (int64_t i = 0; i < pieces; i++) body(i * piece, std::min(count, (i + 1) * piece));
    return;
  }
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < pieces; i++) body(i * piece, std::min(count, (i + 1) * piece));
}

// N views of one shape as lines. Axes of size 1 are dropped, the others are ordered as operand 0 lies in memory and
// merged where every operand allows it: contiguous operands are a single line. Offsets and steps are in elements.
template <int N>
class Lines {
 public:
  using Offsets = std::array<int64_t, N>;

  explicit Lines(const std::array<const View*, N>& views) : numel_(views[0]->numel()) {
    bool contiguous = true;
    for (const View* v : views) contiguous = contiguous && v->contiguous();
    if (contiguous) {
      axis_[0].size = numel_;
      axis_[0].step.fill(1);
      return;
    }
    rank_ = 0;
    for (int i = 0; i < views[0]->rank(); i++) {
      Axis axis;
      axis.size = views[0]->shape[i];
      for (size_t k = 0; k < N; k++) axis.step[k] = views[k]->strides[i];
      if (axis.size != 1) insert(axis);
    }
    merge();
    if (rank_ == 0) axis_[rank_++] = {1, {}};
    avoid_short_lines();
  }

  int64_t numel() const { return numel_; }
  int64_t length() const { return axis_[rank_ - 1].size; }  // of a line
  bool is_one_line() const { return rank_ == 1; }
  const Offsets& step() const { return axis_[rank_ - 1].step; }  // from one element of a line to the next
  bool unit_steps() const {
    for (int64_t s : step()) {
      if (s != 1) return false;
    }
    return true;
  }

  // Calls body(at, n) for the elements [begin, end), n > 0 of them on one line at a time: operand k has them at
  // at[k] + i step()[k].
  template <class Body>
  void each(int64_t begin, int64_t end, const Body& body) const {
    if (begin >= end) return;
    const int last = rank_ - 1;
    const int64_t length = axis_[last].size;
    int64_t index[kMaxRank], line = begin / length, skip = begin % length;
    Offsets at{};
    move(at, skip, axis_[last]);
    for (int a = last - 1; a >= 0; a--) {
      index[a] = line % axis_[a].size;
      line /= axis_[a].size;
      move(at, index[a], axis_[a]);
    }
    for (;;) {
      const int64_t n = std::min(length - skip, end - begin);
      body(at, n);
      begin += n;
      if (begin == end) return;
      move(at, -skip, axis_[last]);
      skip = 0;
      for (int a = last - 1; a >= 0; a--) {  // the next line: like the digits of a counter
        move(at, 1, axis_[a]);
        if (++index[a] < axis_[a].size) break;
        move(at, -index[a], axis_[a]);
        index[a] = 0;
      }
    }
  }

  // The same for all elements, on all threads.
  template <class Body>
  void parallel(const Body& body) const {
    parallel_for(numel_, 1, [&](int64_t begin, int64_t end) { each(begin, end, body); });
  }

 private:
  struct Axis {
    int64_t size;
    Offsets step;
  };

  static void move(Offsets& at, int64_t n, const Axis& axis) {
    for (size_t k = 0; k < N; k++) at[k] += n * axis.step[k];
  }

  void insert(const Axis& axis) {
    int i = rank_++;
    for (; i > 0 && axis_[i - 1].step[0] < axis.step[0]; i--) axis_[i] = axis_[i - 1];
    axis_[i] = axis;
  }

  void merge() {
    int merged = 0;
    for (int i = 0; i < rank_; i++) {
      bool fits = merged > 0;
      for (size_t k = 0; fits && k < N; k++) fits = axis_[merged - 1].step[k] == axis_[i].step[k] * axis_[i].size;
      if (fits) {
        axis_[merged - 1] = {axis_[merged - 1].size * axis_[i].size, axis_[i].step};
      } else {
        axis_[merged++] = axis_[i];
      }
    }
    rank_ = merged;
  }

  // Three elements a line would cost more in walking than in work: then the longest axis is the line.
  void avoid_short_lines() {
    if (axis_[rank_ - 1].size >= 4) return;
    Axis* longest =
        std::max_element(axis_, axis_ + rank_, [](const Axis& a, const Axis& b) { return a.size < b.size; });
    std::swap(*longest, axis_[rank_ - 1]);
  }

  int64_t numel_;
  int rank_ = 1;
  Axis axis_[kMaxRank];
};

// Elements x[0], x[step], ... side by side: x itself if they are, otherwise copied to `buffer`.
template <class T>
const T* pack(const T* x, int64_t step, int64_t n, T* buffer) {
  if (step == 1) return x;
  for (int64_t i = 0; i < n; i++) buffer[i] = x[i * step];
  return buffer;
}

template <class T>
void unpack(T* y, int64_t step, int64_t n, const T* buffer) {
  for (int64_t i = 0; i < n; i++) y[i * step] = buffer[i];
}

}  // namespace heed::cpu
