#include <cstdio>
#include <nlohmann/json.hpp>

#include "train/commands.h"
#include "train/readers.h"
#include "train/reviews.h"
#include "train/text_model.h"

namespace heed::train {

void evaluate_command(const EvaluateCommand& command) {
  TextModel model = load_model(command.model);
  std::vector<Example> examples;
  if (command.data == "reviews") {
    examples = built_in_reviews(1).test;
  } else {
    examples = read_examples(command.data, model.classes);
  }
  const Metrics metrics = evaluate(model, model.encode(examples), command.batch);
  const Confusion& confusion = metrics.confusion;
  if (command.json) {
    nlohmann::ordered_json json = {{"texts", confusion.total()}, {"loss", metrics.loss}, {"accuracy", confusion.accuracy()}, {"macro_f1", confusion.macro_f1()}};
    for (int64_t c = 0; c < confusion.classes(); c++) {
      nlohmann::ordered_json row = nlohmann::ordered_json::array();
      for (int64_t predicted = 0; predicted < confusion.classes(); predicted++) row.push_back(confusion.count(c, predicted));
      json["classes"].push_back({{"name", model.classes[static_cast<size_t>(c)]}, {"precision", confusion.precision(c)}, {"recall", confusion.recall(c)},
                                 {"f1", confusion.f1(c)}, {"predicted_as", row}});
    }
    std::printf("%s\n", json.dump().c_str());
    return;
  }
  std::printf("%s", confusion.table(model.classes).c_str());
  std::printf("texts %lld   loss %.4f   macro F1 %.4f\n", static_cast<long long>(confusion.total()), metrics.loss, confusion.macro_f1());
  std::printf("accuracy %.4f\n", confusion.accuracy());
}

}  // namespace heed::train
