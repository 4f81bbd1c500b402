// The memory of the fast CPU device: the program's own, in blocks aligned for the widest vector registers.
#include "tensor/cpu.h"

#include <cstring>

#include "tensor/host_memory.h"

namespace heed {

Cpu::Cpu() : Device("cpu", keeps_freed_blocks()) {}

void* Cpu::allocate(size_t bytes) { return allocate_host(*this, bytes); }
void Cpu::release(void* block, size_t) { release_host(block); }
void Cpu::upload(void* to, const void* host, size_t bytes) { std::memcpy(to, host, bytes); }
void Cpu::download(void* host, const void* from, size_t bytes) { std::memcpy(host, from, bytes); }

}  // namespace heed
