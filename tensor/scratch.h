// Working memory of one kernel call, from the device's own memory: reused from call to call, and counted in its peak.
#pragma once
#include "tensor/memory.h"

namespace heed {

class Scratch {
 public:
  Scratch(Memory& memory, size_t bytes) : memory_(memory), bytes_(bytes), data_(memory.take(bytes)) {}
  ~Scratch() { memory_.give(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }  // aligned to 64 bytes; contents undefined

 private:
  Memory& memory_;
  size_t bytes_;
  void* data_;
};

}  // namespace heed
