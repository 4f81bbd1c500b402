// Words come from anywhere: these functions make any bytes safe to show.
#pragma once
#include <string>
#include <string_view>

namespace heed::train {

struct CodePoint {
  char32_t code;  // U+FFFD where the bytes are not UTF-8
  size_t bytes;   // how many bytes it took; 1 where they are not UTF-8
  bool valid;
};

CodePoint decode_utf8(std::string_view text, size_t at);  // at < text.size()
size_t find_invalid_utf8(std::string_view text);          // the first byte that is not UTF-8, or npos

// Control characters, marks that turn the writing direction, and bytes that are not UTF-8 become U+FFFD.
std::string printable(std::string_view text);

// Columns on a terminal: 0 for combining marks, 2 for East Asian and emoji, else 1.
int display_width(char32_t code);
int display_width(std::string_view text);

// Printable, and at most `columns` wide: a longer text ends in "…".
std::string shorten(std::string_view text, int columns);

// Printable, at most 60 columns wide, in quotes: a name in a message (not "quoted", which std has too).
std::string in_quotes(std::string_view text);

}  // namespace heed::train
