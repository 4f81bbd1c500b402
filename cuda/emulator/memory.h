// Device memory: every allocation is a block of its own, so that AddressSanitizer and guard pages see its end.
// Outside kernels and copies it is closed to the host: poisoned under AddressSanitizer, unmapped with guard=1.
#pragma once
#include <cstddef>
#include <string>

namespace heed::emulated {

// Aligned to 256 bytes (with guard=1 to 16) and filled with NaN. Null when there is no more.
void* allocate_block(size_t bytes);
void free_block(void* block);

// Device memory may be touched while one of these lives.
class OpenMemory {
 public:
  OpenMemory();
  ~OpenMemory();
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
};

// DeviceError unless [begin, begin + bytes) lies within one allocation; `what` names the call and the operand.
void check_device_range(const void* begin, size_t bytes, const char* what);
// DeviceError if it touches an allocation.
void check_host_range(const void* begin, size_t bytes, const char* what);
// With guard=1: were the bytes between an allocation's end and its guard page written? DeviceError naming the kernel.
void check_slack(const char* kernel);

// Where p lies, if it is on a page that guard=1 closes: "byte 4000, beyond the end of an allocation of 4000 bytes".
// Otherwise "".
std::string describe_guarded(const void* p);
void report_guard_faults();  // from now on such an access prints that, before the program ends (guard.cpp)

size_t allocated_bytes();
bool is_allocation(const void* block);

}  // namespace heed::emulated
