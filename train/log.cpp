#include "train/log.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tensor/error.h"
#include "train/atomic_file.h"
#include "train/plot.h"

namespace heed::train {

namespace {

struct Field {
  const char* name;
  double EpochRecord::*value;
};
constexpr Field kFields[] = {{"train_loss", &EpochRecord::train_loss},
                             {"train_accuracy", &EpochRecord::train_accuracy},
                             {"validation_loss", &EpochRecord::validation_loss},
                             {"validation_accuracy", &EpochRecord::validation_accuracy},
                             {"lr", &EpochRecord::lr},
                             {"grad_norm", &EpochRecord::grad_norm},
                             {"seconds", &EpochRecord::seconds}};

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
  for (const Field& field : kFields) csv << ',' << field.name;
  csv << '\n';
  for (const EpochRecord& r : records) {
    nlohmann::ordered_json line = {{"epoch", r.epoch}, {"steps", r.steps}};
    csv << r.epoch << ',' << r.steps;
    for (const Field& field : kFields) {
      csv << ',' << r.*field.value;
      line[field.name] = r.*field.value;
    }
    csv << '\n';
    lines << line.dump() << '\n';
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
      const nlohmann::json json = nlohmann::json::parse(line);
      EpochRecord r;
      r.epoch = json.at("epoch");
      r.steps = json.at("steps");
      for (const Field& field : kFields) r.*field.value = json.at(field.name);
      records.push_back(r);
    } catch (const nlohmann::json::exception&) {
      throw FileError(text(path, ":", records.size() + 1, ": not a record of a training log"));
    }
  }
  return records;
}

}  // namespace heed::train
