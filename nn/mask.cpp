#include "nn/mask.h"

#include <algorithm>
#include <cmath>

#include "nn/lengths.h"

namespace heed::nn {

namespace {

Tensor as_float(const Tensor& x) { return computes(x.dtype()) ? x : x.to(DType::f32); }

// The number at which the predicate fails, if there is one.
template <class Fn>
void require_values(const char* what, const Tensor& x, Fn&& allowed, const char* rule) {
  for (const double value : x.to_vector<double>()) {
    if (!allowed(value))
      throw NumericError(text("mask: ", what, " of shape ", x.shape(), " holds ", value, "; ", rule));
  }
}

void require_rank(const char* what, const Tensor& x) {
  if (!x.defined()) throw UsageError(text("mask: ", what, " is undefined"));
  if (x.rank() < 2 || x.rank() > 4) {
    throw ShapeError(text("mask: ", what, " of shape ", x.shape(), " must be (T, S), (B, T, S) or (B, H, T, S)",
                          x.rank() == 1 ? "; for lengths there is Mask::padding" : ""));
  }
}

Tensor smaller_lengths(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape())) {
    throw ShapeError(text("mask: lengths of ", a.shape(), " and ", b.shape(), " samples cannot be combined"));
  }
  return minimum(a.to(DType::f64), b.to(DType::f64)).to(DType::i32);
}

}  // namespace

// ---- the kinds

Mask Mask::causal() {
  Mask mask;
  mask.causal_ = true;
  return mask;
}

Mask Mask::window(int64_t reach) {
  if (reach < 1) throw UsageError(text("mask: a window's reach is ", reach, ", it must be positive"));
  Mask mask;
  mask.reach_ = reach;
  return mask;
}

Mask Mask::padding(const Tensor& lengths) {
  if (!lengths.defined()) throw UsageError("mask: the lengths are undefined");
  if (lengths.dtype() != DType::i32)
    throw DTypeError(text("mask: lengths are ", name_of(lengths.dtype()), ", they must be i32"));
  if (lengths.rank() != 1) {
    throw ShapeError(text("mask: lengths of shape ", lengths.shape(), " must be (B,), one for each sample"));
  }
  Mask mask;
  mask.lengths_ = lengths.to_contiguous();
  return mask;
}

Mask Mask::keep(const Tensor& keep) {
  require_rank("keep", keep);
  require_values(
      "keep", keep, [](double x) { return x == 0 || x == 1; },
      "1 is visible, 0 is hidden (for 0 and -inf there is Mask::additive)");
  Mask mask;
  mask.keeps_ = {as_float(keep)};
  return mask;
}

Mask Mask::additive(const Tensor& matrix) {
  require_rank("an additive matrix", matrix);
  require_values(
      "an additive matrix", matrix, [](double x) { return x == 0 || (std::isinf(x) && x < 0); },
      "0 is visible, -inf is hidden (for 1 and 0 there is Mask::keep)");
  const Tensor m = as_float(matrix);
  Mask mask;
  mask.keeps_ = {eq(m, zeros_like(m))};
  return mask;
}

Mask operator&(const Mask& a, const Mask& b) {
  Mask mask = a;
  mask.causal_ = a.causal_ || b.causal_;
  if (b.reach_ > 0) mask.reach_ = a.reach_ > 0 ? std::min(a.reach_, b.reach_) : b.reach_;
  if (b.lengths_.defined()) mask.lengths_ = a.lengths_.defined() ? smaller_lengths(a.lengths_, b.lengths_) : b.lengths_;
  mask.keeps_.insert(mask.keeps_.end(), b.keeps_.begin(), b.keeps_.end());
  return mask;
}

bool Mask::none() const { return !causal_ && reach_ == 0 && !lengths_.defined() && keeps_.empty(); }

// ---- against the scores

void Mask::check(const Sizes& sizes) const {
  const auto [B, H, T, S] = sizes;
  const Shape scores = {B, H, T, S};
  checked_numel("mask", scores);
  for (const Tensor& keep : keeps_) {
    const bool fits = keep.rank() == 2   ? keep.shape() == Shape{T, S}
                      : keep.rank() == 3 ? keep.shape() == Shape{B, T, S}
                                         : broadcastable_to(keep.shape(), scores);
    if (!fits) {
      throw ShapeError(text("mask: keep of shape ", keep.shape(), " does not fit scores (B, H, T, S) = ", scores,
                            "; it must be (T, S) = ", Shape{T, S}, ", (B, T, S) = ", Shape{B, T, S},
                            " or (B, H, T, S)"));
    }
  }
  if (!lengths_.defined()) return;
  if (lengths_.size(0) != B) {
    throw ShapeError(text("mask: ", lengths_.size(0), " lengths for scores (B, H, T, S) = ", scores,
                          "; it takes one for each sample"));
  }
  if (!lengths_.device().on_host()) return;  // such a device checks its own
  const std::vector<int32_t> lengths = lengths_.to_vector<int32_t>();
  for (size_t b = 0; b < lengths.size(); b++) {
    if (lengths[b] < 0 || lengths[b] > S) {
      throw IndexError(
          text("mask: length ", lengths[b], " of sample ", b, " is outside [0, ", S, "], there are ", S, " keys"));
    }
  }
}

// The product of the explicit masks: (T, S), or four axes that broadcast to (B, H, T, S).
Tensor Mask::explicit_part() const {
  Tensor product;
  for (const Tensor& keep : keeps_) {
    const Tensor k = keep.rank() == 3 ? keep.unsqueeze(1) : keep;  // (B, 1, T, S): the same for every head
    product = product.defined() ? mul(product, k.to(product.dtype())) : k;
  }
  return product;
}

AttentionSettings Mask::settings(int64_t B, int64_t H, int64_t T, int64_t S) const {
  check({B, H, T, S});
  AttentionSettings settings;
  settings.causal = causal_;
  settings.window = reach_;
  settings.lengths = lengths_;
  settings.keep = explicit_part();
  return settings;
}

Tensor Mask::dense(int64_t B, int64_t H, int64_t T, int64_t S) const {
  check({B, H, T, S});
  const DType dtype = default_dtype();
  const Tensor key = arange(S, dtype);  // (S,)
  const Tensor query =
      affine(arange(T, dtype), 1, static_cast<double>(S - T)).reshape({T, 1});  // position among the keys
  Tensor visible;
  const auto and_also = [&](const Tensor& part) { visible = visible.defined() ? mul(visible, part) : part; };
  if (causal_) and_also(le(key, query));
  if (reach_ > 0) and_also(le(abs(sub(key, query)), full({}, static_cast<double>(reach_), dtype)));
  if (lengths_.defined()) and_also(lt(key, length_numbers(lengths_, S, dtype).reshape({B, 1, 1, 1})));  // (B, 1, 1, S)
  if (!keeps_.empty()) and_also(explicit_part().to(dtype));
  return visible;
}

}  // namespace heed::nn
