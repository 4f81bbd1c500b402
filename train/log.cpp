#include "train/log.h"

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
                  curve_svg("training", {{"loss", {curve("training", records, &EpochRecord::train_loss), curve("validation", records, &EpochRecord::validation_loss)}},
                                         {"accuracy", {curve("training", records, &EpochRecord::train_accuracy),
                                                       curve("validation", records, &EpochRecord::validation_accuracy)}}}));
}

std::vector<EpochRecord> read_log(const std::string& folder, int64_t epochs) {
  const std::string path = folder + "/log.jsonl";
  std::ifstream in(path);
  std::vector<EpochRecord> records;
  std::string line;
  while (static_cast<int64_t>(records.size()) < epochs && std::getline(in, line)) {
    try {
      records.push_back(epoch_record(line));
    } catch (const FileError& error) {
      throw FileError(text(path, ":", records.size() + 1, ": ", error.what()));
    }
  }
  return records;
}

}  // namespace heed::train
