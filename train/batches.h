// Token ids in memory, and batches of texts of similar length.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "train/dataset.h"
#include "train/vocabulary.h"

namespace heed::train {

// Texts as token ids, one after another in one array.
class EncodedTexts {
 public:
  void add(std::span<const int32_t> ids, int32_t label);
  int64_t size() const { return static_cast<int64_t>(labels_.size()); }
  int64_t tokens() const { return static_cast<int64_t>(ids_.size()); }
  std::span<const int32_t> ids(int64_t sample) const;
  int64_t length(int64_t sample) const { return offsets_[sample + 1] - offsets_[sample]; }
  int32_t label(int64_t sample) const { return labels_[static_cast<size_t>(sample)]; }

 private:
  std::vector<int32_t> ids_, labels_;
  std::vector<int64_t> offsets_{0};  // text i is ids_[offsets_[i] .. offsets_[i+1])
};

EncodedTexts encode(const std::vector<Example>& examples, const Vocabulary& vocabulary, int64_t max_length,
                    Truncate truncate = Truncate::head);

// B texts padded to the length T of the longest.
struct Batch {
  std::vector<int32_t> ids;      // (B, T), row after row, <pad> behind each text
  std::vector<int32_t> lengths;  // (B) tokens that are not padding
  std::vector<int32_t> labels;   // (B)
  std::vector<int64_t> samples;  // (B) which texts these are
  int64_t size = 0;              // B
  int64_t length = 0;            // T
};

// Fills `batch` with these texts; its memory is used again.
void gather(const EncodedTexts& texts, std::span<const int64_t> samples, Batch& batch);

// Cuts texts into batches, every text once an epoch. Padding is work for nothing, so the texts of a batch have similar
// lengths; yet batches should differ from epoch to epoch. Therefore `shuffled` shuffles the texts, sorts them by length
// within chunks of 50 batches, cuts, and shuffles the batches. `by_length` only sorts and cuts (for evaluation).
//
//   Batches batches(texts, 32, Batches::Order::shuffled, seed);
//   for (int64_t epoch = 0; epoch < epochs; epoch++)
//     for (Batch batch; batches.next(batch);) train_on(batch);
//
// The texts must outlive it.
class Batches {
 public:
  enum class Order { shuffled, by_length };

  Batches(const EncodedTexts& texts, int64_t batch_size, Order order, uint64_t seed = 0);

  // The next batch of this epoch. False when the epoch is over; the next call then begins the following one.
  bool next(Batch& batch);

  int64_t per_epoch() const { return static_cast<int64_t>(starts_.size()); }  // batches
  int64_t epoch() const { return epoch_; }
  int64_t position() const { return position_; }  // batches of this epoch handed out already

  // Continues at a place that epoch() and position() named, with the very same batches.
  void seek(int64_t epoch, int64_t position);

 private:
  void arrange();  // samples_ and starts_ for this epoch: a function of seed and epoch alone

  const EncodedTexts& texts_;
  int64_t batch_size_;
  Order order_;
  uint64_t seed_;
  int64_t epoch_ = 0, position_ = 0;
  std::vector<int64_t> samples_;  // in the order of this epoch
  std::vector<int64_t> starts_;   // batch i is the batch_size_ samples from starts_[i] on; the last one may be smaller
};

}  // namespace heed::train
