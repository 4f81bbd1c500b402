#include "train/readers.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <unordered_map>

#include "tensor/error.h"
#include "tensor/random.h"
#include "train/labelled_texts.h"
#include "train/reviews.h"
#include "train/utf8.h"

namespace heed::train {

namespace fs = std::filesystem;

namespace {

constexpr double kTestShare = 0.1;

// Where the splits are; "" for one that is not there.
struct Parts {
  std::string train, validation, test;
  bool folders = false;  // of class folders, not tables
};

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

std::string* part_named(Parts& parts, const std::string& name) {
  if (name == "train") return &parts.train;
  if (name == "test") return &parts.test;
  const bool validation = name == "validation" || name == "valid" || name == "val" || name == "dev";
  return validation ? &parts.validation : nullptr;
}

// "sentiment-train.tsv" -> "train"
std::string part_of_file_name(const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot != std::string::npos && name.substr(dot) != ".tsv" && name.substr(dot) != ".txt") return "";
  const std::string stem = name.substr(0, dot);
  const size_t separator = stem.find_last_of("-_");
  return separator == std::string::npos ? stem : stem.substr(separator + 1);
}

Parts find_parts(const std::string& path) {
  Parts parts;
  if (!is_folder(path)) {
    parts.train = path;
    return parts;
  }
  const std::vector<std::string> names = list_folder(path);
  parts.folders = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return (name == "train" || name == "test") && is_folder(fs::path(path) / name);
  });
  for (const std::string& name : names) {
    const std::string file = (fs::path(path) / name).string();
    if (is_folder(file) != parts.folders) continue;
    std::string* part = part_named(parts, parts.folders ? name : part_of_file_name(name));
    if (!part) continue;
    if (!part->empty()) throw FileError(text("both ", *part, " and ", file, " could be meant; please keep one"));
    *part = file;
  }
  return parts;
}

std::optional<int64_t> whole_number(const std::string& s) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (error != std::errc() || end != s.data() + s.size()) return {};
  return value;
}

std::vector<std::string> classes_of(const LabelledTexts& texts) {
  std::vector<std::string> classes = texts.labels;
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  if (classes.size() < 2) {
    throw FileError(text(texts.path, ": only one class, ", in_quotes(classes[0]), "; a classifier needs at least two"));
  }
  if (std::all_of(classes.begin(), classes.end(), [](const std::string& s) { return whole_number(s).has_value(); })) {
    std::stable_sort(classes.begin(), classes.end(),
                     [](const std::string& a, const std::string& b) { return *whole_number(a) < *whole_number(b); });
  }
  return classes;
}

// "neg", "pos"
std::string list_of(const std::vector<std::string>& classes) {
  constexpr size_t kShown = 8;
  std::string list;
  for (size_t i = 0; i < std::min(classes.size(), kShown); i++) list += (i ? ", " : "") + in_quotes(classes[i]);
  return classes.size() > kShown ? text(list, ", ... ", classes.size(), " in all") : list;
}

std::vector<Example> with_classes(LabelledTexts texts, const std::vector<std::string>& classes) {
  std::unordered_map<std::string, int32_t> index;
  for (size_t i = 0; i < classes.size(); i++) index[classes[i]] = static_cast<int32_t>(i);
  std::vector<Example> examples;
  examples.reserve(texts.texts.size());
  for (size_t i = 0; i < texts.texts.size(); i++) {
    const auto found = index.find(texts.labels[i]);
    if (found == index.end()) {
      throw FileError(text(texts.place(i), ": label ", in_quotes(texts.labels[i]), " is not one of the classes ",
                           list_of(classes)));
    }
    examples.push_back({std::move(texts.texts[i]), found->second});
  }
  return examples;
}

// Moves a share of the examples out of `from`: of every class one stretch of neighbours, since neighbours are often about
// the same thing (in aclImdb, reviews of one film), and what was drawn should be as new to the model as other data will be.
// A class keeps at least one example.
std::vector<Example> draw(std::vector<Example>& from, double share, uint64_t key) {
  std::map<int32_t, std::vector<size_t>> members;
  for (size_t i = 0; i < from.size(); i++) members[from[i].label].push_back(i);
  Random random(key);
  std::vector<bool> taken(from.size());
  double owed = 0;  // carried from class to class, so that the share is right over many small ones
  for (const auto& [label, places] : members) {
    const uint64_t start = random.below(places.size());
    if (places.size() < 2) continue;
    owed += share * static_cast<double>(places.size());
    const size_t count = std::min(static_cast<size_t>(owed + 1e-9), places.size() - 1);
    owed -= static_cast<double>(count);
    for (size_t i = 0; i < count; i++) taken[places[(start + i) % places.size()]] = true;
  }
  std::vector<Example> drawn, left;
  for (size_t i = 0; i < from.size(); i++) (taken[i] ? drawn : left).push_back(std::move(from[i]));
  from = std::move(left);
  return drawn;
}

}  // namespace

TextDataset read_text_dataset(const std::string& path, double validation_share, uint64_t seed,
                              std::vector<std::string>* warnings) {
  if (!(validation_share >= 0 && validation_share <= 0.5)) {
    throw UsageError(text("the validation share is ", validation_share, ", must be from 0 to 0.5"));
  }
  const auto warn = [&](const std::string& sentence) {
    if (warnings) warnings->push_back(sentence);
  };
  const Parts parts = find_parts(path);
  if (parts.train.empty()) {
    throw FileError(text("no training texts in ", path, "; expected train/CLASS/*.txt or train.tsv there"));
  }
  Columns columns;
  LabelledTexts train = parts.folders ? read_class_folders(parts.train) : read_table(parts.train, {}, &columns);
  const auto read = [&](const std::string& part) {
    return parts.folders ? read_class_folders(part) : read_table(part, columns);
  };

  TextDataset data;
  data.name = path;
  data.classes = classes_of(train);
  const size_t texts = train.texts.size();
  if (data.classes.size() > texts / 2 && texts > 10) {
    warn(text(path, ": ", data.classes.size(), " classes among ", texts, " texts; are these the labels?"));
  }
  data.train = with_classes(std::move(train), data.classes);
  if (!parts.test.empty()) {
    data.test = with_classes(read(parts.test), data.classes);
  } else {
    data.test = draw(data.train, kTestShare, mix_key(seed, 1));
    warn(text(path, " has no test split; ", data.test.size(), " of ", texts, " texts were drawn as one"));
  }
  if (!parts.validation.empty()) {
    data.validation = with_classes(read(parts.validation), data.classes);
  } else {
    data.validation = draw(data.train, validation_share, mix_key(seed, 2));
    if (data.validation.empty() && validation_share > 0) {
      warn(text(path, ": ", texts, " texts are too few to draw a validation split"));
    }
  }
  return data;
}

std::vector<Example> read_examples(const std::string& path, const std::vector<std::string>& classes) {
  if (path == "reviews") {
    const TextDataset reviews = built_in_reviews(1);
    LabelledTexts texts{path, {}, {}, {}};
    for (const Example& e : reviews.test) {
      texts.texts.push_back(e.text);
      texts.labels.push_back(reviews.classes[static_cast<size_t>(e.label)]);
    }
    return with_classes(std::move(texts), classes);
  }
  if (!is_folder(path)) return with_classes(read_table(path), classes);
  const Parts parts = find_parts(path);
  if (parts.test.empty() && !parts.train.empty()) throw FileError(text("no test split in ", path));
  if (parts.test.empty()) return with_classes(read_class_folders(path), classes);
  return with_classes(parts.folders ? read_class_folders(parts.test) : read_table(parts.test), classes);
}

}  // namespace heed::train
