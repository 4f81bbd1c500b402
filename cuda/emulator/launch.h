// Starting a kernel on the emulator.
#pragma once
#include <cstddef>

#include "cuda/emulator/graph.h"
#include "cuda/emulator/types.h"

namespace heed::emulated {

struct Kernel {
  const char* name;
  dim3 grid, block;
  size_t shared_bytes;
  void (*call)(void* arguments);  // runs it as the current thread
  void* arguments;
};

// Runs all blocks, one after the other. DeviceError naming kernel, block, thread and line if one fails. Kernels that
// are started by several host threads wait for each other.
void run_grid(const Kernel& kernel);

// The same, or later if the stream records a graph. `call` is not wrapped, so that a backtrace stays short.
template <class Call>
void run_or_record(cudaStream_t stream, const char* name, dim3 grid, dim3 block, size_t shared_bytes, Call call) {
  const auto run = [=]() mutable {
    run_grid({name, grid, block, shared_bytes, [](void* it) { (*static_cast<Call*>(it))(); }, &call});
  };
  submit(stream, GraphNode::Kind::kernel, run);
}

// Shared memory (shared.cpp).
void prepare_shared_memory(const Kernel& kernel);  // before the first block
void fill_shared_memory();                         // before every block: all NaN
void free_shared_memory();

}  // namespace heed::emulated
