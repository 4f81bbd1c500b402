#include "train/text_model.h"

#include <charconv>
#include <cmath>
#include <sstream>

namespace heed::train {

namespace {

constexpr const char* kFormat = "heed text classifier 1";

// Words and class names hold no line breaks, so a list of them is one text.
std::string join_lines(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + '\n';
  return out;
}

std::vector<std::string> split_lines(const std::string& joined) {
  std::vector<std::string> lines;
  std::istringstream in(joined);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

const std::string& required(const TensorFile& file, const std::string& key, const std::string& path) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) throw FileError(path + ": not a text classifier of heed: its metadata has no \"" + key + "\"");
  return found->second;
}

constexpr const char* kTruncateNames[] = {"head", "tail", "head_tail"};

}  // namespace

std::string truncate_name(Truncate truncate) { return kTruncateNames[static_cast<int>(truncate)]; }

Truncate truncate_from(const std::string& name) {
  for (int i = 0; i < 3; i++) {
    if (name == kTruncateNames[i]) return static_cast<Truncate>(i);
  }
  throw UsageError("truncate: there is no \"" + name + "\"; heed has head, tail, head_tail");
}

EncodedTexts TextModel::encode(const std::vector<Example>& examples) const {
  return train::encode(examples, vocabulary, encoding.max_length, encoding.truncate);
}

TextModel make_model(nn::TextClassifierOptions options, Vocabulary vocabulary, std::vector<std::string> classes, Encoding encoding, uint64_t seed) {
  options.vocab_size = vocabulary.size();
  options.classes = static_cast<int64_t>(classes.size());
  options.max_length = encoding.max_length;
  Random random(mix_key(seed, 1));
  TextModel model;
  model.network = std::make_unique<nn::TextClassifier>(options, random);
  model.vocabulary = std::move(vocabulary);
  model.classes = std::move(classes);
  model.encoding = encoding;
  return model;
}

TensorFile to_file(const TextModel& model) {
  TensorFile file;
  file.tensors = model.network->state();
  file.metadata = model.network->options().to_map();
  file.metadata["format"] = kFormat;
  file.metadata["vocabulary"] = join_lines(model.vocabulary.words());
  file.metadata["class_names"] = join_lines(model.classes);
  file.metadata["encode.max_length"] = std::to_string(model.encoding.max_length);
  file.metadata["encode.truncate"] = truncate_name(model.encoding.truncate);
  return file;
}

TextModel from_file(const TensorFile& file, const std::string& path) {
  if (required(file, "format", path) != kFormat) {
    throw FileError(path + ": is \"" + required(file, "format", path) + "\", this program reads \"" + kFormat + "\"");
  }
  Encoding encoding;
  const std::string& length = required(file, "encode.max_length", path);
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), encoding.max_length);
  if (error != std::errc() || end != length.data() + length.size() || encoding.max_length < 1) {
    throw FileError(path + ": encode.max_length is \"" + length + "\", it must be a positive number");
  }
  try {
    encoding.truncate = truncate_from(required(file, "encode.truncate", path));
    const nn::TextClassifierOptions options = nn::TextClassifierOptions::from_map(file.metadata);
    TextModel model = make_model(options, Vocabulary(split_lines(required(file, "vocabulary", path)), path),
                                 split_lines(required(file, "class_names", path)), encoding, 0);
    std::map<std::string, Tensor> weights;
    for (const auto& [name, tensor] : file.tensors) {
      if (name.rfind("optimizer/", 0) != 0) weights[name] = tensor;
    }
    model.network->load_state(weights);
    model.network->eval();
    return model;
  } catch (const Error& fault) {
    const std::string what = fault.what();
    throw FileError(what.rfind(path, 0) == 0 ? what : path + ": " + what);
  }
}

TextModel load_model(const std::string& path) { return from_file(load_tensors(path), path); }

Tensor ids_of(const Batch& batch) { return indices(batch.ids, {batch.size, batch.length}); }
Tensor lengths_of(const Batch& batch) { return indices(batch.lengths); }

namespace {

// Calls fn(batch, logits) for every batch, without a tape and without dropout.
template <class Fn>
void for_each_batch(TextModel& model, const EncodedTexts& texts, int64_t batch_size, Fn&& fn) {
  const bool training = model.network->training();
  model.network->eval();
  const NoGrad scope;
  Batches batches(texts, batch_size, Batches::Order::by_length);
  for (Batch batch; batches.next(batch);) fn(batch, model.network->forward(ids_of(batch), lengths_of(batch)).value());
  model.network->train(training);
}

}  // namespace

std::vector<Prediction> predict(TextModel& model, const EncodedTexts& texts, int64_t batch_size) {
  std::vector<Prediction> out(static_cast<size_t>(texts.size()));
  for_each_batch(model, texts, batch_size, [&](const Batch& batch, const Tensor& logits) {
    const std::vector<double> probabilities = softmax(logits).to_vector<double>();
    const std::vector<int32_t> labels = argmax(logits, 1).to_vector<int32_t>();
    const size_t classes = model.classes.size();
    for (size_t i = 0; i < labels.size(); i++) {
      Prediction& p = out[static_cast<size_t>(batch.samples[i])];
      p.label = labels[i];
      p.probabilities.assign(probabilities.begin() + static_cast<std::ptrdiff_t>(i * classes),
                             probabilities.begin() + static_cast<std::ptrdiff_t>((i + 1) * classes));
    }
  });
  return out;
}

Metrics evaluate(TextModel& model, const EncodedTexts& texts, int64_t batch_size) {
  Metrics metrics{0, Confusion(static_cast<int64_t>(model.classes.size()))};
  for_each_batch(model, texts, batch_size, [&](const Batch& batch, const Tensor& logits) {
    metrics.loss += sum(cross_entropy_rows(logits, indices(batch.labels), {}).loss).item();
    const std::vector<int32_t> predicted = argmax(logits, 1).to_vector<int32_t>();
    for (size_t i = 0; i < predicted.size(); i++) metrics.confusion.add(batch.labels[i], predicted[i]);
  });
  if (texts.size() > 0) metrics.loss /= static_cast<double>(texts.size());
  return metrics;
}

}  // namespace heed::train
