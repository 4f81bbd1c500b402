#include "train/json.h"

#include <nlohmann/json.hpp>

#include "tensor/error.h"

namespace heed::train {

namespace {

using nlohmann::ordered_json;

// Bytes that are not UTF-8 (a text may hold any) become U+FFFD.
std::string line_of(const ordered_json& json) { return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace); }

}  // namespace

std::string to_json(const EpochRecord& record) {
  ordered_json json = {{"epoch", record.epoch}, {"steps", record.steps}};
  for (const EpochField& field : kEpochFields) json[field.name] = record.*field.value;
  return line_of(json);
}

EpochRecord epoch_record(const std::string& line) try {
  const ordered_json json = ordered_json::parse(line);
  EpochRecord record;
  record.epoch = json.at("epoch");
  record.steps = json.at("steps");
  for (const EpochField& field : kEpochFields) record.*field.value = json.at(field.name);
  return record;
} catch (const ordered_json::exception&) {
  throw FileError("not a record of a training log");
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

std::string to_json(const Prediction& prediction, const std::string& text, const std::vector<std::string>& classes) {
  const auto label = static_cast<size_t>(prediction.label);
  ordered_json json = {{"label", classes[label]}, {"probability", prediction.probabilities[label]}};
  for (size_t c = 0; c < classes.size(); c++) json["probabilities"][classes[c]] = prediction.probabilities[c];
  json["text"] = text;
  return line_of(json);
}

}  // namespace heed::train
