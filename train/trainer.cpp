#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "autograd/ops.h"
#include "tensor/capture.h"
#include "tensor/random.h"
#include "train/json.h"
#include "train/safetensors.h"
#include "train/terminal.h"
#include "train/utf8.h"

namespace heed::train {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw FileError(path + ": cannot make this folder: " + error.message());
}

TextModel new_model(const TrainOptions& options, const TextDataset& dataset) {
  nn::TextClassifierOptions network = options.network;
  network.printed = options.model == "printed";
  return make_model(network, build_vocabulary(dataset.train, options.vocab, options.min_count), dataset.classes,
                    {options.max_length, truncate_from(options.truncate)}, options.seed);
}

// A fingerprint of the texts and labels that a run learns from (FNV-1a).
std::string fingerprint(const TextDataset& dataset) {
  uint64_t hash = 14695981039346656037u;
  const auto add = [&](std::string_view bytes) {
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  };
  for (const std::vector<Example>* part : {&dataset.train, &dataset.validation}) {
    add(text(part->size(), ";"));
    for (const Example& e : *part) add(text(e.label, ",", e.text.size(), ":")), add(e.text);
  }
  char hex[20];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(hash));
  return hex;
}

// ---- what a checkpoint says of its run: under "train.", each option, the fingerprint of the texts and the history of epochs

const std::string& run_metadata(const std::map<std::string, std::string>& metadata, const std::string& key, const std::string& path) {
  const auto found = metadata.find("train." + key);
  if (found == metadata.end()) throw FileError(path + ": cannot be resumed: its metadata has no \"train." + key + "\"");
  return found->second;
}

TrainOptions options_of(const std::map<std::string, std::string>& metadata, const std::string& path) {
  TrainOptions options;
  for (const TrainOption& option : train_options()) {
    try {
      option.set(options, run_metadata(metadata, option.name, path));
    } catch (const UsageError& error) {
      throw FileError(text(path, ": cannot be resumed: in its metadata \"train.", option.name, "\": ", error.what()));
    }
  }
  return options;
}

// Refuses to go on with other options, as if nothing had changed.
void require_same(const TrainOptions& now, const TrainOptions& then, const std::string& path) {
  for (const TrainOption& option : train_options()) {
    if (option.may_change || option.get(now) == option.get(then)) continue;
    throw UsageError(text("--", option.name, " is ", option.get(now), ", but ", path, " was trained with ", option.get(then)));
  }
}

std::string checkpoint_in(const TrainOptions& options) { return options.out + "/last.safetensors"; }

}  // namespace

TrainOptions as_begun(const TrainOptions& options, const std::function<bool(const std::string&)>& given) {
  const std::string path = checkpoint_in(options);
  const TrainOptions then = options_of(SafetensorsFile(path).metadata(), path);
  TrainOptions now = options;
  for (const TrainOption& option : train_options()) {
    if (!given(option.name)) option.set(now, option.get(then));
  }
  require_same(now, then, path);
  return now;
}

Trainer::Trainer(const TrainOptions& options, TextDataset dataset) : options_(options), dataset_(std::move(dataset)) {
  check(options_);
  if (options_.graph && default_device().on_host()) {
    throw UsageError(text("--graph is for --device cuda or emulated; ", default_device().name(), " has nothing to start"));
  }
  if (options_.limit > 0 && options_.limit < static_cast<int64_t>(dataset_.train.size())) {
    Random(mix_key(options_.seed, 3)).shuffle(dataset_.train);  // files come class by class
    dataset_.train.resize(static_cast<size_t>(options_.limit));
  }
  if (dataset_.train.empty()) throw FileError(dataset_.name + ": there are no training texts");
  texts_ = fingerprint(dataset_);
  make_folder(options_.out);
  const std::string path = checkpoint_in(options_);
  const TensorFile checkpoint = options_.resume ? load_tensors(path) : TensorFile();
  if (options_.resume) {
    const TrainOptions then = options_of(checkpoint.metadata, path);
    require_same(options_, then, path);
    model_ = from_file(checkpoint, path);
    if (model_.classes != dataset_.classes) throw FileError(path + ": was trained for other classes than " + dataset_.name + " has");
    if (run_metadata(checkpoint.metadata, "texts", path) != texts_) {
      throw FileError(text(path, ": was trained on other texts (--data ", then.data, ") than ", dataset_.name, " has now"));
    }
  } else {
    model_ = new_model(options_, dataset_);
  }
  train_ = model_.encode(dataset_.train);
  validation_ = model_.encode(dataset_.validation);
  parameters_ = model_.network->variables();
  optimizer_ = make_optimizer(options_.optimizer, parameters_, options_.lr, options_.weight_decay, options_.momentum);

  steps_per_epoch_ = Batches(train_, options_.batch, Batches::Order::shuffled).per_epoch();
  schedule_.kind = options_.schedule;
  schedule_.lr = options_.lr;
  if (options_.epochs == 0) options_.epochs = std::max<int64_t>(3, (2000 + steps_per_epoch_ - 1) / steps_per_epoch_);
  schedule_.total_steps = steps_per_epoch_ * options_.epochs;
  schedule_.warmup_steps = static_cast<int64_t>(options_.warmup * static_cast<double>(schedule_.total_steps));
  schedule_.step_every = std::max<int64_t>(1, schedule_.total_steps / 4);
  if (options_.resume) restore(checkpoint, path);
}

