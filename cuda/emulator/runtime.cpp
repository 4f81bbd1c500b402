#include "cuda/emulator/runtime.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>

#include "cuda/emulator/graph.h"
#include "cuda/emulator/memory.h"
#include "tensor/error.h"

namespace heed::emulated {

struct Event {
  std::chrono::steady_clock::time_point time;
  bool recorded = false;  // in a graph: not to be waited for
};

namespace {

size_t machine_memory() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

bool on_device(cudaMemcpyKind kind, bool destination) {
  return kind == cudaMemcpyDeviceToDevice || kind == (destination ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost);
}

// Host memory that the device reads by itself, by first byte.
std::map<const char*, size_t>& pinned() {
  static auto& blocks = *new std::map<const char*, size_t>;  // never destroyed, like the device
  return blocks;
}

bool is_pinned(const void* begin, size_t bytes) {
  const auto next = pinned().upper_bound(static_cast<const char*>(begin));
  if (next == pinned().begin()) return false;
  const auto& [block, size] = *std::prev(next);
  return static_cast<const char*>(begin) + bytes <= block + size;
}

void check_range(bool device, const void* begin, size_t bytes, const char* what) {
  device ? check_device_range(begin, bytes, what) : check_host_range(begin, bytes, what);
}

}  // namespace

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorIllegalState:
      return "the operation cannot be performed in the present state";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorCapturedEvent:
      return "operation not permitted on an event last recorded in a capturing stream";
    case cudaErrorGraphExecUpdateFailure:
      return "the graph update was not performed because it included changes which violated constraints";
  }
  return "unknown error";
}

// Errors are thrown or returned where they occur; none waits for a later call.
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }

cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return cudaErrorInvalidDevice;
  *properties = {"heed's emulator", machine_memory(), 16, 8, 0, warpSize, 1024, 48 << 10, 99 << 10};
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return *version = 0, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 0, cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = machine_memory();
  *free = *total - std::min(*total, allocated_bytes());
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** block, size_t bytes) {
  *block = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (bytes <= machine_memory()) *block = allocate_block(bytes);
  return *block ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void* block) {
  if (!block) return cudaSuccess;
  if (!is_allocation(block)) throw DeviceError(text("cudaFree: ", block, " is not the begin of an allocation"));
  free_block(block);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** block, size_t bytes) {
  *block = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (posix_memalign(block, 64, bytes) != 0) return cudaErrorMemoryAllocation;
  pinned()[static_cast<char*>(*block)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* block) {
  check_host_range(block, 1, "cudaFreeHost: the block");
  pinned().erase(static_cast<char*>(block));
  std::free(block);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  const void* host = kind == cudaMemcpyHostToDevice ? from : kind == cudaMemcpyDeviceToHost ? to : nullptr;
  if (recording(stream) && host && !is_pinned(host, bytes)) {
    throw DeviceError(text("cudaMemcpyAsync: host memory at ", host, " is copied in a graph, which runs later, but is not pinned"));
  }
  submit(stream, GraphNode::Kind::copy, [=] {
    if (kind != cudaMemcpyDefault) {
      check_range(on_device(kind, true), to, bytes, "cudaMemcpy: the destination");
      check_range(on_device(kind, false), from, bytes, "cudaMemcpy: the source");
    }
    const OpenMemory open;
    std::memmove(to, from, bytes);
  });
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}

cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  submit(stream, GraphNode::Kind::set, [=] {
    check_device_range(to, bytes, "cudaMemset: the destination");
    const OpenMemory open;
    std::memset(to, byte, bytes);
  });
  return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int byte, size_t bytes) { return cudaMemsetAsync(to, byte, bytes, nullptr); }

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return *stream = new Stream, cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return delete stream, cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (!recording(stream)) return cudaSuccess;
  stream->invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }

cudaError_t cudaEventCreate(cudaEvent_t* event) { return *event = new Event, cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->recorded = recording(stream);
  event->time = std::chrono::steady_clock::now();
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return event->recorded ? cudaErrorCapturedEvent : cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
  return cudaSuccess;
}

}  // namespace heed::emulated
