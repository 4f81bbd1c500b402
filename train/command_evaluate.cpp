#include <cstdio>

#include "train/commands.h"
#include "train/json.h"
#include "train/readers.h"
#include "train/text_model.h"

namespace heed::train {

void evaluate_command(const EvaluateCommand& command) {
  TextModel model = load_model(command.model);
  const std::vector<Example> examples = read_examples(command.data, model.classes);
  const Metrics metrics = evaluate(model, model.encode(examples), command.batch);
  const Confusion& confusion = metrics.confusion;
  if (command.json) {
    std::printf("%s\n", to_json(metrics, model.classes).c_str());
    return;
  }
  std::printf("%s", confusion.table(model.classes).c_str());
  std::printf("texts %lld   loss %.4f   macro F1 %.4f\n", static_cast<long long>(confusion.total()), metrics.loss, confusion.macro_f1());
  std::printf("accuracy %.4f\n", confusion.accuracy());
}

}  // namespace heed::train