void Trainer::run() {
  first_step_ = step_;
  while (epoch() < options_.epochs && (options_.patience == 0 || epoch() - best_epoch_ < options_.patience)) {
    const EpochRecord record = train_epoch(epoch());
    const bool best = add(record);
    // In this order: what a run that is killed in between has not written yet can be made from the checkpoint.
    save("last.safetensors", true);
    if (best) save("best.safetensors", false);
    write_logs(options_.out, records_);
    if (on_epoch) on_epoch(record, best);
  }
  model_ = load_model(options_.out + "/best.safetensors");
}

bool is_better(const EpochRecord& a, const EpochRecord& b) {
  return std::pair(a.validation_accuracy, -a.validation_loss) > std::pair(b.validation_accuracy, -b.validation_loss);
}

bool Trainer::add(const EpochRecord& record) {
  const bool best = best_epoch_ == 0 || validation_.size() == 0 || is_better(record, records_[static_cast<size_t>(best_epoch_ - 1)]);
  records_.push_back(record);
  if (best) best_epoch_ = epoch();
  return best;
}

EpochRecord Trainer::train_epoch(int64_t epoch) try {
  const auto start = std::chrono::steady_clock::now();
  EpochRecord record;
  record.epoch = epoch + 1;
  model_.network->train();
  Batches batches(train_, options_.batch, Batches::Order::shuffled, options_.seed);
  batches.seek(epoch, 0);
  Progress progress(text("epoch ", epoch + 1, "/", options_.epochs), batches.per_epoch());
  int64_t samples = 0, correct = 0;
  for (Batch batch; batches.next(batch);) {
    const double right = train_batch(batch, record);
    samples += batch.size;
    correct += static_cast<int64_t>(right);
    char shown[64];
    std::snprintf(shown, sizeof shown, "loss %.4f  accuracy %.4f", record.train_loss / static_cast<double>(samples),
                  static_cast<double>(correct) / static_cast<double>(samples));
    progress.update(batches.position(), shown);
  }
  record.train_loss /= static_cast<double>(samples);
  record.train_accuracy = static_cast<double>(correct) / static_cast<double>(samples);
  record.grad_norm /= static_cast<double>(batches.per_epoch());
  record.steps = step_;
  require_finite_weights();
  const Metrics metrics = evaluate(model_, validation_);
  const bool validated = validation_.size() > 0;
  record.validation_loss = validated ? metrics.loss : std::nan("");
  if (validated && !std::isfinite(metrics.loss)) throw NumericError("the validation loss is NaN or infinite");
  record.validation_accuracy = validated ? metrics.confusion.accuracy() : std::nan("");
  record.seconds = seconds_since(start);
  return record;
} catch (const NumericError& error) {
  const std::string what = error.what();
  throw NumericError(text("train: at step ", step_, ", in epoch ", epoch + 1, ": ", what.substr(0, what.find('\n')), "; a smaller --lr usually helps"));
}

// One training step; adds to the record's sums and returns how many of the batch were right. All of it is asked of the device before
// the host waits for the first number.
double Trainer::train_batch(const Batch& batch, EpochRecord& record) {
  set_dropout_stream(options_.seed, static_cast<uint64_t>(step_));
  record.lr = scheduled_lr(schedule_, step_);
  optimizer_->set_lr(record.lr);
  const std::vector<double> result = take_step(ids_of(batch), lengths_of(batch), indices(batch.labels)).to_vector<double>();
  const double loss = result[0], norm = result[1], right = result[2], logits = result[3];
  if (!std::isfinite(logits)) throw NumericError("the model's output is NaN or infinite");
  if (!std::isfinite(loss)) throw NumericError("the loss is NaN or infinite");
  if (!std::isfinite(norm)) throw NumericError("a gradient is NaN or infinite");
  step_++;
  record.grad_norm += norm;
  record.train_loss += loss * static_cast<double>(batch.size);
  return right;
}

