#include "train/batches.h"

#include <algorithm>
#include <numeric>

#include "tensor/error.h"
#include "tensor/random.h"

namespace heed::train {

namespace {

constexpr int64_t kBatchesInChunk = 50;

}  // namespace

void EncodedTexts::add(std::span<const int32_t> ids, int32_t label) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  offsets_.push_back(tokens());
  labels_.push_back(label);
}

std::span<const int32_t> EncodedTexts::ids(int64_t sample) const {
  return {ids_.data() + offsets_[static_cast<size_t>(sample)], static_cast<size_t>(length(sample))};
}

EncodedTexts encode(const std::vector<Example>& examples, const Vocabulary& vocabulary, int64_t max_length,
                    Truncate truncate) {
  EncodedTexts texts;
  Words scratch;
  std::vector<int32_t> ids;
  for (const Example& example : examples) {
    ids.clear();
    vocabulary.encode(example.text, max_length, truncate, scratch, ids);
    texts.add(ids, example.label);
  }
  return texts;
}

void gather(const EncodedTexts& texts, std::span<const int64_t> samples, Batch& batch) {
  batch.size = static_cast<int64_t>(samples.size());
  batch.length = 0;
  batch.samples.assign(samples.begin(), samples.end());
  batch.lengths.clear();
  batch.labels.clear();
  for (const int64_t sample : samples) {
    batch.lengths.push_back(static_cast<int32_t>(texts.length(sample)));
    batch.labels.push_back(texts.label(sample));
    batch.length = std::max(batch.length, texts.length(sample));
  }
  batch.ids.assign(static_cast<size_t>(batch.size * batch.length), Vocabulary::kPad);
  auto row = batch.ids.begin();
  for (const int64_t sample : samples) {
    std::ranges::copy(texts.ids(sample), row);
    row += batch.length;
  }
}

Batches::Batches(const EncodedTexts& texts, int64_t batch_size, Order order, uint64_t seed)
    : texts_(texts), batch_size_(batch_size), order_(order), seed_(seed) {
  if (batch_size < 1) throw UsageError(text("batches: the batch size is ", batch_size, ", must be at least 1"));
  batch_size_ = std::min(batch_size, std::max<int64_t>(texts.size(), 1));
  arrange();
}

bool Batches::next(Batch& batch) {
  if (position_ == per_epoch()) {
    epoch_++;
    position_ = 0;
    arrange();
    return false;
  }
  const int64_t start = starts_[static_cast<size_t>(position_++)];
  const int64_t count = std::min(batch_size_, texts_.size() - start);
  gather(texts_, {samples_.data() + start, static_cast<size_t>(count)}, batch);
  return true;
}

void Batches::seek(int64_t epoch, int64_t position) {
  if (epoch < 0 || position < 0 || position > per_epoch()) {
    throw UsageError(text("batches: cannot continue at batch ", position, " of epoch ", epoch, "; an epoch has ",
                          per_epoch(), " batches"));
  }
  epoch_ = epoch;
  position_ = position;
  arrange();
}

void Batches::arrange() {
  const int64_t n = texts_.size(), chunk = order_ == Order::shuffled ? kBatchesInChunk * batch_size_ : n;
  Random random(mix_key(seed_, static_cast<uint64_t>(epoch_)));
  samples_.resize(static_cast<size_t>(n));
  std::iota(samples_.begin(), samples_.end(), 0);
  if (order_ == Order::shuffled) random.shuffle(samples_);

  for (int64_t begin = 0; begin < n; begin += chunk) {
    const auto end = samples_.begin() + std::min(begin + chunk, n);
    std::stable_sort(samples_.begin() + begin, end,
                     [&](int64_t a, int64_t b) { return texts_.length(a) < texts_.length(b); });
  }
  starts_.clear();
  for (int64_t start = 0; start < n; start += batch_size_) starts_.push_back(start);
  if (order_ == Order::shuffled) random.shuffle(starts_);
}

}  // namespace heed::train
