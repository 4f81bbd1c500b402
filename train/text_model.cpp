#include "train/text_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>

#include "train/labelled_texts.h"
#include "train/utf8.h"

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

// FileError for the first fault of a list of class names.
void check_classes(const std::vector<std::string>& classes, const std::string& place) {
  std::set<std::string> seen;
  for (const std::string& name : classes) {
    check_label(name, place);
    if (!seen.insert(name).second) throw FileError(text(place, ": the class ", in_quotes(name), " occurs twice"));
  }
}

// Is the metadata all there, and of the sizes that the tensors have? Checked before a network of those sizes is built.
void check_metadata(const TensorFile& file, const TextModel& model, const std::string& path) {
  for (const auto& [key, value] : nn::TextClassifierOptions().to_map()) required(file, key, path);
  const nn::TextClassifierOptions o = nn::TextClassifierOptions::from_map(file.metadata);
  const auto agree = [&](const char* key, int64_t value, const std::string& other, int64_t count) {
    if (value != count) throw FileError(text(path, ": its metadata contradicts itself: ", key, " is ", value, ", but ", other, " ", count));
  };
  agree("vocab_size", o.vocab_size, "the words of the vocabulary are", model.vocabulary.size());
  agree("classes", o.classes, "the class names are", static_cast<int64_t>(model.classes.size()));
  agree("max_length", o.max_length, "encode.max_length is", model.encoding.max_length);
  const auto sizes = [&](const std::string& name, int64_t rows, int64_t columns) {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end()) throw FileError(text(path, ": it has no tensor \"", name, "\""));
    const Shape& shape = found->second.shape();
    if (shape.rank() == 2 && shape[0] == rows && shape[1] == columns) return;
    throw FileError(text(path, ": tensor \"", name, "\" is ", shape, ", but by the metadata it must be (", rows, ", ", columns, ")"));
  };
  sizes("embedding.weight", o.vocab_size, o.embed_dim);
  sizes("fc.weight", o.classes, o.hidden_dim);
  if (o.printed) return;
  if (o.positions == nn::Positions::learned) sizes("positions.weight", o.max_length + (o.pooling == nn::Pooling::class_token), o.hidden_dim);
  if (o.ffn_dim > 0) sizes("encoder.layers.0.linear1.weight", o.ffn_dim, o.hidden_dim);
  const auto layers = std::count_if(file.tensors.begin(), file.tensors.end(), [](const auto& named) {
    return named.first.starts_with("encoder.layers.") && named.first.ends_with(".self_attn.in_proj_weight");
  });
  if (o.layers != layers) throw FileError(text(path, ": layers is ", o.layers, " in its metadata, but it has the tensors of ", layers));
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
  check_classes(classes, "make_model");
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
  if (error != std::errc() || end != length.data() + length.size() || encoding.max_length < 1 || encoding.max_length > kLongestText) {
    throw FileError(text(path, ": encode.max_length is ", in_quotes(length), ", it must be a whole number from 1 to ", kLongestText));
  }
  try {
    encoding.truncate = truncate_from(required(file, "encode.truncate", path));
    TextModel model;
    model.vocabulary = Vocabulary(split_lines(required(file, "vocabulary", path)), path);
    model.classes = split_lines(required(file, "class_names", path));
    model.encoding = encoding;
    check_classes(model.classes, path);
    check_metadata(file, model, path);
    for (const auto& [name, tensor] : file.tensors) {
      if (tensor.dtype() != DType::f32 || std::isfinite(sum_of_squares(tensor))) continue;
      throw FileError(text(path, ": tensor \"", name, "\" holds NaN or infinity"));
    }
    model = make_model(nn::TextClassifierOptions::from_map(file.metadata), std::move(model.vocabulary), std::move(model.classes), encoding, 0);
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

void require_finite(const Tensor& logits) {
  if (!std::isfinite(sum_of_squares(logits))) throw NumericError("the model's output is NaN or infinite");
}

namespace {

// Calls fn(batch, logits) for every batch, without a tape and without dropout.
template <class Fn>
void for_each_batch(TextModel& model, const EncodedTexts& texts, int64_t batch_size, Fn&& fn) {
  const bool training = model.network->training();
  model.network->eval();
  const NoGrad scope;
  Batches batches(texts, batch_size, Batches::Order::by_length);
  for (Batch batch; batches.next(batch);) {
    const Tensor logits = model.network->forward(ids_of(batch), lengths_of(batch)).value();
    require_finite(logits);
    fn(batch, logits);
  }
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
