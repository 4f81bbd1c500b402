// Teams: the threads that share one row of a reduction, a softmax, a norm. A warp for short rows, a whole block for
// long ones.
#pragma once
#include "cuda/gpu.h"
#include "cuda/launch.h"

namespace heed::HEED_GPU {

constexpr unsigned kAllLanes = 0xffffffffu;

template <class T>
__device__ T shuffle_xor(T value, int distance) {
  return __shfl_xor_sync(kAllLanes, value, distance);
}

// Combines the values of a team's threads; every thread gets the result. combine must be commutative and associative
// but for rounding; the order is always the same.
//
// Within a warp, thread i takes the value of thread i ^ 16, then i ^ 8, ...: after five steps each has all 32. The
// totals of a block's warps meet in its dynamic shared memory, which launch_teams gives room for one of each.
template <int kThreads, class T, class Combine>
__device__ T team_reduce(T value, Combine combine) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) value = combine(value, shuffle_xor(value, distance));
  if constexpr (kThreads > kWarp) {
    T* shared = gpu::dynamic_shared<T>();
    if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = shared[0];
    for (int warp = 1; warp < kThreads / kWarp; warp++) value = combine(value, shared[warp]);
    __syncthreads();  // shared memory may be written again
  }
  return value;
}

// The number of this thread's team, and this thread's place in it.
template <int kThreads>
__device__ int64_t this_team() {
  return this_item() / kThreads;
}
template <int kThreads>
__device__ int this_member() {
  return static_cast<int>(threadIdx.x) % kThreads;
}

constexpr int kTeamBlock = 128;  // threads of a block of several teams, each a warp

template <int kThreads, class... Params, class... Args>
void launch_teams(const char* name, void (*kernel)(Params...), int64_t teams, size_t bytes_a_warp, cudaStream_t stream,
                  const Args&... args) {
  if (teams == 0) return;
  const int64_t block = kThreads > kWarp ? kThreads : std::min<int64_t>(kTeamBlock, teams * kWarp);
  const size_t shared = kThreads > kWarp ? kThreads / kWarp * bytes_a_warp : 0;
  gpu::launch(name, kernel, dim3(static_cast<unsigned>(ceil_div(teams * kThreads, block))),
              dim3(static_cast<unsigned>(block)), shared, stream, args...);
}

}  // namespace heed::HEED_GPU
