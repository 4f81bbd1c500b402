// Mask: which keys a query may attend to. One type for every kind, one meaning: 1 is visible, 0 is hidden.
//
//   Mask mask = Mask::causal() & Mask::padding(lengths);
//
// Axes: B samples, H heads, T queries, S keys. Where T and S differ, the last query stands beside the last key (lower
// right alignment): query i has position i + S - T among the keys, as with a cache of earlier keys.
#pragma once
#include <array>

#include "tensor/ops.h"

namespace heed::nn {

class Mask {
 public:
  Mask() = default;                            // none: every query sees every key
  static Mask causal();                        // keys up to the query's own position
  static Mask window(int64_t reach);           // keys at most `reach` positions away, on either side
  static Mask padding(const Tensor& lengths);  // i32 (B,): sample b has keys 0 .. lengths[b] - 1
  // Explicit zeros and ones, in one of three shapes and no other: (T, S) for all samples and heads; (B, T, S) for all
  // heads (never taken as one matrix a head, also when B = H); (B, H, T, S), where each size may be 1 to repeat.
  // NumericError for other numbers.
  static Mask keep(const Tensor& keep);
  // The same shapes, as a matrix to be added to the scores: 0 is visible, -inf is hidden. NumericError for other
  // numbers.
  static Mask additive(const Tensor& matrix);

  // Visible is what both leave visible.
  friend Mask operator&(const Mask& a, const Mask& b);

  bool none() const;
  // Zeros and ones that broadcast to (B, H, T, S); undefined if this is no mask at all. ShapeError if the mask is not
  // one for these sizes, IndexError for a length outside [0, S].
  Tensor dense(int64_t B, int64_t H, int64_t T, int64_t S) const;
  // The same for the fused attention, which makes no matrix of all but an explicit mask.
  AttentionSettings settings(int64_t B, int64_t H, int64_t T, int64_t S) const;
  // May there be a key that no query sees, other than by `padding`?
  bool may_hide_keys(int64_t T, int64_t S) const { return !keeps_.empty() || (reach_ > 0 && S > T); }

 private:
  using Sizes = std::array<int64_t, 4>;  // B, H, T, S
  void check(const Sizes& sizes) const;
  Tensor explicit_part() const;

  bool causal_ = false;
  int64_t reach_ = 0;          // of the window; 0: no window
  Tensor lengths_;             // or undefined
  std::vector<Tensor> keeps_;  // explicit masks, as they were given
};

}  // namespace heed::nn
