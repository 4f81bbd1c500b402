// Trainer: the loop over epochs and batches, with everything around it.
#pragma once
#include <functional>

#include "train/log.h"
#include "train/optimizer.h"
#include "train/options.h"
#include "train/schedule.h"
#include "train/text_model.h"

namespace heed::train {

// One run on one data set. A run is a function of its options: order of batches, dropout and learning rate are computed from the seed, the
// epoch and the step and not from a state, so a run that is resumed goes on exactly as one that was not stopped.
//
// In options.out: last.safetensors (after every epoch: weights, optimizer, position), best.safetensors (the weights of the best
// validation accuracy so far), log.csv, log.jsonl, curve.svg.
class Trainer {
 public:
  // Builds vocabulary and network; with options.resume, reads options.out/last.safetensors instead (FileError if there is none).
  Trainer(const TrainOptions& options, TextDataset dataset);

  // Trains to the end, or until early stopping. NumericError if the loss or a gradient is not finite; the files of the last epoch stay.
  void run();

  TextModel& model() { return model_; }            // after run(): the best one
  const std::vector<EpochRecord>& records() const { return records_; }
  int64_t best_epoch() const { return best_epoch_; }
  const TextDataset& dataset() const { return dataset_; }

  std::function<void(const EpochRecord&, bool best)> on_epoch;  // called after each

 private:
  EpochRecord train_epoch(int64_t epoch);
  double train_batch(const Batch& batch, EpochRecord& record);
  void save(const std::string& name, bool with_optimizer) const;
  void restore();

  TrainOptions options_;
  TextDataset dataset_;
  TextModel model_;
  EncodedTexts train_, validation_;
  std::vector<Variable> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  ScheduleOptions schedule_;
  std::vector<EpochRecord> records_;
  int64_t epoch_ = 0, step_ = 0, best_epoch_ = 0;
  double best_accuracy_ = -1;
};

}  // namespace heed::train
