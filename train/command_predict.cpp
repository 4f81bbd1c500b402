#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "train/commands.h"
#include "train/text_model.h"

namespace heed::train {

namespace {

constexpr size_t kLinesAtOnce = 1024;  // standard input may be endless

void print(const TextModel& model, const std::string& text, const Prediction& p, bool as_json) {
  const std::string& label = model.classes[static_cast<size_t>(p.label)];
  if (!as_json) {
    std::printf("%s\t%.4f\t%s\n", label.c_str(), p.probabilities[static_cast<size_t>(p.label)], text.c_str());
    return;
  }
  nlohmann::ordered_json json = {{"label", label}, {"probability", p.probabilities[static_cast<size_t>(p.label)]}};
  for (size_t c = 0; c < model.classes.size(); c++) json["probabilities"][model.classes[c]] = p.probabilities[c];
  json["text"] = text;
  std::printf("%s\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void predict_and_print(TextModel& model, const std::vector<std::string>& texts, bool as_json) {
  std::vector<Example> examples;
  for (const std::string& text : texts) examples.push_back({text, 0});
  const std::vector<Prediction> predictions = predict(model, model.encode(examples));
  for (size_t i = 0; i < texts.size(); i++) print(model, texts[i], predictions[i], as_json);
  std::fflush(stdout);
}

}  // namespace

void predict_command(const PredictCommand& command) {
  TextModel model = load_model(command.model);
  if (!command.texts.empty()) return predict_and_print(model, command.texts, command.json);
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) {
    lines.push_back(line);
    if (lines.size() == kLinesAtOnce || std::cin.rdbuf()->in_avail() <= 0) {  // answer at once what is typed by hand
      predict_and_print(model, lines, command.json);
      lines.clear();
    }
  }
  if (!lines.empty()) predict_and_print(model, lines, command.json);
}

}  // namespace heed::train
