// The scheduler: runs the threads of a block, one at a time, on as few stacks as they need.
//
// Threads run one after the other as a loop on the caller's stack. One that has to wait (for the block at a barrier,
// for its warp in a shuffle) is parked where it stands, and another stack goes on: with a thread that may go on, or
// with the loop over those that have not started. A kernel without barriers thus never leaves the caller's stack.
//
// A failure goes back to the host's stack and is thrown there; the other stacks are abandoned.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/emulator/fiber.h"
#include "cuda/emulator/launch.h"
#include "cuda/emulator/sync.h"
#include "tensor/site.h"

namespace heed::emulated {

struct Thread {
  enum class State { unstarted, running, ready, at_barrier, in_warp_op, returned };

  uint3 index{};
  unsigned number = 0;  // x + y * blockDim.x + z * blockDim.x * blockDim.y
  State state = State::unstarted;
  Fiber* fiber = nullptr;  // where it is parked
  Site at;                 // and at which line

  // The warp operation that it waits in.
  WarpOp op{};
  unsigned mask = 0;
  uint64_t value = 0, result = 0;
  int argument = 0, width = 0;

  unsigned lane() const { return number % warpSize; }
  unsigned warp() const { return number / warpSize; }
};

// Of the block that runs now.
Thread& current_thread();
Thread* warp_of(const Thread& thread);        // its warp's lane 0
unsigned lanes_of(const Thread& thread);      // how many lanes its warp has
void park(Thread& thread);                    // returns when another thread has released it and its turn has come
void let_go_on(Thread* warp, unsigned mask);  // releases these lanes
std::string running_thread();                 // kernel, block and thread; "" outside kernels
[[noreturn]] void fail(const std::string& what, Site at);  // names kernel, block and the current thread
[[noreturn]] void fail_stuck();                            // nobody can go on: says who waits where
std::string mask_text(unsigned mask);                      // 0xffff
int parity_of_block();  // 0 or 1: neighbouring blocks use different objects to synchronise, for the race detector

// The life of a launch: begin_launch, run_block for each block, then end_launch, or abandon_launch after an exception.
void begin_launch(const Kernel& kernel);
void run_block(int64_t block_number);  // blockIdx, blockDim and gridDim are set
void end_launch();
void abandon_launch();

}  // namespace heed::emulated
