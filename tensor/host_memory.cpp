#include "tensor/host_memory.h"

#include <stdlib.h>
#include <unistd.h>

#include "tensor/device.h"
#include "tensor/error.h"
#include "tensor/shape.h"

namespace heed {

namespace {

constexpr size_t kAlignment = 64;  // a cache line, and the widest vector register

size_t physical_memory() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void* allocate_host(Device& device, size_t bytes) {
  void* block = nullptr;
  // Linux promises more than it has and kills the program that takes it at its word, so a block that can never fit is
  // refused here.
  if (bytes > physical_memory() || posix_memalign(&block, kAlignment, bytes) != 0) {
    throw DeviceError(text(device.name(), ": no memory for a block of ", bytes,
                           " bytes; live tensors on this device take ", device.memory().live(),
                           " bytes, the new one included"));
  }
  return block;
}

void release_host(void* block) { free(block); }

void require_host_memory(const char* op, size_t bytes, const Shape& shape) {
  void* block = bytes <= physical_memory() ? malloc(bytes) : nullptr;  // no page is touched
  if (!block && bytes > 0) throw DeviceError(text(op, ": out of memory: ", bytes, " bytes for shape ", shape));
  free(block);
}

std::vector<double> host_numbers(const char* op, const Shape& shape) {
  const size_t count = static_cast<size_t>(checked_numel(op, shape));
  require_host_memory(op, count * sizeof(double), shape);
  return std::vector<double>(count);
}

#ifndef __has_feature  // clang's way to ask; gcc defines __SANITIZE_ADDRESS__
#define __has_feature(x) 0
#endif

bool keeps_freed_blocks() {
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
  return false;
#else
  return true;
#endif
}

}  // namespace heed
