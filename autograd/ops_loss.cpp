// Differentiable losses. `reduce` says what is made of the elements' losses: their mean, their sum, or nothing.
#include <algorithm>

#include "autograd/ops.h"

namespace heed {

namespace {

// NumPy's broadcasting would make (N, N) of (N, 1) and (N,), and a loss that learns nothing.
void require_equal_shapes(const char* op, const char* label, const Tensor& x, const Tensor& target,
                          const std::string& named_target) {
  if (!target.defined()) throw UsageError(heed::text(op, ": the target is undefined"));
  if (x.shape() == target.shape()) return;
  throw ShapeError(
      heed::text(op, ": shapes differ: ", operand(0, label, x.shape()), " and ", named_target, "; they must be equal"));
}

// The loss of n elements, given their losses. Of none it is 0.
Tensor reduced(const Tensor& losses, Reduce reduce) {
  if (reduce == Reduce::none) return losses;
  const double n = static_cast<double>(std::max<int64_t>(losses.numel(), 1));
  return reduce == Reduce::sum ? sum(losses) : sum(losses) / n;
}

// Its reverse: the gradient of every element's loss, given the gradient of what was reduced.
Tensor spread(const Tensor& dy, Reduce reduce, const Shape& shape) {
  if (reduce == Reduce::none) return dy;
  const double n = static_cast<double>(std::max<int64_t>(shape.numel(), 1));
  return (reduce == Reduce::sum ? dy : dy / n).expand(shape);
}

}  // namespace

// ---- the negative log-likelihood of the target classes        logits: (N, C), target: (N,)
// The mean weighs rows by the weight of their target's class: ignored rows have weight 0.
struct CrossEntropy final : Node {
  static constexpr Text text{"cross_entropy",
                             "y_n = -w_t log p_t,  p = softmax(logits),  t = target_n;  mean: sum y_n / sum w_t",
                             "dlogits_nc = dy_n w_t (p_c - [c = t]);  mean: dy_n = dy / sum w_t"};
  Saved logits{this}, target{this}, lse{this}, total{this}, class_weight{this};
  CrossEntropySettings settings;
  Reduce reduce = Reduce::mean;

  Tensor forward(const Tensor& logits_in, const Tensor& target_in, const CrossEntropySettings& settings_in,
                 Reduce reduce_in) {
    const CrossEntropyResult rows = cross_entropy_rows(logits = logits_in, target = target_in, settings_in);
    settings = settings_in;
    settings.class_weight = {};
    class_weight = settings_in.class_weight;
    lse = rows.lse;
    reduce = reduce_in;
    if (reduce != Reduce::mean) return reduced(rows.loss, reduce);
    total = sum(rows.weight);
    return per_weight(sum(rows.loss));
  }

  void backward(const Tensor& dy) override {
    CrossEntropySettings s = settings;
    s.class_weight = class_weight;
    const Tensor dloss = reduce == Reduce::mean ? per_weight(dy) : dy;
    give(0, cross_entropy_grad(dloss.expand(target.get().shape()), lse, logits, target, s));
  }

 private:
  // x / total; if every row is ignored 0, and not 0 / 0
  Tensor per_weight(const Tensor& x) const { return heed::where(total, x / total.get(), zeros_like(x)); }
};
Variable cross_entropy(const Variable& logits, const Tensor& target, const CrossEntropySettings& settings,
                       Reduce reduce, Site at) {
  return record<CrossEntropy>(at, logits, target, settings, reduce);
}

// ---- -t log s - (1 - t) log(1 - s) with s = sigmoid(x), in a form that no x overflows
struct BinaryCrossEntropyWithLogits final : Node {
  static constexpr Text text{"binary_cross_entropy_with_logits", "y = max(x, 0) - x t + log(1 + exp(-|x|))",
                             "dx = dy (sigmoid(x) - t)"};
  Saved x{this}, t{this};
  Reduce reduce = Reduce::mean;

  Tensor forward(const Tensor& x_in, const Tensor& target, Reduce reduce_in) {
    require_equal_shapes(text.op, "logits", x_in, target, heed::text("target ", target.shape()));
    reduce = reduce_in;
    x = x_in;
    t = target;
    return reduced(heed::relu(x) - x.get() * target + heed::log(heed::exp(-heed::abs(x)) + 1), reduce);
  }

  void backward(const Tensor& dy) override {
    give(0, spread(dy, reduce, x.get().shape()) * (heed::sigmoid(x) - t.get()));
  }
};
Variable binary_cross_entropy_with_logits(const Variable& logits, const Tensor& target, Reduce reduce, Site at) {
  return record<BinaryCrossEntropyWithLogits>(at, logits, target, reduce);
}

// ---- (prediction - target)^2
struct Mse final : Node {
  static constexpr Text text{"mse", "y = d^2,  d = prediction - target",
                             "d(prediction) = 2 d dy,  d(target) = -2 d dy"};
  Saved d{this};
  Reduce reduce = Reduce::mean;

  Tensor forward(const Tensor& prediction, const Tensor& target, Reduce reduce_in) {
    require_equal_shapes(text.op, "prediction", prediction, target, operand(1, "target", target.shape()));
    reduce = reduce_in;
    d = prediction - target;
    return reduced(d.get() * d.get(), reduce);
  }

  void backward(const Tensor& dy) override {
    const Tensor dprediction = spread(dy, reduce, d.get().shape()) * (2 * d.get());
    give(0, dprediction);
    if (needs(1)) give(1, -dprediction);
  }
};
Variable mse(const Variable& prediction, const Variable& target, Reduce reduce, Site at) {
  return record<Mse>(at, prediction, target, reduce);
}

}  // namespace heed
