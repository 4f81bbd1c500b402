#include "cuda/emulator/settings.h"

#include <charconv>
#include <cstdlib>
#include <sstream>

#include "tensor/error.h"

namespace heed::emulated {

namespace {

bool parse_number(const std::string& value, uint64_t& number) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  return error == std::errc() && end == value.data() + value.size();
}

bool parse_flag(const std::string& value, bool& flag) {
  flag = value == "1";
  return value == "0" || value == "1";
}

bool parse_order(const std::string& value, Order& order) {
  if (value == "forward")
    order = Order::forward;
  else if (value == "reverse")
    order = Order::reverse;
  else if (value == "random")
    order = Order::random;
  else
    return false;
  return true;
}

bool parse_word(const std::string& word, Settings& out) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos) return false;
  const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
  if (name == "order") return parse_order(value, out.order);
  if (name == "seed") return parse_number(value, out.seed);
  if (name == "guard") return parse_flag(value, out.guard);
  if (name == "unordered") return parse_flag(value, out.unordered);
  return false;
}

}  // namespace

Settings parse_settings(const std::string& words) {
  Settings out;
  std::istringstream stream(words);
  for (std::string word; std::getline(stream, word, ',');) {
    if (parse_word(word, out)) continue;
    throw DeviceError(text("HEED_EMULATOR: cannot understand \"", word,
                           "\"; it is a comma-separated list of order=forward|reverse|random, seed=N, guard=0|1, "
                           "unordered=0|1"));
  }
  return out;
}

Settings& settings() {
  static Settings current = [] {
    const char* words = std::getenv("HEED_EMULATOR");
    return parse_settings(words ? words : "");
  }();
  return current;
}

}  // namespace heed::emulated
