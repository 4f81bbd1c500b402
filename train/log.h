// What a run leaves to be read: log.csv, log.jsonl and curve.svg, rewritten after every epoch.
#pragma once
#include <string>
#include <vector>

namespace heed::train {

struct EpochRecord {
  int64_t epoch = 0;  // 1, 2, ...
  int64_t steps = 0;  // training steps since the start of the run
  double train_loss = 0, train_accuracy = 0;
  double validation_loss = 0, validation_accuracy = 0;  // NaN without validation texts
  double lr = 0;         // of the last step
  double grad_norm = 0;  // mean over the epoch, before clipping
  double seconds = 0;    // of training and validation
};

struct EpochField {
  const char* name;
  double EpochRecord::*value;
};
inline constexpr EpochField kEpochFields[] = {{"train_loss", &EpochRecord::train_loss},
                                              {"train_accuracy", &EpochRecord::train_accuracy},
                                              {"validation_loss", &EpochRecord::validation_loss},
                                              {"validation_accuracy", &EpochRecord::validation_accuracy},
                                              {"lr", &EpochRecord::lr},
                                              {"grad_norm", &EpochRecord::grad_norm},
                                              {"seconds", &EpochRecord::seconds}};

void write_logs(const std::string& folder, const std::vector<EpochRecord>& records);
// Sets the seconds of those epochs that the folder's log.jsonl has: they alone are not in a checkpoint.
void read_seconds(const std::string& folder, std::vector<EpochRecord>& records);

}  // namespace heed::train
