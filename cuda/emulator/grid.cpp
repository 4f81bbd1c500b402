#include <mutex>

#include "cuda/emulator/block.h"
#include "cuda/emulator/memory.h"
#include "cuda/emulator/settings.h"
#include "tensor/random.h"

namespace heed::emulated {

namespace {

std::mutex one_launch_at_a_time;

// In which order the blocks run: as their threads do.
std::vector<int64_t> order_of_blocks(int64_t count) {
  const Settings& now = settings();
  std::vector<int64_t> order(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; i++) order[static_cast<size_t>(i)] = now.order == Order::reverse ? count - 1 - i : i;
  if (now.order == Order::random) Random(now.seed).shuffle(order);
  return order;
}

}  // namespace

void run_grid(const Kernel& kernel) {
  const std::lock_guard lock(one_launch_at_a_time);
  const OpenMemory open;
  const races::Unseen unseen;
  gridDim = kernel.grid;
  blockDim = kernel.block;
  prepare_shared_memory(kernel);
  begin_launch(kernel);
  try {
    int64_t done = 0;
    for (int64_t i : order_of_blocks(int64_t{kernel.grid.x} * kernel.grid.y * kernel.grid.z)) {
      const auto b = static_cast<uint64_t>(i);
      blockIdx = {static_cast<unsigned>(b % kernel.grid.x), static_cast<unsigned>(b / kernel.grid.x % kernel.grid.y),
                  static_cast<unsigned>(b / kernel.grid.x / kernel.grid.y)};
      fill_shared_memory();
      run_block(done++);
    }
    end_launch();
  } catch (...) {
    abandon_launch();
    free_shared_memory();
    throw;
  }
  free_shared_memory();
  check_slack(kernel.name);
}

}  // namespace heed::emulated
