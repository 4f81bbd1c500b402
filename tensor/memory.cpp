#include "tensor/memory.h"

#include <bit>
#include <new>

#include "tensor/device.h"

namespace heed {

namespace {

// The smallest class that holds `bytes`: 64, 80, 96, 112, 128, 160, ... (four steps to each doubling).
size_t size_class(size_t bytes) {
  if (bytes <= 64) return 64;
  const size_t step = std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) / step * step;
}

}  // namespace

void* Memory::take(size_t bytes) {
  if (bytes == 0) return nullptr;
  const size_t size = keeps_ ? size_class(bytes) : bytes;
  void* block = nullptr;
  {
    const std::lock_guard lock(mutex_);
    live_ += size;
    if (live_ > peak_) peak_ = live_;
    auto it = free_.find(size);
    if (it != free_.end() && !it->second.empty()) {
      block = it->second.back();
      it->second.pop_back();
      kept_ -= size;
    }
  }
  if (block) return block;
  try {
    return device_.allocate(size);
  } catch (...) {
    trim();  // the kept blocks may be what is missing
    try {
      return device_.allocate(size);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      live_ -= size;
      throw;
    }
  }
}

void Memory::give(void* block, size_t bytes) noexcept {
  if (!block) return;
  const size_t size = keeps_ ? size_class(bytes) : bytes;
  {
    const std::lock_guard lock(mutex_);
    live_ -= size;
    try {
      if (keeps_) {
        free_[size].push_back(block);
        kept_ += size;
        return;
      }
    } catch (const std::bad_alloc&) {}  // no room in the list: the system takes it
  }
  try {
    device_.release(block, size);
  } catch (...) {}  // a device that failed says so at its next call
}

void Memory::trim() {
  const std::lock_guard lock(mutex_);
  for (auto& [size, blocks] : free_) {
    for (void* block : blocks) device_.release(block, size);
    blocks.clear();
  }
  kept_ = 0;
}

}  // namespace heed
