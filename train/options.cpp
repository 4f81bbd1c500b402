#include "train/options.h"

#include <charconv>
#include <limits>
#include <type_traits>

#include "train/utf8.h"

namespace heed::train {

namespace {

constexpr double kNoEnd = std::numeric_limits<double>::max();
constexpr double kMostEpochs = 1e9, kWidest = 1e6;  // nothing that is computed from them overflows

template <class T>
T& field_of(TrainOptions& o, T TrainOptions::*field) { return o.*field; }
template <class T>
T& field_of(TrainOptions& o, T nn::TextClassifierOptions::*field) { return o.network.*field; }
template <class T>
const T& field_of(const TrainOptions& o, T TrainOptions::*field) { return o.*field; }
template <class T>
const T& field_of(const TrainOptions& o, T nn::TextClassifierOptions::*field) { return o.network.*field; }

[[noreturn]] void refuse(const std::string& name, const std::string& value, const std::string& rule) {
  throw UsageError(text("--", name, " is ", in_quotes(value), ", it must be ", rule));
}

// The shortest text that reads back as the same number.
template <class T>
std::string text_of(T value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

// From `least` to `most`; below: `most` itself is none. Strictly decimal: CLI11 would take "" for 0, 010 for 8 and -1 for 2^64 - 1.
template <class Owner, class T>
TrainOption number(const char* name, T Owner::*field, double least, double most, const char* about, bool below = false) {
  std::string rule = std::is_integral_v<T> ? "a whole number " : "a number ";
  const std::string end = most < kNoEnd ? text(static_cast<T>(most)) : std::is_integral_v<T> ? text(std::numeric_limits<T>::max()) : "";
  rule += end.empty() ? text("of at least ", least) : text("from ", least, below ? ", below " : " to ", end);
  const auto set = [=, name = std::string(name)](TrainOptions& o, const std::string& s) {
    T value{};
    const auto [stop, error] = std::from_chars(s.data(), s.data() + s.size(), value);
    const double number = static_cast<double>(value);
    const bool read = error == std::errc() && stop == s.data() + s.size();
    if (!read || !(number >= least && (below ? number < most : number <= most))) refuse(name, s, rule);
    field_of(o, field) = value;
  };
  return {name, about, std::is_integral_v<T> ? "INT" : "FLOAT", [field](const TrainOptions& o) { return text_of(field_of(o, field)); }, set};
}

// One of a few values by their names.
template <class Owner, class E, size_t N>
TrainOption choice(const char* name, E Owner::*field, const nn::Choice<E> (&choices)[N], const char* about = "") {
  std::string rule;
  for (size_t i = 0; i < N; i++) rule += text(i == 0 ? "" : i + 1 < N ? ", " : " or ", choices[i].name);
  const auto get = [=, &choices](const TrainOptions& o) { return nn::name_among(choices, field_of(o, field)); };
  const auto set = [=, &choices, name = std::string(name)](TrainOptions& o, const std::string& s) {
    for (const nn::Choice<E>& choice : choices) {
      if (s == choice.name) return void(field_of(o, field) = choice.value);
    }
    refuse(name, s, rule);
  };
  return {name, *about ? text(about, " (", rule, ")") : rule, "NAME", get, set};
}

const nn::Choice<std::string> kTruncates[] = {{"head", "head"}, {"tail", "tail"}, {"head_tail", "head_tail"}};
const nn::Choice<std::string> kOptimizers[] = {{"sgd", "sgd"}, {"adam", "adam"}, {"adamw", "adamw"}, {"rmsprop", "rmsprop"}};
const nn::Choice<std::string> kSchedules[] = {{"constant", "constant"}, {"step", "step"}, {"cosine", "cosine"}, {"one_cycle", "one_cycle"}};
const nn::Choice<std::string> kModels[] = {{"full", "full"}, {"printed", "printed"}};
constexpr nn::Choice<bool> kSwitch[] = {{true, "1"}, {false, "0"}};

std::vector<TrainOption> all_options() {
  using T = TrainOptions;
  using N = nn::TextClassifierOptions;
  const auto set_data = [](T& o, const std::string& s) { s.empty() ? refuse("data", s, "reviews, a folder or a file") : void(o.data = s); };
  std::vector<TrainOption> all = {
      {"data", "reviews (built in), a folder in the layout of aclImdb, or a FILE of text<TAB>label lines", "TEXT", [](const T& o) { return o.data; }, set_data},
      number("epochs", &T::epochs, 1, kMostEpochs, ""),
      number("batch", &T::batch, 1, kNoEnd, "texts of a training step"),
      number("seed", &T::seed, 0, kNoEnd, ""),
      number("limit", &T::limit, 0, kNoEnd, "use only this many training texts, drawn by seed; 0: all"),
      number("max-length", &T::max_length, 1, kLongestText, "tokens of a text"),
      choice("truncate", &T::truncate, kTruncates, "which part of a longer text is kept"),
      number("vocab", &T::vocab, 4, kNoEnd, "largest vocabulary"),
      number("min-count", &T::min_count, 1, kNoEnd, "rarer words are unknown"),
      number("validation-share", &T::validation_share, 0, 0.5, "of the training texts (a stretch of each class), if the data has no split of its own"),
      choice("optimizer", &T::optimizer, kOptimizers),
      number("lr", &T::lr, 0, kNoEnd, "highest learning rate"),
      number("momentum", &T::momentum, 0, 1, "of sgd and rmsprop"),
      number("weight-decay", &T::weight_decay, 0, kNoEnd, "not on biases and norms"),
      choice("schedule", &T::schedule, kSchedules, "of the learning rate"),
      number("warmup", &T::warmup, 0, 1, "cosine: share of the steps"),
      number("clip", &T::clip, 0, kNoEnd, "largest norm of all gradients; 0: none"),
      number("label-smoothing", &T::label_smoothing, 0, 1, ""),
      number("patience", &T::patience, 0, kNoEnd, "stop after so many epochs without a better model; 0: never"),
      choice("model", &T::model, kModels, "printed: as the article prints it"),
      number("embed", &N::embed_dim, 1, kWidest, "width of the embedding"),
      number("hidden", &N::hidden_dim, 1, kWidest, "width of the model"),
      number("layers", &N::layers, 1, 1000, ""),
      number("heads", &N::heads, 1, kWidest, ""),
      number("ffn", &N::ffn_dim, 0, kWidest, "width of the feed-forward layer; 0: none"),
      number("dropout", &N::dropout, 0, 1, "", true),
      number("word-dropout", &N::word_dropout, 0, 1, "whole words hidden in training", true),
      choice("positions", &N::positions, nn::kPositions),
      choice("norm", &N::norm, nn::kNorms),
      choice("pooling", &N::pooling, nn::kPoolings),
      choice("residual", &N::residual, kSwitch),
  };
  // The data may have another path now: its texts are compared.
  for (TrainOption& option : all) option.may_change = option.name == "data" || option.name == "epochs" || option.name == "patience";
  return all;
}

}  // namespace

const std::vector<TrainOption>& train_options() {
  static const std::vector<TrainOption> all = all_options();
  return all;
}

void check(const TrainOptions& options) {
  TrainOptions copy = options;
  for (const TrainOption& option : train_options()) {
    if (option.name != "epochs" || options.epochs != 0) option.set(copy, option.get(options));
  }
}

}  // namespace heed::train
