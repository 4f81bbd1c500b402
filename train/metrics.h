// How good a classifier is, counted from its predictions.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace heed::train {

// Rows: the true class; columns: the predicted one.
class Confusion {
 public:
  explicit Confusion(int64_t classes = 0) : classes_(classes), count_(static_cast<size_t>(classes * classes)) {}
  void add(int64_t truth, int64_t predicted) { count_[static_cast<size_t>(truth * classes_ + predicted)]++; }

  int64_t classes() const { return classes_; }
  int64_t count(int64_t truth, int64_t predicted) const { return count_[static_cast<size_t>(truth * classes_ + predicted)]; }
  int64_t total() const;
  int64_t correct() const;
  double accuracy() const;  // 0 if nothing was counted

  // Of one class; 0 where the denominator is 0.
  double precision(int64_t c) const;  // right among those predicted c
  double recall(int64_t c) const;     // right among those that are c
  double f1(int64_t c) const;         // 2 precision recall / (precision + recall)
  double macro_f1() const;            // the mean over classes

  std::string table(const std::vector<std::string>& names) const;  // for people, several lines

 private:
  int64_t classes_;
  std::vector<int64_t> count_;
};

struct Metrics {
  double loss = 0;  // mean cross-entropy over the samples
  Confusion confusion;
};

}  // namespace heed::train
