#include "cuda/staging.h"

#include <algorithm>
#include <cstring>

namespace heed::HEED_GPU {

namespace {

constexpr size_t kBufferBytes = size_t{4} << 20;  // travels in 0.2 ms over PCIe 4

char* pinned_buffer() {
  void* buffer = nullptr;
  gpu::check(cudaMallocHost(&buffer, kBufferBytes), "allocating pinned memory");
  return static_cast<char*>(buffer);
}

}  // namespace

void Staging::open(cudaStream_t stream) {
  stream_ = stream;
  for (int i = 0; i < 2; i++) {
    buffer_[i] = pinned_buffer();
    gpu::check(cudaEventCreateWithFlags(&free_[i], cudaEventDisableTiming), "creating an event");
  }
}

char* Staging::next_buffer() {
  turn_ = 1 - turn_;
  gpu::check(cudaEventSynchronize(free_[turn_]), "waiting for a copy");
  return buffer_[turn_];
}

void Staging::begin_recording() {
  recording_ = true;
  recorded_turn_ = recorded_bytes_ = 0;
}

// Room for `bytes` that nobody else has while the graph is recorded and runs.
char* Staging::recorded_buffer(size_t bytes) {
  if (recorded_turn_ == 0 || recorded_bytes_ + bytes > kBufferBytes) {
    if (recorded_turn_ == recorded_.size()) recorded_.push_back(pinned_buffer());
    recorded_turn_++, recorded_bytes_ = 0;
  }
  char* buffer = recorded_[recorded_turn_ - 1] + recorded_bytes_;
  recorded_bytes_ += (bytes + 15) / 16 * 16;
  return buffer;
}

void Staging::upload(void* device, const void* host, size_t bytes) {
  char* to = static_cast<char*>(device);
  const char* from = static_cast<const char*>(host);
  while (bytes > 0) {
    const size_t part = std::min(bytes, kBufferBytes);
    char* buffer = recording_ ? recorded_buffer(part) : next_buffer();
    std::memcpy(buffer, from, part);
    gpu::check(cudaMemcpyAsync(to, buffer, part, cudaMemcpyHostToDevice, stream_), "upload");
    if (!recording_) gpu::check(cudaEventRecord(free_[turn_], stream_), "upload");
    to += part, from += part, bytes -= part;
  }
}

void Staging::download(void* host, const void* device, size_t bytes) {
  char* to = static_cast<char*>(host);
  const char* from = static_cast<const char*>(device);
  while (bytes > 0) {
    const size_t part = std::min(bytes, kBufferBytes);
    char* buffer = next_buffer();
    gpu::check(cudaMemcpyAsync(buffer, from, part, cudaMemcpyDeviceToHost, stream_), "download");
    gpu::check(cudaStreamSynchronize(stream_), "download");
    std::memcpy(to, buffer, part);
    to += part, from += part, bytes -= part;
  }
}

}  // namespace heed::HEED_GPU
