// A table of different words, numbered 0, 1, 2, ... in the order in which they were added.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed::train {

// Hashing with open addressing: a word's slot is the first free one at or after hash % slots. Half of the slots stay
// free, so that a search soon ends. A slot keeps the hash as well: words are compared only when their hashes agree.
class WordTable {
 public:
  WordTable();

  int32_t find(std::string_view word) const { return slots_[slot_of(word, hash_of(word))].index; }  // -1: not there
  int32_t add(std::string_view word);  // its number, whether it is new or not
  std::string_view operator[](int32_t index) const;
  int32_t size() const { return static_cast<int32_t>(ends_.size()); }

 private:
  struct Slot {
    uint32_t hash = 0;
    int32_t index = -1;  // -1: free
  };
  static uint32_t hash_of(std::string_view word);
  size_t slot_of(std::string_view word, uint32_t hash) const;
  void grow();

  std::vector<Slot> slots_;   // a power of two
  std::string bytes_;         // the words, one after another
  std::vector<size_t> ends_;  // word i is bytes_[ends_[i-1] .. ends_[i])
};

}  // namespace heed::train
