#include "train/schedule.h"

#include <algorithm>
#include <cmath>

#include "tensor/error.h"

namespace heed::train {

namespace {

// From `start` to `end` along half a cosine; share in [0, 1].
double anneal(double start, double end, double share) { return end + (start - end) * (1 + std::cos(M_PI * share)) / 2; }

double one_cycle(double lr, int64_t total, int64_t t) {
  const double first = lr / 25, last = first / 1e4;
  const double peak = 0.3 * static_cast<double>(total) - 1, end = static_cast<double>(total) - 1, now = static_cast<double>(t);
  if (now <= peak) return peak > 0 ? anneal(first, lr, now / peak) : lr;
  return anneal(lr, last, std::min(1.0, (now - peak) / (end - peak)));
}

}  // namespace

double scheduled_lr(const ScheduleOptions& o, int64_t t) {
  if (o.kind == "constant") return o.lr;
  if (o.kind == "step") return o.lr * std::pow(o.gamma, static_cast<double>(t / std::max<int64_t>(1, o.step_every)));
  if (o.kind == "one_cycle") return one_cycle(o.lr, o.total_steps, t);
  if (o.kind == "cosine") {
    if (t < o.warmup_steps) return o.lr * static_cast<double>(t + 1) / static_cast<double>(o.warmup_steps);
    const double span = static_cast<double>(std::max<int64_t>(1, o.total_steps - o.warmup_steps));
    const double share = std::min(1.0, static_cast<double>(t - o.warmup_steps) / span);
    return anneal(o.lr, o.lr * o.floor, share);
  }
  throw UsageError("schedule: there is no \"" + o.kind + "\"; heed has constant, step, cosine, one_cycle");
}

}  // namespace heed::train
