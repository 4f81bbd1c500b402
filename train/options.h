// Everything that decides a training run. The defaults are a small start for code of one's own; defaults_for gives those of the program.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "nn/text_classifier.h"
#include "train/vocabulary.h"

namespace heed::train {

struct TrainOptions {
  // data
  std::string data = "reviews";  // "reviews", a folder or a file
  int64_t limit = 0;             // use only this many training texts, drawn by seed; 0: all
  int64_t max_length = 64;       // tokens of a text
  std::string truncate = "head";
  int64_t vocab = 20000;
  int64_t min_count = 1;
  double validation_share = 0.1;  // drawn from the training texts where the data has no split of its own
  // model
  std::string model = "full";  // or "printed"
  nn::TextClassifierOptions network;
  // optimisation
  int64_t epochs = 6;  // 0: as many as make 2000 steps, 3 at least
  int64_t batch = 32;
  std::string optimizer = "adamw";
  double lr = 1e-3;
  double momentum = 0.9;  // sgd and rmsprop
  double weight_decay = 0.01;
  std::string schedule = "one_cycle";
  double warmup = 0.1;  // cosine: share of all steps
  double clip = 1;      // largest norm of all gradients; 0: no clipping
  double label_smoothing = 0;
  int64_t patience = 0;  // stop after this many epochs without a better model; 0: never
  uint64_t seed = 1;
  // run
  std::string out = "runs/latest";
  bool resume = false;
  std::string device = "cpu";
  bool graph = false;  // a step is recorded and started as one (cuda, emulated)
  int threads = 0;  // 0: all cores
};

TrainOptions defaults_for(const std::string& data);

// One option as text: for the command line, and for the checkpoint that a resumed run is compared with.
struct TrainOption {
  std::string name;  // without "--"
  std::string about, kind;  // kind: "INT", for the help
  std::function<std::string(const TrainOptions&)> get;
  std::function<void(TrainOptions&, const std::string&)> set;  // UsageError for a value outside the rule
  bool may_change = false;                                     // in a run that is resumed
};
const std::vector<TrainOption>& train_options();  // all but those under "run"

void check(const TrainOptions& options);  // UsageError for the first value outside its rule

}  // namespace heed::train
