#include "train/word_table.h"

#include <functional>

namespace heed::train {

WordTable::WordTable() : slots_(1024) {}

int32_t WordTable::add(std::string_view word) {
  const uint32_t hash = hash_of(word);
  const size_t slot = slot_of(word, hash);
  if (slots_[slot].index >= 0) return slots_[slot].index;

  const int32_t index = size();
  slots_[slot] = {hash, index};
  bytes_ += word;
  ends_.push_back(bytes_.size());
  if (2 * ends_.size() > slots_.size()) grow();
  return index;
}

std::string_view WordTable::operator[](int32_t index) const {
  const size_t i = static_cast<size_t>(index), begin = i == 0 ? 0 : ends_[i - 1];
  return {bytes_.data() + begin, ends_[i] - begin};
}

uint32_t WordTable::hash_of(std::string_view word) {
  return static_cast<uint32_t>(std::hash<std::string_view>{}(word));
}

size_t WordTable::slot_of(std::string_view word, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  while (slots_[slot].index >= 0 && (slots_[slot].hash != hash || (*this)[slots_[slot].index] != word)) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

void WordTable::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const Slot& moved : old) {
    if (moved.index < 0) continue;
    size_t slot = moved.hash & mask;
    while (slots_[slot].index >= 0) slot = (slot + 1) & mask;
    slots_[slot] = moved;
  }
}

}  // namespace heed::train
