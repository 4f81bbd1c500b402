#include "nn/text_classifier_options.h"

#include <charconv>

namespace heed::nn {

void TextClassifierOptions::check() const {
  require_positive("TextClassifier", "vocab_size", vocab_size);
  require_positive("TextClassifier", "embed_dim", embed_dim);
  require_positive("TextClassifier", "classes", classes);
  require_positive("TextClassifier", "layers", layers);
  require_positive("TextClassifier", "max_length", max_length);
  if (ffn_dim < 0)
    throw UsageError(text("TextClassifier: ffn_dim is ", ffn_dim, ", it must be positive, or 0 for none"));
  head_width("TextClassifier", hidden_dim, heads);
  require_dropout("TextClassifier", dropout);
  require_dropout("TextClassifier", word_dropout);
}

TextClassifierOptions TextClassifierOptions::resolved() const {
  TextClassifierOptions o = *this;
  if (!printed) return o;
  o.layers = 1;
  o.ffn_dim = 0;
  o.positions = Positions::none;
  o.residual = false;
  o.norm = Norm::none;
  o.dropout = o.word_dropout = 0;
  o.pooling = Pooling::mean;
  return o;
}

// ---- as text

namespace {

// The shortest text that reads back as the same number.
std::string to_text(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}
std::string to_text(int64_t value) { return std::to_string(value); }
std::string to_text(bool value) { return value ? "true" : "false"; }

template <class Number>
void parse(const std::string& key, const std::string& value, Number& out) {
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, out);
  if (error != std::errc() || stop != end)
    throw UsageError(key + ": \"" + value + "\" is not a number that it can take");
}
void parse(const std::string& key, const std::string& value, bool& out) {
  if (value != "true" && value != "false") throw UsageError(key + ": \"" + value + "\" is neither true nor false");
  out = value == "true";
}

// Calls fn(name, field) for every number and truth value, and fn(name, field, choices) for every enum.
template <class Options, class Fn>
void for_each_field(Options& o, Fn&& fn) {
  fn("vocab_size", o.vocab_size);
  fn("embed_dim", o.embed_dim);
  fn("hidden_dim", o.hidden_dim);
  fn("classes", o.classes);
  fn("heads", o.heads);
  fn("layers", o.layers);
  fn("ffn_dim", o.ffn_dim);
  fn("positions", o.positions, kPositions);
  fn("residual", o.residual);
  fn("norm", o.norm, kNorms);
  fn("dropout", o.dropout);
  fn("word_dropout", o.word_dropout);
  fn("pooling", o.pooling, kPoolings);
  fn("max_length", o.max_length);
  fn("printed", o.printed);
}

struct Writer {
  std::map<std::string, std::string> map;
  template <class T>
  void operator()(const char* name, const T& field) {
    map[name] = to_text(field);
  }
  template <class E, class Choices>
  void operator()(const char* name, const E& field, const Choices& choices) {
    map[name] = name_among(choices, field);
  }
};

struct Reader {
  const std::map<std::string, std::string>& map;
  template <class T>
  void operator()(const char* name, T& field) {
    if (const auto found = map.find(name); found != map.end()) parse(name, found->second, field);
  }
  template <class E, class Choices>
  void operator()(const char* name, E& field, const Choices& choices) {
    if (const auto found = map.find(name); found != map.end()) field = choice_among(choices, name, found->second);
  }
};

}  // namespace

std::map<std::string, std::string> TextClassifierOptions::to_map() const {
  Writer writer;
  for_each_field(*this, writer);
  return writer.map;
}

TextClassifierOptions TextClassifierOptions::from_map(const std::map<std::string, std::string>& map) {
  TextClassifierOptions options;
  for_each_field(options, Reader{map});
  return options;
}

}  // namespace heed::nn