// f64: the loss, the norm of all gradients, how many are right, and the square of the logits' norm.
Tensor Trainer::take_step(const Tensor& ids, const Tensor& lengths, const Tensor& labels) {
  CrossEntropySettings settings;
  settings.label_smoothing = options_.label_smoothing;
  // The first step runs as it comes, so that libraries set themselves up.
  Capture capture(default_device(), options_.graph && step_ > first_step_);
  optimizer_->zero_grad();
  const Variable logits = model_.network->forward(ids, lengths);
  const Variable loss = cross_entropy(logits, labels, settings);
  loss.backward();
  const Tensor norm = grad_norm(parameters_);
  optimizer_->step(options_.clip > 0 ? clip_factor(norm, options_.clip) : Tensor());
  const Tensor right = sum(eq(argmax(logits.value(), 1).to(DType::f64), labels.to(DType::f64)));
  const Tensor result = stack({loss.value().to(DType::f64), norm, right, squared_norm(logits.value())});
  capture.launch();
  return result;
}

void Trainer::require_finite_weights() const {
  for (const Variable& p : parameters_) {
    if (!std::isfinite(sum_of_squares(p.value()))) throw NumericError(text("the weights of \"", p.name(), "\" are NaN or infinite"));
  }
}

// ---- files

void Trainer::save(const std::string& name, bool with_optimizer) const {
  TensorFile file = to_file(model_);
  if (with_optimizer) {
    for (const auto& [path, tensor] : optimizer_->state()) file.tensors["optimizer/" + path] = tensor;
    for (const TrainOption& option : train_options()) file.metadata["train." + option.name] = printable(option.get(options_));
    file.metadata["train.texts"] = texts_;
    file.metadata["train.history"] = history_json(records_);
  }
  save_tensors(options_.out + "/" + name, file);
}

void Trainer::restore(const TensorFile& checkpoint, const std::string& path) {
  const auto refuse = [&](const auto&... why) { throw FileError(text(path, ": cannot be resumed: ", why...)); };
  for (const auto& [key, value] : checkpoint.metadata) {
    if (key.rfind("train.", 0) != 0 || key == "train.texts" || key == "train.history") continue;
    const auto named = [&](const TrainOption& option) { return key == "train." + option.name; };
    if (std::none_of(train_options().begin(), train_options().end(), named)) refuse("its metadata has the unknown key ", in_quotes(key));
  }
  try {
    for (const EpochRecord& record : history(run_metadata(checkpoint.metadata, "history", path))) {
      const bool validated = !std::isnan(record.validation_loss);
      if (record.epoch != epoch() + 1 || record.steps != record.epoch * steps_per_epoch_ || validated != (validation_.size() > 0)) {
        throw FileError(text("entry ", epoch() + 1, " is not of this run"));
      }
      add(record);
    }
  } catch (const FileError& error) {
    refuse("in its metadata \"train.history\": ", error.what());
  }
  if (records_.empty()) refuse("in its metadata \"train.history\": no epochs");
  if (options_.epochs < epoch()) throw UsageError(text("--epochs is ", options_.epochs, ", but ", path, " was trained for ", epoch(), " epochs already"));
  step_ = epoch() * steps_per_epoch_;

  std::map<std::string, Tensor> state;
  for (const auto& [name, expected] : optimizer_->state()) {
    const auto found = checkpoint.tensors.find("optimizer/" + name);
    if (found == checkpoint.tensors.end()) refuse("it has no tensor \"optimizer/", name, "\"");
    const Tensor& tensor = state[name] = found->second;
    if (tensor.dtype() != expected.dtype() || !(tensor.shape() == expected.shape())) {
      refuse("tensor \"optimizer/", name, "\" is ", name_of(tensor.dtype()), " ", tensor.shape(), ", it must be ", name_of(expected.dtype()), " ", expected.shape());
    }
    if (expected.dtype() != DType::i32) continue;
    const double steps = tensor.item();
    if (steps < 0 || steps > static_cast<double>(step_)) refuse("tensor \"optimizer/", name, "\" counts ", steps, " steps of ", step_);
  }
  optimizer_->load_state(state);

  if (best_epoch_ == epoch()) {
    save("best.safetensors", false);
  } else {
    load_model(options_.out + "/best.safetensors");  // better now than after hours
  }
  read_seconds(options_.out, records_);
  write_logs(options_.out, records_);
}

}  // namespace heed::train
