#include "train/labelled_texts.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include "tensor/error.h"
#include "train/utf8.h"

namespace heed::train {

namespace fs = std::filesystem;

namespace {

std::string read_file(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    throw FileError(text("cannot read ", path, ": ", error ? error.message() : "No such file or directory"));
  }
  if (!fs::is_regular_file(status)) throw FileError(text("cannot read ", path, ": not a regular file"));

  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string content;
  content.resize(file ? fs::file_size(path, error) : 0);
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (!file) throw FileError(text("cannot read ", path, ": ", errno ? std::strerror(errno) : "it became shorter"));
  if (content.starts_with("\xFF\xFE") || content.starts_with("\xFE\xFF")) {
    throw FileError(text(path, " is UTF-16; please convert it to UTF-8"));
  }
  return content;
}

struct Line {
  int64_t number;
  std::string_view content;
};

bool is_blank(std::string_view s) { return s.find_first_not_of(" \t\v\f") == std::string_view::npos; }

std::string_view trimmed(std::string_view s) {
  const size_t begin = s.find_first_not_of(" \v\f"), end = s.find_last_not_of(" \v\f");
  return begin == std::string_view::npos ? std::string_view() : s.substr(begin, end + 1 - begin);
}

std::vector<Line> split_lines(std::string_view content) {
  if (content.starts_with("\xEF\xBB\xBF")) content.remove_prefix(3);  // byte-order mark
  std::vector<Line> lines;
  for (int64_t number = 1; !content.empty(); number++) {
    const size_t end = std::min(content.find('\n'), content.size());
    std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!is_blank(line)) lines.push_back({number, line});
  }
  return lines;
}

std::string_view column(std::string_view line, int index) {
  for (; index > 0; index--) line.remove_prefix(line.find('\t') + 1);
  return line.substr(0, line.find('\t'));
}

int column_count(std::string_view line) { return 1 + static_cast<int>(std::count(line.begin(), line.end(), '\t')); }

// The columns that a header names; nothing if this line is not a header, that is, if it holds anything but names.
std::optional<Columns> named_columns(std::string_view line, const std::string& place) {
  const auto one_of = [](std::string_view name, std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; });
  };
  Columns columns{-1, -1, column_count(line), true};
  const char* twice = nullptr;
  for (int i = 0; i < columns.count; i++) {
    std::string name(trimmed(column(line, i)));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    int* const column_of = one_of(name, {"text", "sentence", "review"})    ? &columns.text
                           : one_of(name, {"label", "sentiment", "class"}) ? &columns.label
                                                                           : nullptr;
    if (column_of && *column_of >= 0) twice = column_of == &columns.text ? "text" : "label";
    if (column_of)
      *column_of = i;
    else if (!one_of(name, {"id", "index"}))
      return {};
  }
  if (twice) throw FileError(text(place, ": the header names two ", twice, " columns"));
  if (columns.text < 0 || columns.label < 0) {
    throw FileError(text(place, ": the header names no ", columns.text < 0 ? "text" : "label", " column"));
  }
  return columns;
}

// Labels repeat and texts hardly do, so the label column has fewer different values. Ties: it has fewer bytes.
Columns guess_columns(const std::vector<Line>& lines) {
  size_t bytes[2] = {0, 0};
  std::unordered_set<std::string_view> values[2];
  for (const Line& line : lines) {
    if (column_count(line.content) != 2) continue;
    for (int i = 0; i < 2; i++) {
      const std::string_view value = column(line.content, i);
      values[i].insert(value);
      bytes[i] += value.size();
    }
  }
  const bool first = std::pair(values[0].size(), bytes[0]) < std::pair(values[1].size(), bytes[1]);
  return first ? Columns{.text = 1, .label = 0} : Columns{.text = 0, .label = 1};
}

// Sorts 2_7.txt before 10_3.txt, and names without a number behind those with one.
auto numeric_order(const std::string& name) {
  const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  const size_t zeros = std::min(name.find_first_not_of('0'), digits);
  return std::tuple(digits == 0, digits - zeros, name.substr(zeros, digits - zeros), name);
}

std::vector<std::string> text_files(const std::string& folder) {
  std::vector<std::string> names = list_folder(folder);
  std::erase_if(names, [](const std::string& name) { return name.starts_with('.') || !name.ends_with(".txt"); });
  if (names.empty()) throw FileError(text("no .txt file in ", folder));
  std::sort(names.begin(), names.end(),
            [](const auto& a, const auto& b) { return numeric_order(a) < numeric_order(b); });
  return names;
}

}  // namespace

std::string LabelledTexts::place(size_t i) const {
  return lines.empty() ? path + "/" + labels[i] : text(path, ":", lines[i]);
}

LabelledTexts read_table(const std::string& path, std::optional<Columns> like, Columns* found) {
  const std::string content = read_file(path);
  const std::vector<Line> lines = split_lines(content);
  if (lines.empty()) throw FileError(text(path, " is empty; expected lines of text<TAB>label"));

  const auto place = [&](const Line& line) { return text(path, ":", line.number); };
  const std::optional<Columns> named = named_columns(lines[0].content, place(lines[0]));
  Columns columns = named ? *named : like ? *like : guess_columns(lines);
  columns.header = named.has_value();
  if (found) *found = columns;

  LabelledTexts result{path, {}, {}, {}};
  for (const Line& line : std::span(lines).subspan(columns.header ? 1 : 0)) {
    const int count = column_count(line.content);
    if (count == 1) throw FileError(text(place(line), ": no label column; expected text<TAB>label"));
    if (count != columns.count) {
      throw FileError(text(place(line), ": ", count, " columns where ", columns.count, " were expected"));
    }
    const std::string_view label = trimmed(column(line.content, columns.label));
    check_label(label, place(line));
    result.texts.emplace_back(column(line.content, columns.text));
    result.labels.emplace_back(label);
    result.lines.push_back(line.number);
  }
  if (result.texts.empty()) throw FileError(text(path, " holds a header and nothing else"));
  return result;
}

LabelledTexts read_class_folders(const std::string& folder) {
  LabelledTexts result{folder, {}, {}, {}};
  for (const std::string& name : list_folder(folder)) {
    const std::string path = folder + "/" + name;
    std::error_code error;
    if (name == "unsup" || name.starts_with('.') || !fs::is_directory(path, error)) continue;
    check_label(name, folder);
    for (const std::string& file : text_files(path)) {
      result.texts.push_back(read_file(path + "/" + file));
      result.labels.push_back(name);
    }
  }
  if (result.texts.empty()) throw FileError(text("no class folder in ", folder, "; expected ", folder, "/CLASS/*.txt"));
  return result;
}

void check_label(std::string_view label, const std::string& place) {
  const auto refuse = [&](const char* why) { throw FileError(text(place, ": the label ", label.empty() ? "" : in_quotes(label) + " ", why)); };
  if (label.empty()) refuse("is empty");
  if (find_invalid_utf8(label) != label.npos) refuse("is not UTF-8");
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(label.begin(), label.end(), control)) refuse("holds a line break or another control character");
}

std::vector<std::string> list_folder(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) throw FileError(text("cannot list ", folder, ": ", error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace heed::train
