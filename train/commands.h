// The program's commands. heed.cpp reads the command line into these structs; each command writes its results to stdout, progress and
// warnings to stderr, and throws heed::Error if the work fails.
#pragma once
#include <string>
#include <vector>

#include "train/bench.h"
#include "train/options.h"

namespace heed::train {

void train_command(const TrainOptions& options);

struct EvaluateCommand {
  std::string model, data;
  int64_t batch = 64;
  bool json = false;
};
void evaluate_command(const EvaluateCommand& command);

struct PredictCommand {
  std::string model;
  std::vector<std::string> texts;  // none: one a line from standard input
  bool json = false;
};
void predict_command(const PredictCommand& command);

struct AttendCommand {
  std::string model, svg;
  std::vector<std::string> texts;  // one; more are the words of one that was not quoted
  int64_t layer = -1;  // -1: all
};
void attend_command(const AttendCommand& command);

struct BenchCommand {
  std::vector<std::string> only;  // beginnings of names; none: all
  BenchOptions options;
};
void bench_command(const BenchCommand& command);
std::string bench_names();  // a line each, for the help

void info_command();

// Threads of OpenMP and the BLAS, as set_threads; DeviceError if there is no memory for the BLAS's buffers.
std::vector<std::string> take_threads(int count);
// Before any work: threads, the default device, and the self-check of the matrix product. Warnings go to stderr.
void prepare(const std::string& device, int threads);

}  // namespace heed::train
