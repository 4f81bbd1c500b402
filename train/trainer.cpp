#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "autograd/ops.h"
#include "tensor/random.h"
#include "train/terminal.h"

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

}  // namespace

Trainer::Trainer(const TrainOptions& options, TextDataset dataset) : options_(options), dataset_(std::move(dataset)) {
  if (options_.limit > 0 && options_.limit < static_cast<int64_t>(dataset_.train.size())) {
    Random(mix_key(options_.seed, 3)).shuffle(dataset_.train);  // files come class by class
    dataset_.train.resize(static_cast<size_t>(options_.limit));
  }
  if (dataset_.train.empty()) throw FileError(dataset_.name + ": there are no training texts");
  make_folder(options_.out);
  const std::string last = options_.out + "/last.safetensors";
  model_ = options_.resume ? load_model(last) : new_model(options_, dataset_);
  if (model_.classes != dataset_.classes) throw FileError(last + ": was trained for other classes than " + dataset_.name + " has");
  train_ = model_.encode(dataset_.train);
  validation_ = model_.encode(dataset_.validation);
  parameters_ = model_.network->variables();
  optimizer_ = make_optimizer(options_.optimizer, parameters_, options_.lr, options_.weight_decay, options_.momentum);

  const int64_t steps_per_epoch = (train_.size() + options_.batch - 1) / options_.batch;
  schedule_.kind = options_.schedule;
  schedule_.lr = options_.lr;
  if (options_.epochs == 0) options_.epochs = std::max<int64_t>(3, (2000 + steps_per_epoch - 1) / steps_per_epoch);
  schedule_.total_steps = steps_per_epoch * options_.epochs;
  schedule_.warmup_steps = static_cast<int64_t>(options_.warmup * static_cast<double>(schedule_.total_steps));
  schedule_.step_every = std::max<int64_t>(1, schedule_.total_steps / 4);
  if (options_.resume) restore();
}

void Trainer::run() {
  while (epoch_ < options_.epochs && (options_.patience == 0 || epoch_ - best_epoch_ < options_.patience)) {
    const EpochRecord record = train_epoch(epoch_);
    epoch_++;
    records_.push_back(record);
    const bool best = record.validation_accuracy > best_accuracy_;
    if (best) {
      best_accuracy_ = record.validation_accuracy;
      best_epoch_ = epoch_;
      save("best.safetensors", false);
    }
    save("last.safetensors", true);
    write_logs(options_.out, records_);
    if (on_epoch) on_epoch(record, best);
  }
  model_ = load_model(options_.out + "/best.safetensors");
}

EpochRecord Trainer::train_epoch(int64_t epoch) {
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
  const Metrics metrics = evaluate(model_, validation_);
  record.validation_loss = metrics.loss;
  record.validation_accuracy = metrics.confusion.accuracy();
  record.seconds = seconds_since(start);
  return record;
}

// One training step; adds to the record's sums and returns how many of the batch were right.
double Trainer::train_batch(const Batch& batch, EpochRecord& record) {
  set_dropout_stream(options_.seed, static_cast<uint64_t>(step_));
  const Tensor labels = indices(batch.labels);
  const Variable logits = model_.network->forward(ids_of(batch), lengths_of(batch));
  CrossEntropySettings settings;
  settings.label_smoothing = options_.label_smoothing;
  const Variable loss = cross_entropy(logits, labels, settings);
  const double value = loss.item();
  if (!std::isfinite(value)) {
    throw NumericError(text("train: the loss is ", value, " at step ", step_, " (epoch ", record.epoch, "); a smaller --lr usually helps"));
  }
  optimizer_->zero_grad();
  loss.backward();
  record.grad_norm += options_.clip > 0 ? clip_grad_norm(parameters_, options_.clip) : grad_norm(parameters_);
  record.lr = scheduled_lr(schedule_, step_);
  optimizer_->set_lr(record.lr);
  optimizer_->step();
  step_++;
  record.train_loss += value * static_cast<double>(batch.size);
  return sum(eq(argmax(logits.value(), 1).to(DType::f32), labels.to(DType::f32))).item();
}

// ---- files

void Trainer::save(const std::string& name, bool with_optimizer) const {
  TensorFile file = to_file(model_);
  if (with_optimizer) {
    for (const auto& [path, tensor] : optimizer_->state()) file.tensors["optimizer/" + path] = tensor;
    file.metadata["train.optimizer"] = optimizer_->name();
    file.metadata["train.epoch"] = std::to_string(epoch_);
    file.metadata["train.step"] = std::to_string(step_);
    file.metadata["train.best_epoch"] = std::to_string(best_epoch_);
    char exact[32];
    std::snprintf(exact, sizeof exact, "%a", best_accuracy_);
    file.metadata["train.best_accuracy"] = exact;
  }
  save_tensors(options_.out + "/" + name, file);
}

void Trainer::restore() {
  const std::string path = options_.out + "/last.safetensors";
  const TensorFile file = load_tensors(path);
  std::map<std::string, Tensor> state;
  for (const auto& [name, tensor] : file.tensors) {
    if (name.rfind("optimizer/", 0) == 0) state[name.substr(10)] = tensor;
  }
  const auto value = [&](const char* key) {
    const auto found = file.metadata.find(key);
    if (found == file.metadata.end()) throw FileError(path + ": cannot be resumed: its metadata has no \"" + key + "\"");
    return found->second;
  };
  if (value("train.optimizer") != optimizer_->name()) {
    throw FileError(path + ": was trained with " + value("train.optimizer") + ", not " + optimizer_->name());
  }
  optimizer_->load_state(state);
  epoch_ = std::atoll(value("train.epoch").c_str());
  step_ = std::atoll(value("train.step").c_str());
  best_epoch_ = std::atoll(value("train.best_epoch").c_str());
  best_accuracy_ = std::strtod(value("train.best_accuracy").c_str(), nullptr);
  records_ = read_log(options_.out, epoch_);
}

}  // namespace heed::train
