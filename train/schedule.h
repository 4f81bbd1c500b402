// Learning-rate schedules: the rate of every step, as a function of the step alone, so that a run can be resumed anywhere.
#pragma once
#include <cstdint>
#include <string>

namespace heed::train {

struct ScheduleOptions {
  std::string kind = "constant";  // constant, step, cosine, one_cycle
  double lr = 1e-3;               // the highest rate
  int64_t total_steps = 1;        // of the whole run
  int64_t warmup_steps = 0;       // cosine: lr (t + 1) / warmup at first
  double floor = 0;               // cosine: the last rate, as a share of lr
  int64_t step_every = 1;         // step: lr gamma^(t / step_every)
  double gamma = 0.5;
};

// The rate of step t = 0, 1, ...; UsageError for an unknown kind.
//   cosine:    lr (floor + (1 - floor) (1 + cos(pi (t - warmup) / (total - warmup))) / 2)      (Loshchilov & Hutter 2016)
//   one_cycle: from lr / 25 up to lr in the first 30%, then down to lr / 250,000, both along a cosine  (Smith & Topin 2017; as in PyTorch)
double scheduled_lr(const ScheduleOptions& options, int64_t t);

}  // namespace heed::train
