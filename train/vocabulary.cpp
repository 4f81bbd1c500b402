#include "train/vocabulary.h"

#include <algorithm>
#include <numeric>

#include "tensor/error.h"

namespace heed::train {

namespace {

constexpr const char* kReservedNames[Vocabulary::kReserved] = {"<pad>", "<unk>"};

}  // namespace

Kept kept_words(size_t n, int64_t max_length, Truncate truncate) {
  const size_t room = std::min(n, static_cast<size_t>(std::max<int64_t>(max_length, 0)));
  if (room == n) return {n, 0};
  switch (truncate) {
    case Truncate::tail:
      return {0, room};
    case Truncate::head_tail:
      return {(room + 1) / 2, room / 2};
    default:
      return {room, 0};
  }
}

void WordCounts::add(std::string_view text) {
  scratch_.clear();
  tokenize(text, scratch_);
  total_ += static_cast<int64_t>(scratch_.size());
  for (size_t i = 0; i < scratch_.size(); i++) {
    if (scratch_[i].size() > kLongestWord) continue;
    const auto index = static_cast<size_t>(words_.add(scratch_[i]));
    if (index == counts_.size()) counts_.push_back(0);
    counts_[index]++;
  }
}

Vocabulary::Vocabulary() {
  for (const char* name : kReservedNames) table_.add(name);
}

Vocabulary::Vocabulary(const WordCounts& counts, int64_t max_size, int64_t min_count) : Vocabulary() {
  if (max_size < kReserved) {
    throw UsageError(text("vocabulary: max_size ", max_size, " leaves no room for ", kReserved, " reserved ids"));
  }
  std::vector<int32_t> order(static_cast<size_t>(counts.size()));
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](int32_t i) { return counts.count(i) < min_count; });
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return counts.count(a) != counts.count(b) ? counts.count(a) > counts.count(b) : counts.word(a) < counts.word(b);
  });
  for (const int32_t i : order) {
    if (size() == max_size) break;
    table_.add(counts.word(i));
  }
}

Vocabulary::Vocabulary(const std::vector<std::string>& words, const std::string& source) {
  for (size_t i = 0; i < kReserved; i++) {
    if (i < words.size() && words[i] == kReservedNames[i]) continue;
    throw FileError(text(source, ": word ", i, " of the vocabulary must be ", kReservedNames[i], ", found ",
                         i < words.size() ? '"' + words[i] + '"' : "the end of the list"));
  }
  for (size_t i = 0; i < words.size(); i++) {
    if (words[i].empty()) throw FileError(text(source, ": word ", i, " of the vocabulary is empty"));
    const auto id = static_cast<size_t>(table_.add(words[i]));
    if (id != i)
      throw FileError(text(source, ": words ", id, " and ", i, " of the vocabulary are both \"", words[i], '"'));
  }
}

std::string_view Vocabulary::word(int64_t id) const {
  if (id < 0 || id >= size()) throw IndexError(text("vocabulary: id ", id, " is outside [0, ", size(), ")"));
  return table_[static_cast<int32_t>(id)];
}

int32_t Vocabulary::id(std::string_view word) const {
  const int32_t found = table_.find(word);
  return found < 0 ? kUnknown : found;
}

std::vector<std::string> Vocabulary::words() const {
  std::vector<std::string> words;
  for (int32_t i = 0; i < table_.size(); i++) words.emplace_back(table_[i]);
  return words;
}

std::vector<int32_t> Vocabulary::encode(std::string_view text, int64_t max_length, Truncate truncate) const {
  Words words;
  std::vector<int32_t> ids;
  encode(text, max_length, truncate, words, ids);
  return ids;
}

void Vocabulary::encode(std::string_view text, int64_t max_length, Truncate truncate, Words& scratch,
                        std::vector<int32_t>& ids) const {
  if (max_length < 1) throw UsageError(heed::text("encode: max_length is ", max_length, ", must be at least 1"));
  scratch.clear();
  tokenize(text, scratch);
  const size_t n = scratch.size();
  const Kept kept = kept_words(n, max_length, truncate);
  for (size_t i = 0; i < kept.head; i++) ids.push_back(id(scratch[i]));
  for (size_t i = n - kept.tail; i < n; i++) ids.push_back(id(scratch[i]));
  if (n == 0) ids.push_back(kUnknown);
}

Vocabulary build_vocabulary(const std::vector<Example>& texts, int64_t max_size, int64_t min_count) {
  WordCounts counts;
  for (const Example& example : texts) counts.add(example.text);
  return Vocabulary(counts, max_size, min_count);
}

}  // namespace heed::train
