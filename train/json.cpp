#include "train/json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tensor/error.h"

namespace heed::train {

namespace {

using nlohmann::ordered_json;

// Bytes that are not UTF-8 (a text may hold any) become U+FFFD.
std::string line_of(const ordered_json& json) { return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace); }

ordered_json json_of(const EpochRecord& record, bool with_seconds) {
  ordered_json json = {{"epoch", record.epoch}, {"steps", record.steps}};
  for (const EpochField& field : kEpochFields) {
    if (with_seconds || field.value != &EpochRecord::seconds) json[field.name] = record.*field.value;
  }
  return json;
}

int64_t whole_number(const ordered_json& json) {
  if (!json.is_number_integer()) throw FileError("not a whole number");
  return json;
}

EpochRecord record_of(const ordered_json& json, bool with_seconds) {
  EpochRecord record;
  record.epoch = whole_number(json.at("epoch"));
  record.steps = whole_number(json.at("steps"));
  for (const EpochField& field : kEpochFields) {
    if (!with_seconds && field.value == &EpochRecord::seconds) continue;
    const ordered_json& value = json.at(field.name);
    record.*field.value = value.is_null() ? std::nan("") : value.get<double>();  // JSON has no NaN
  }
  return record;
}

}  // namespace

std::string to_json(const EpochRecord& record) { return line_of(json_of(record, true)); }

EpochRecord epoch_record(const std::string& line) try {
  return record_of(ordered_json::parse(line), true);
} catch (const ordered_json::exception&) {
  throw FileError("not a record of a training log");
}

std::string history_json(const std::vector<EpochRecord>& records) {
  ordered_json json = ordered_json::array();
  for (const EpochRecord& record : records) json.push_back(json_of(record, false));
  return line_of(json);
}

std::vector<EpochRecord> history(const std::string& json) try {
  std::vector<EpochRecord> records;
  for (const ordered_json& each : ordered_json::parse(json)) records.push_back(record_of(each, false));
  return records;
} catch (const ordered_json::exception&) {
  throw FileError("not a history of epochs");
}

std::string to_json(const Metrics& metrics, const std::vector<std::string>& classes) {
  const Confusion& confusion = metrics.confusion;
  ordered_json json = {{"texts", confusion.total()},
                       {"loss", metrics.loss},
                       {"accuracy", confusion.accuracy()},
                       {"macro_f1", confusion.macro_f1()}};
  for (int64_t c = 0; c < confusion.classes(); c++) {
    ordered_json row = ordered_json::array();
    for (int64_t predicted = 0; predicted < confusion.classes(); predicted++) row.push_back(confusion.count(c, predicted));
    json["classes"].push_back({{"name", classes[static_cast<size_t>(c)]},
                               {"precision", confusion.precision(c)},
                               {"recall", confusion.recall(c)},
                               {"f1", confusion.f1(c)},
                               {"predicted_as", row}});
  }
  return line_of(json);
}

std::string to_json(const BenchFigure& figure) {
  return line_of({{"name", figure.name},
                  {"device", figure.device},
                  {"threads", figure.threads},
                  {"small", figure.small},
                  {"median_ms", figure.median_ms},
                  {"min_ms", figure.min_ms},
                  {"steps", figure.steps},
                  {"peak_bytes", figure.peak_bytes}});
}

std::string to_json(const Prediction& prediction, const std::string& text, const std::vector<std::string>& classes) {
  const auto label = static_cast<size_t>(prediction.label);
  ordered_json json = {{"label", classes[label]}, {"probability", prediction.probabilities[label]}};
  for (size_t c = 0; c < classes.size(); c++) json["probabilities"][classes[c]] = prediction.probabilities[c];
  json["text"] = text;
  return line_of(json);
}

}  // namespace heed::train
