#include "train/tokenizer.h"

#include <algorithm>
#include <array>

#include "train/utf8.h"

namespace heed::train {

namespace {

// For an ASCII letter or digit its lower case, for every other byte 0.
constexpr std::array<char, 256> kWordByte = [] {
  std::array<char, 256> table{};
  for (int c = 'a'; c <= 'z'; c++) table[c] = table[c - 'a' + 'A'] = static_cast<char>(c);
  for (int c = '0'; c <= '9'; c++) table[c] = static_cast<char>(c);
  return table;
}();

char word_byte(char c) { return kWordByte[static_cast<unsigned char>(c)]; }
bool within(char32_t code, char32_t first, char32_t last) { return first <= code && code <= last; }

enum class Kind { letter, apostrophe, mark, separator };

struct Character {
  Kind kind;
  size_t bytes;
};

Character wide_character(std::string_view text, size_t at) {
  const auto [code, bytes, valid] = decode_utf8(text, at);
  // U+0091, U+0092 are the curly quotes of Windows-1252, left over in text that was converted carelessly.
  const bool apostrophe = code == 0x2018 || code == 0x2019 || code == 0x91 || code == 0x92 || code == 0xB4;
  // Controls and Latin-1 signs; general and CJK punctuation; the byte-order mark; specials (U+FFFD among them).
  const bool separates = within(code, 0x80, 0xBF) || within(code, 0x2000, 0x206F) || within(code, 0x3000, 0x303F) ||
                         code == 0xFEFF || within(code, 0xFFF0, 0xFFFF);
  return {apostrophe ? Kind::apostrophe : separates || !valid ? Kind::separator : Kind::letter, bytes};
}

size_t length_of_break_tag(std::string_view rest) {
  const auto is = [&](size_t i, char lower) { return i < rest.size() && (rest[i] | 0x20) == lower; };
  if (!is(1, 'b') || !is(2, 'r')) return 0;
  for (const std::string_view tail : {">", "/>", " >", " />"}) {
    if (rest.substr(3, tail.size()) == tail) return 3 + tail.size();
  }
  return 0;
}

Character character(std::string_view text, size_t at) {
  const char c = text[at];
  if (word_byte(c) != 0) return {Kind::letter, 1};
  if (static_cast<unsigned char>(c) >= 0x80) return wide_character(text, at);
  if (c == '\'' || c == '`') return {Kind::apostrophe, 1};
  if (c == '.' || c == ',' || c == ';' || c == ':' || c == '!' || c == '?') return {Kind::mark, 1};
  if (c == '<') return {Kind::separator, std::max<size_t>(1, length_of_break_tag(text.substr(at)))};
  return {Kind::separator, 1};
}

bool digit_at(std::string_view text, size_t at) { return at < text.size() && '0' <= text[at] && text[at] <= '9'; }
bool letter_at(std::string_view text, size_t at) {
  return at < text.size() && character(text, at).kind == Kind::letter;
}

}  // namespace

void tokenize(std::string_view text, Words& words) {
  const size_t used = words.bytes_.size();
  words.bytes_.resize(used + text.size());  // words are never longer than their text
  char* const bytes = words.bytes_.data();
  char* out = bytes + used;
  char* word = out;  // where the word being read begins
  const auto end_word = [&] {
    if (out > word) words.ends_.push_back(static_cast<size_t>(out - bytes));
    word = out;
  };

  for (size_t at = 0; at < text.size();) {
    if (const char lower = word_byte(text[at])) {  // nearly every byte takes this road
      *out++ = lower, at++;
      continue;
    }
    const Character c = character(text, at);
    if (c.kind == Kind::letter) {
      out = std::copy_n(text.data() + at, c.bytes, out);
    } else if (c.kind == Kind::apostrophe && out > word && letter_at(text, at + c.bytes)) {
      *out++ = '\'';
    } else if ((text[at] == '/' || text[at] == '.') && at > 0 && digit_at(text, at - 1) && digit_at(text, at + 1)) {
      *out++ = text[at];
    } else {
      end_word();
      const bool repeated = at > 0 && text[at - 1] == text[at];
      if (c.kind == Kind::mark && !repeated) *out++ = text[at], end_word();
    }
    at += c.bytes;
  }
  end_word();
  words.bytes_.resize(static_cast<size_t>(out - bytes));
}

}  // namespace heed::train
