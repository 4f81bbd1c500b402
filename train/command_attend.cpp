#include <cstdio>

#include "train/atomic_file.h"
#include "train/commands.h"
#include "train/plot.h"
#include "train/terminal.h"
#include "train/text_model.h"

namespace heed::train {

namespace {

// One panel for each head of a layer; weights: (1, H, T, T).
std::vector<Panel> panels_of(const Tensor& weights, int64_t layer, int64_t layers) {
  std::vector<Panel> panels;
  for (int64_t head = 0; head < weights.size(1); head++) {
    const std::string title = (layers > 1 ? text("layer ", layer, ", ") : "") + text("head ", head);
    panels.push_back({title, weights.select(0, 0).select(0, head).to_vector<float>()});
  }
  return panels;
}

}  // namespace

void attend_command(const AttendCommand& command) {
  if (command.texts.size() != 1) {
    throw UsageError(text("attend: takes one text and was given ", command.texts.size(), "; a text of several words needs quotes around it"));
  }
  TextModel model = load_model(command.model);
  const EncodedTexts encoded = model.encode({{command.texts[0], 0}});
  Batch batch;
  const int64_t sample = 0;
  gather(encoded, {&sample, 1}, batch);

  const NoGrad scope;
  model.network->keep_weights(true);
  const Tensor logits = model.network->forward(ids_of(batch), lengths_of(batch)).value();
  require_finite(logits);
  const std::vector<Tensor> weights = model.network->weights();
  const int64_t layers = static_cast<int64_t>(weights.size());
  if (command.layer < -1 || command.layer >= layers) {
    throw UsageError(text("attend: there is no layer ", command.layer, "; the model has layers 0 to ", layers - 1));
  }

  HeatMap map;
  const int64_t label = argmax(logits, 1).to_vector<int32_t>()[0];
  map.title = text(model.classes[static_cast<size_t>(label)], " (", softmax(logits).at({0, label}), ")");
  map.note = "each row: how a word divides its attention among the words";
  const int64_t extra = weights[0].size(2) - batch.length;  // 1 if the network puts a class token in front
  for (int64_t i = 0; i < extra; i++) map.rows.push_back("<cls>");
  for (int32_t id : batch.ids) map.rows.push_back(std::string(model.vocabulary.word(id)));
  map.columns = map.rows;
  for (int64_t layer = 0; layer < layers; layer++) {
    if (command.layer != -1 && command.layer != layer) continue;
    for (Panel& panel : panels_of(weights[static_cast<size_t>(layer)], layer, layers)) map.panels.push_back(std::move(panel));
  }
  if (!command.svg.empty()) {
    write_text_file(command.svg, heat_map_svg(map));
    std::printf("%s\n%s\n", map.title.c_str(), command.svg.c_str());
  } else {
    std::printf("%s", heat_map_text(map, wants_colour(1), terminal_width(1)).c_str());
  }
}

}  // namespace heed::train
