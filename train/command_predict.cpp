#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "train/commands.h"
#include "train/json.h"
#include "train/terminal.h"
#include "train/text_model.h"

namespace heed::train {

namespace {

constexpr size_t kLinesAtOnce = 1024;  // standard input may be endless

void print(const TextModel& model, const std::string& text, const Prediction& p, bool as_json) {
  if (as_json) {
    std::printf("%s\n", to_json(p, text, model.classes).c_str());
    return;
  }
  const auto label = static_cast<size_t>(p.label);
  std::printf("%s\t%.4f\t%s\n", model.classes[label].c_str(), p.probabilities[label], text.c_str());
}

void predict_and_print(TextModel& model, const std::vector<std::string>& texts, bool as_json) {
  std::vector<Example> examples;
  for (const std::string& text : texts) examples.push_back({text, 0});
  const std::vector<Prediction> predictions = predict(model, model.encode(examples));
  for (size_t i = 0; i < texts.size(); i++) print(model, texts[i], predictions[i], as_json);
  flush_output();
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
  const int error = errno;
  if (!lines.empty()) predict_and_print(model, lines, command.json);
  if (std::ferror(stdin)) throw FileError(text("cannot read standard input: ", std::strerror(error)));
}

}  // namespace heed::train
