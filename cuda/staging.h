// Copies between ordinary host memory and the device by way of pinned memory: only from there can the GPU read by
// itself. Two buffers take turns, so that one is filled while the other travels.
#pragma once
#include <cstddef>
#include <vector>

#include "cuda/gpu.h"

namespace heed::HEED_GPU {

class Staging {
 public:
  // Between them uploads are recorded, not done: each has pinned memory of its own, which must not change until the graph was
  // launched and is done.
  void begin_recording();
  void end_recording() { recording_ = false; }

  void open(cudaStream_t stream);
  void upload(void* device, const void* host, size_t bytes);    // the host's memory may change at once
  void download(void* host, const void* device, size_t bytes);  // waits for all work asked for so far

 private:
  char* next_buffer();  // waits until it is free
  char* recorded_buffer(size_t bytes);

  cudaStream_t stream_ = nullptr;
  char* buffer_[2] = {};
  cudaEvent_t free_[2] = {};
  int turn_ = 0;

  bool recording_ = false;
  std::vector<char*> recorded_;  // buffers for uploads while a graph is recorded
  size_t recorded_turn_ = 0;     // of recorded_, the first free one
  size_t recorded_bytes_ = 0;    // taken from the one before
};

}  // namespace heed::HEED_GPU
