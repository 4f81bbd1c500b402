// Launch shapes that most kernels share.
#pragma once
#include <algorithm>

#include "cuda/gpu.h"

namespace heed::HEED_GPU {

constexpr int kWarp = 32;
constexpr int kBlock = 256;  // threads; a multiprocessor holds eight such blocks

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// One thread for each item: `count` of them, in blocks of kBlock, or of whole warps if there are fewer.
__device__ inline int64_t this_item() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }

template <class... Params, class... Args>
void launch_items(const char* name, void (*kernel)(Params...), int64_t count, cudaStream_t stream,
                  const Args&... args) {
  if (count == 0) return;
  const int64_t block = std::min<int64_t>(kBlock, ceil_div(count, kWarp) * kWarp);
  gpu::launch(name, kernel, dim3(static_cast<unsigned>(ceil_div(count, block))), dim3(static_cast<unsigned>(block)), 0,
              stream, args...);
}

}  // namespace heed::HEED_GPU
