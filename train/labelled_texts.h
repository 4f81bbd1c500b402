// Texts with their labels, as they stand in a file or a folder: no classes, no splits yet.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed::train {

struct LabelledTexts {
  std::string path;
  std::vector<std::string> texts, labels;  // labels as written: "1", "pos"
  std::vector<int64_t> lines;              // where each stands in its file; empty for class folders

  std::string place(size_t i) const;  // "reviews.tsv:12" or "train/pos"
};

// Which columns of a tab-separated file hold what.
struct Columns {
  int text = 0, label = 1, count = 2;
  bool header = false;
};

// One text a line: text<TAB>label or label<TAB>text. A first line such as "sentence<TAB>label" names the columns (then
// there may be more of them); otherwise they are those of `like`, or else the label is the column with fewer different
// values. Labels are numbers or names. Blank lines, a byte-order mark and \r before \n are skipped; an empty text
// stays. `found` receives the columns. FileError with file and line for what cannot be read so.
LabelledTexts read_table(const std::string& path, std::optional<Columns> like = {}, Columns* found = nullptr);

// folder/<class>/*.txt, one text a file; files in the order of the number that begins their name, then by name. A class
// "unsup" (aclImdb's unlabelled reviews) is skipped, and so are hidden folders.
LabelledTexts read_class_folders(const std::string& folder);

// FileError naming the place if this cannot be the name of a class: it is empty, not UTF-8, or holds line breaks or other control characters.
void check_label(std::string_view label, const std::string& place);

// The entries of a folder, in byte order. FileError if it cannot be read.
std::vector<std::string> list_folder(const std::string& folder);

}  // namespace heed::train
