#include "cuda/emulator/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "cuda/emulator/settings.h"
#include "tensor/error.h"

extern "C" {  // null without AddressSanitizer
__attribute__((weak)) void __asan_poison_memory_region(const volatile void* memory, size_t bytes);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void* memory, size_t bytes);
}

namespace heed::emulated {

namespace {

constexpr size_t kAlignment = 256, kGuardedAlignment = 16;
constexpr int kNaN = 0xff;

struct Allocation {
  size_t bytes;
  char* pages = nullptr;  // with a guard page at their end; null for a plain heap block
  size_t page_bytes = 0;
};

std::recursive_mutex mutex;
auto& allocations =
    *new std::map<const char*, Allocation>;  // by first byte; never destroyed, as tensors may outlive it
size_t live;
int open_count;

size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

void open(const char* begin, const Allocation& a) {
  if (a.pages) mprotect(a.pages, a.page_bytes, PROT_READ | PROT_WRITE);
  if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(begin, a.bytes);
}

void close(const char* begin, const Allocation& a) {
  if (__asan_poison_memory_region) __asan_poison_memory_region(begin, a.bytes);
  if (a.pages) mprotect(a.pages, a.page_bytes, PROT_NONE);
}

// [pages ... | slack < 16 bytes][guard page]: the allocation ends right before the guard page, but for alignment.
char* map_with_guard(Allocation& a) {
  report_guard_faults();
  a.page_bytes = (a.bytes + page() - 1) / page() * page();
  void* memory = mmap(nullptr, a.page_bytes + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  a.pages = static_cast<char*>(memory);
  mprotect(a.pages + a.page_bytes, page(), PROT_NONE);
  std::memset(a.pages, kNaN, a.page_bytes);
  return a.pages + (a.page_bytes - a.bytes) / kGuardedAlignment * kGuardedAlignment;
}

char* take_from_heap(Allocation& a) {
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, a.bytes) != 0) return nullptr;
  std::memset(memory, kNaN, a.bytes);
  return static_cast<char*>(memory);
}

// The last allocation that begins at or before p.
std::map<const char*, Allocation>::const_iterator before(const void* p) {
  auto it = allocations.upper_bound(static_cast<const char*>(p));
  return it == allocations.begin() ? allocations.end() : std::prev(it);
}

bool within(const void* p, std::map<const char*, Allocation>::const_iterator it) {
  return it != allocations.end() && static_cast<const char*>(p) < it->first + it->second.bytes;
}

}  // namespace

void* allocate_block(size_t bytes) {
  const std::lock_guard lock(mutex);
  Allocation a{.bytes = bytes};
  char* begin = settings().guard ? map_with_guard(a) : take_from_heap(a);
  if (!begin) return nullptr;
  allocations.emplace(begin, a);
  live += bytes;
  if (open_count == 0) close(begin, a);
  return begin;
}

void free_block(void* block) {
  const std::lock_guard lock(mutex);
  const auto it = allocations.find(static_cast<char*>(block));
  const Allocation a = it->second;
  open(it->first, a);
  allocations.erase(it);
  live -= a.bytes;
  if (a.pages) {
    munmap(a.pages, a.page_bytes + page());
  } else {
    std::free(block);
  }
}

OpenMemory::OpenMemory() {
  mutex.lock();
  if (open_count++ == 0) {
    for (const auto& [begin, a] : allocations) open(begin, a);
  }
}

OpenMemory::~OpenMemory() {
  if (--open_count == 0) {
    for (const auto& [begin, a] : allocations) close(begin, a);
  }
  mutex.unlock();
}

void check_device_range(const void* begin, size_t bytes, const char* what) {
  const std::lock_guard lock(mutex);
  if (bytes == 0) return;
  const auto it = before(begin);
  if (!within(begin, it)) throw DeviceError(text(what, " is at ", begin, ", which is not in device memory"));
  const size_t left = static_cast<size_t>(it->first + it->second.bytes - static_cast<const char*>(begin));
  if (bytes > left) {
    throw DeviceError(text(what, " takes ", bytes, " bytes, but its allocation of ", it->second.bytes,
                           " bytes has only ", left, " from there"));
  }
}

void check_host_range(const void* begin, size_t bytes, const char* what) {
  const std::lock_guard lock(mutex);
  if (bytes == 0) return;
  const char* last = static_cast<const char*>(begin) + bytes - 1;
  if (within(begin, before(begin)) || within(last, before(last))) {
    throw DeviceError(text(what, " is at ", begin, ", which is device memory; host memory was announced"));
  }
}

void check_slack(const char* kernel) {
  const std::lock_guard lock(mutex);
  for (const auto& [begin, a] : allocations) {
    if (!a.pages) continue;
    const char* end = begin + a.bytes;
    const auto written = [](char c) { return c != static_cast<char>(kNaN); };
    if (std::any_of(end, static_cast<const char*>(a.pages + a.page_bytes), written)) {
      throw DeviceError(text(kernel, ": wrote beyond the end of an allocation of ", a.bytes, " bytes at ",
                             static_cast<const void*>(begin)));
    }
  }
}

std::string describe_guarded(const void* p) {
  const std::lock_guard lock(mutex);
  const char* byte = static_cast<const char*>(p);
  for (const auto& [begin, a] : allocations) {
    if (byte < a.pages || byte >= a.pages + a.page_bytes + page()) continue;
    return text("byte ", byte - begin,
                byte < begin + a.bytes ? ", closed to the host, of an" : ", beyond the end of an", " allocation of ",
                a.bytes, " bytes");
  }
  return "";
}

size_t allocated_bytes() { return live; }

bool is_allocation(const void* block) {
  const std::lock_guard lock(mutex);
  return allocations.count(static_cast<const char*>(block)) != 0;
}

}  // namespace heed::emulated
