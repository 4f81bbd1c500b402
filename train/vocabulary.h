// From words to token ids and back.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "train/dataset.h"
#include "train/tokenizer.h"
#include "train/word_table.h"

namespace heed::train {

constexpr int64_t kLongestText = 1'000'000;  // tokens that a text may keep

enum class Truncate {
  head,      // keep the first max_length tokens
  tail,      // keep the last
  head_tail  // keep both ends and drop the middle: in a review the verdict often stands in the last sentence
};

// Of n words, those that are kept: the first `head` and the last `tail`.
struct Kept {
  size_t head, tail;
};
Kept kept_words(size_t n, int64_t max_length, Truncate truncate);

// How often each word occurs. Words longer than kLongestWord bytes (addresses, lines of dashes) are not counted.
class WordCounts {
 public:
  static constexpr size_t kLongestWord = 100;

  void add(std::string_view text);
  int32_t size() const { return words_.size(); }  // different words
  std::string_view word(int32_t i) const { return words_[i]; }
  int64_t count(int32_t i) const { return counts_[static_cast<size_t>(i)]; }
  int64_t total() const { return total_; }  // words read

 private:
  WordTable words_;
  std::vector<int64_t> counts_;
  int64_t total_ = 0;
  Words scratch_;
};

// Id i stands for word(i): two reserved names, then words by descending frequency, equal ones in byte order. So the
// same texts give the same ids, in whatever order they are read.
class Vocabulary {
 public:
  static constexpr int32_t kPad = 0, kUnknown = 1;  // <pad>, <unk>
  static constexpr int32_t kReserved = 2;

  Vocabulary();  // the reserved names alone

  // At most max_size ids, the reserved ones among them; words that occur less than min_count times are left out.
  Vocabulary(const WordCounts& counts, int64_t max_size, int64_t min_count);

  // From what words() returned. `source` names the file in the FileError that a list gets which starts without the
  // reserved names, has an empty word, or has a word twice.
  Vocabulary(const std::vector<std::string>& words, const std::string& source);

  int64_t size() const { return table_.size(); }
  std::string_view word(int64_t id) const;  // IndexError outside [0, size())
  int32_t id(std::string_view word) const;  // as the tokenizer wrote it; kUnknown if it is not here
  std::vector<std::string> words() const;   // all of them, to be saved

  // The ids of a text, at least one and at most max_length: a text without words is one <unk>.
  std::vector<int32_t> encode(std::string_view text, int64_t max_length, Truncate truncate = Truncate::head) const;

  // The same appended to `ids`; `scratch` is a buffer to be used again.
  void encode(std::string_view text, int64_t max_length, Truncate truncate, Words& scratch,
              std::vector<int32_t>& ids) const;

 private:
  WordTable table_;
};

// The vocabulary of a training split.
Vocabulary build_vocabulary(const std::vector<Example>& texts, int64_t max_size = 20000, int64_t min_count = 2);

}  // namespace heed::train
