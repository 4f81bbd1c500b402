#include "train/log.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include "tensor/error.h"
#include "train/atomic_file.h"
#include "train/json.h"
#include "train/plot.h"

namespace heed::train {

namespace {

Curve curve(const std::string& name, const std::vector<EpochRecord>& records, double EpochRecord::*value) {
  Curve c{name, {}};
  for (const EpochRecord& r : records) c.values.push_back(r.*value);
  return c;
}

std::vector<Curve> curves(const std::vector<EpochRecord>& records, double EpochRecord::*training, double EpochRecord::*validation) {
  std::vector<Curve> both = {curve("training", records, training), curve("validation", records, validation)};
  if (!records.empty() && std::isnan(records[0].*validation)) both.pop_back();
  return both;
}

}  // namespace

void write_logs(const std::string& folder, const std::vector<EpochRecord>& records) {
  std::ostringstream csv, lines;
  csv.precision(9);
  csv << "epoch,steps";
  for (const EpochField& field : kEpochFields) csv << ',' << field.name;
  csv << '\n';
  for (const EpochRecord& r : records) {
    csv << r.epoch << ',' << r.steps;
    for (const EpochField& field : kEpochFields) csv << ',' << r.*field.value;
    csv << '\n';
    lines << to_json(r) << '\n';
  }
  write_text_file(folder + "/log.csv", csv.str());
  write_text_file(folder + "/log.jsonl", lines.str());
  write_text_file(folder + "/curve.svg",
                  curve_svg("training", {{"loss", curves(records, &EpochRecord::train_loss, &EpochRecord::validation_loss)},
                                         {"accuracy", curves(records, &EpochRecord::train_accuracy, &EpochRecord::validation_accuracy)}}));
}

void read_seconds(const std::string& folder, std::vector<EpochRecord>& records) {
  std::ifstream in(folder + "/log.jsonl");
  for (std::string line; std::getline(in, line);) {
    try {
      const EpochRecord logged = epoch_record(line);
      const auto index = static_cast<size_t>(logged.epoch - 1);
      if (index < records.size()) records[index].seconds = logged.seconds;
    } catch (const FileError&) {
      continue;  // the log is about to be written anew
    }
  }
}

}  // namespace heed::train
