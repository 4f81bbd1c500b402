// Copies between ordinary host memory and the device by way of pinned memory: only from there can the GPU read by
// itself. Two buffers take turns, so that one is filled while the other travels.
#pragma once
#include <cstddef>

#include "cuda/gpu.h"

namespace heed::HEED_GPU {

class Staging {
 public:
  void open(cudaStream_t stream);
  void upload(void* device, const void* host, size_t bytes);    // the host's memory may change at once
  void download(void* host, const void* device, size_t bytes);  // waits for all work asked for so far

 private:
  char* next_buffer();  // waits until it is free

  cudaStream_t stream_ = nullptr;
  char* buffer_[2] = {};
  cudaEvent_t free_[2] = {};
  int turn_ = 0;
};

}  // namespace heed::HEED_GPU
