#include "train/utf8.h"

#include <algorithm>
#include <initializer_list>

namespace heed::train {

namespace {

constexpr char32_t kReplacement = 0xFFFD;
constexpr std::string_view kReplacementBytes = "\xEF\xBF\xBD", kEllipsis = "\xE2\x80\xA6";

struct Range {
  char32_t first, last;
};

bool within(char32_t code, std::initializer_list<Range> ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [&](Range r) { return r.first <= code && code <= r.last; });
}

bool is_printable(char32_t code) {
  return !within(code, {{0x00, 0x1F},
                        {0x7F, 0x9F},
                        {0x200E, 0x200F},
                        {0x2028, 0x202E},  // line separators, writing direction
                        {0x2066, 0x2069},
                        {0xFFFE, 0xFFFF}});
}

}  // namespace

CodePoint decode_utf8(std::string_view text, size_t at) {
  constexpr CodePoint invalid{kReplacement, 1, false};
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {first, 1, true};
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || bytes > text.size() - at) return invalid;
  char32_t code = first & (0xFFu >> (bytes + 1));
  for (size_t i = 1; i < bytes; i++) {
    if ((byte(at + i) & 0xC0) != 0x80) return invalid;
    code = code << 6 | (byte(at + i) & 0x3F);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = 0xD800 <= code && code <= 0xDFFF;
  if (overlong || surrogate || code > 0x10FFFF) return invalid;
  return {code, bytes, true};
}

size_t find_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    if (!point.valid) return at;
    at += point.bytes;
  }
  return std::string_view::npos;
}

std::string printable(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    out += point.valid && is_printable(point.code) ? text.substr(at, point.bytes) : kReplacementBytes;
    at += point.bytes;
  }
  return out;
}

int display_width(char32_t code) {
  if (within(code, {{0x0300, 0x036F}, {0x200B, 0x200D}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}}))
    return 0;
  const bool wide = within(code, {{0x1100, 0x115F},
                                  {0x2E80, 0xA4CF},
                                  {0xAC00, 0xD7A3},
                                  {0xF900, 0xFAFF},
                                  {0xFE30, 0xFE6F},
                                  {0xFF00, 0xFF60},
                                  {0xFFE0, 0xFFE6},
                                  {0x1F300, 0x1F64F},
                                  {0x1F680, 0x1F6FF},
                                  {0x1F900, 0x1F9FF},
                                  {0x20000, 0x3FFFD}});
  return wide ? 2 : 1;
}

int display_width(std::string_view text) {
  int width = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    width += display_width(point.code);
    at += point.bytes;
  }
  return width;
}

std::string shorten(std::string_view text, int columns) {
  // A short text may still be megabytes of marks without width: look no further than that.
  const size_t enough = 16 * static_cast<size_t>(std::max(columns, 1)) + 16;
  const bool endless = text.size() > enough;
  std::string out;
  int width = 0;
  size_t fits = 0;  // bytes of `out` that leave room for the ellipsis
  for (size_t at = 0; at < std::min(text.size(), enough);) {
    const CodePoint point = decode_utf8(text, at);
    width += display_width(point.code);
    if (width > columns) break;
    out += printable(text.substr(at, point.bytes));
    if (width < columns) fits = out.size();
    at += point.bytes;
  }
  if (width <= columns && !endless) return out;
  out.resize(fits);
  return columns > 0 ? out + std::string(kEllipsis) : "";
}

std::string in_quotes(std::string_view text) { return '"' + shorten(text, 60) + '"'; }

}  // namespace heed::train
