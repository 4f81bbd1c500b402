// Memory of one device: live and peak bytes, and freed blocks kept for reuse.
//
// The operating system hands out zeroed pages at a fault each; for temporaries of megabytes that costs more than the
// work on them. So freed blocks are kept in lists by size class (powers of two in quarters: at most 25% unused) and
// handed out again.
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace heed {

class Device;

class Memory {
 public:
  Memory(Device& device, bool keeps_freed_blocks) : device_(device), keeps_(keeps_freed_blocks) {}

  void* take(size_t bytes);                       // contents undefined; null for 0 bytes
  void give(void* block, size_t bytes) noexcept;  // `bytes` as in take; called by destructors
  void trim();                                    // hands the kept blocks back to the system

  size_t live() const { return live_; }  // bytes in use by tensors
  size_t peak() const { return peak_; }
  size_t kept() const { return kept_; }  // bytes in freed blocks
  void reset_peak() { peak_ = live_; }

 private:
  Device& device_;
  bool keeps_;
  std::mutex mutex_;
  std::unordered_map<size_t, std::vector<void*>> free_;  // by size class
  size_t live_ = 0, peak_ = 0, kept_ = 0;
};

}  // namespace heed
