#include "train/metrics.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace heed::train {

namespace {

double ratio(int64_t part, int64_t whole) { return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0; }

}  // namespace

int64_t Confusion::total() const {
  int64_t n = 0;
  for (int64_t c : count_) n += c;
  return n;
}

int64_t Confusion::correct() const {
  int64_t n = 0;
  for (int64_t c = 0; c < classes_; c++) n += count(c, c);
  return n;
}

double Confusion::accuracy() const { return ratio(correct(), total()); }

double Confusion::precision(int64_t c) const {
  int64_t predicted = 0;
  for (int64_t truth = 0; truth < classes_; truth++) predicted += count(truth, c);
  return ratio(count(c, c), predicted);
}

double Confusion::recall(int64_t c) const {
  int64_t actual = 0;
  for (int64_t predicted = 0; predicted < classes_; predicted++) actual += count(c, predicted);
  return ratio(count(c, c), actual);
}

double Confusion::f1(int64_t c) const {
  const double p = precision(c), r = recall(c);
  return p + r > 0 ? 2 * p * r / (p + r) : 0;
}

double Confusion::macro_f1() const {
  double sum = 0;
  for (int64_t c = 0; c < classes_; c++) sum += f1(c);
  return classes_ ? sum / static_cast<double>(classes_) : 0;
}

std::string Confusion::table(const std::vector<std::string>& names) const {
  size_t width = 9;
  for (const std::string& name : names) width = std::max(width, name.size());
  const int column = static_cast<int>(width) + 2;
  std::ostringstream out;
  out << std::setw(column) << "true\\pred";
  for (const std::string& name : names) out << std::setw(column) << name;
  out << std::setw(column) << "recall" << '\n';
  for (int64_t truth = 0; truth < classes_; truth++) {
    out << std::setw(column) << names[static_cast<size_t>(truth)];
    for (int64_t predicted = 0; predicted < classes_; predicted++) out << std::setw(column) << count(truth, predicted);
    out << std::setw(column) << std::fixed << std::setprecision(4) << recall(truth) << '\n';
  }
  out << std::setw(column) << "precision";
  for (int64_t c = 0; c < classes_; c++) out << std::setw(column) << std::fixed << std::setprecision(4) << precision(c);
  out << '\n';
  return out.str();
}

}  // namespace heed::train
