// Trainer: the loop over epochs and batches, with everything around it.
#pragma once
#include <functional>

#include "train/log.h"
#include "train/optimizer.h"
#include "train/options.h"
#include "train/schedule.h"
#include "train/text_model.h"

namespace heed::train {

// The best model has the highest validation accuracy, among equals the lowest loss. (The loss alone would choose too early: a
// model that has become too sure of itself loses more on the few that it gets wrong.)
bool is_better(const EpochRecord& a, const EpochRecord& b);

// One run on one data set. A run is a function of its options: order of batches, dropout and learning rate are computed from the seed, the
// epoch and the step and not from a state, so a run that is resumed goes on exactly as one that was not stopped.
//
// In options.out: last.safetensors (after every epoch: weights, optimizer, options, history), best.safetensors (the weights of the highest
// validation accuracy so far; without validation texts, the last ones), log.csv, log.jsonl, curve.svg.
class Trainer {
 public:
  // Builds vocabulary and network; with options.resume, reads options.out/last.safetensors instead (FileError if there is none that can be
  // continued; UsageError for an option that is not the checkpoint's: epochs, patience, threads and device may change).
  Trainer(const TrainOptions& options, TextDataset dataset);

  // Trains to the end, or until early stopping. NumericError if loss, gradients or weights are not finite; the files of the last epoch stay.
  void run();

  TextModel& model() { return model_; }            // after run(): the best one
  const std::vector<EpochRecord>& records() const { return records_; }
  int64_t best_epoch() const { return best_epoch_; }
  int64_t epoch() const { return static_cast<int64_t>(records_.size()); }  // epochs done
  const TextDataset& dataset() const { return dataset_; }

  std::function<void(const EpochRecord&, bool best)> on_epoch;  // called after each

 private:
  EpochRecord train_epoch(int64_t epoch);
  double train_batch(const Batch& batch, EpochRecord& record);
  Tensor take_step(const Tensor& ids, const Tensor& lengths, const Tensor& labels);
  bool add(const EpochRecord& record);  // true: its model is the best so far
  void require_finite_weights() const;
  void save(const std::string& name, bool with_optimizer) const;
  void restore(const TensorFile& checkpoint, const std::string& path);

  TrainOptions options_;
  TextDataset dataset_;
  std::string texts_;  // their fingerprint
  TextModel model_;
  EncodedTexts train_, validation_;
  std::vector<Variable> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  ScheduleOptions schedule_;
  std::vector<EpochRecord> records_;
  int64_t steps_per_epoch_ = 0, step_ = 0, first_step_ = 0, best_epoch_ = 0;
};

// The options with which the run in options.out was begun, but for those that are given now. FileError if there is no such run.
TrainOptions as_begun(const TrainOptions& options, const std::function<bool(const std::string& name)>& given);

}  // namespace heed::train
