// From text to words.
//
// A word is a run of letters and digits, lower-cased where it is ASCII. What else there is:
//   apostrophes   stay inside a word (don't, it's, n't); ' ` U+2019 and their look-alikes are all written '
//   . , ; : ! ?   are words of their own, for they tell clauses apart; a run of one mark ("!!!", "...") counts once
//   7/10, 8.5     a slash or point between digits stays, so that a rating is one word
//   <br />        separates words and is dropped, and so are <br> and <br/>
//   the rest      (spaces, controls, quotes, dashes, brackets, NUL, bytes that are not UTF-8) separates words
//
// Any bytes may come in. Words are valid UTF-8 without control characters, so they can be printed and stored as they
// are.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heed::train {

// A list of words in one buffer, to be cleared and filled again without an allocation for each word.
class Words {
 public:
  size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return {bytes_.data() + begin, ends_[i] - begin};
  }
  void clear() { bytes_.clear(), ends_.clear(); }

 private:
  friend void tokenize(std::string_view text, Words& words);
  std::string bytes_;         // the words, one after another
  std::vector<size_t> ends_;  // word i is bytes_[ends_[i-1] .. ends_[i])
};

// Appends the words of `text` to `words`. One pass; never fails.
void tokenize(std::string_view text, Words& words);

}  // namespace heed::train
