// What heed bench measures: a training step of a model, or a part of one. The models are also written in PyTorch, in
// tests/gpu_torch.py: a change here belongs there, too.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace heed::train {

// Makes the model and its data on the default device, and returns what does one step of work. The step need not wait
// for the device. `small`: the same work with sizes for a slow device or a short test.
using MakeStep = std::function<std::function<void()>(bool small)>;

struct Bench {
  std::string name, about;
  MakeStep make;
};
// To add one: its function in bench.cpp and its line in this list.
const std::vector<Bench>& benches();

struct BenchOptions {
  int64_t seconds = 5;  // to measure for,
  int64_t steps = 5;    // but so many steps at least
  int64_t warmup = 3;   // steps before, which are not measured
  bool small = false;
};

struct BenchFigure {
  std::string name, device;
  int threads = 0;
  bool small = false;
  double median_ms = 0, min_ms = 0;
  int64_t steps = 0;      // measured
  size_t peak_bytes = 0;  // of the device's memory: parameters, data and all that a step makes
};
// On the default device. A step's time ends when the device has done it.
BenchFigure measure(const Bench& bench, const BenchOptions& options);

}  // namespace heed::train
