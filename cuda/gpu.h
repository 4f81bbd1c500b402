// The one header of a kernel file: CUDA under nvcc, heed's emulator (emulator/) under g++.
//
// A kernel file puts its kernels into an unnamed namespace within `namespace heed::HEED_GPU`, which is heed::cuda under
// nvcc and heed::emulated under g++: a program may hold both builds of one file. Host code starts kernels through
// gpu::launch alone.
#pragma once
#if defined(__CUDACC__)
#define HEED_GPU cuda
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#else
#define HEED_GPU emulated
#include "cuda/emulator/emulator.h"
#endif

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/error.h"

namespace heed::HEED_GPU::gpu {

// The call `what` must have succeeded: check(cudaMalloc(&block, bytes), "cudaMalloc").
inline void check(cudaError_t error, const std::string& what, Site at = Site::here()) {
  if (error == cudaSuccess) return;
  DeviceError failed(text(what, ": ", cudaGetErrorString(error)));
  failed.add_place(at, "");
  throw failed;
}
inline void check(cublasStatus_t status, const std::string& what, Site at = Site::here()) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  DeviceError failed(text(what, ": ", cublasGetStatusString(status)));
  failed.add_place(at, "");
  throw failed;
}

// What was started while a LaunchRecord lives.
struct Launch {
  std::string name;
  dim3 grid, block;
  size_t shared_bytes;
};

class LaunchRecord {
 public:
  LaunchRecord() : outer_(current) { current = this; }
  ~LaunchRecord() { current = outer_; }
  LaunchRecord(const LaunchRecord&) = delete;
  LaunchRecord& operator=(const LaunchRecord&) = delete;

  std::vector<Launch> launches;
  static inline LaunchRecord* current = nullptr;  // the innermost that lives

 private:
  LaunchRecord* outer_;
};

constexpr size_t kSharedBytes = 48 << 10;      // of a block, without asking
constexpr size_t kMostSharedBytes = 99 << 10;  // the most that every GPU from sm_86 on gives when asked
constexpr unsigned kMostThreads = 1024;        // of a block

// DeviceError if no GPU could run it. False if the grid is empty: nothing is to be done.
inline bool check_launch(const char* name, dim3 grid, dim3 block, size_t shared_bytes) {
  const auto refuse = [&](const std::string& why) { throw DeviceError(text(name, ": cannot be launched: ", why)); };
  const auto tuple = [](dim3 d) { return text("(", d.x, ", ", d.y, ", ", d.z, ")"); };
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > kMostThreads || block.x > kMostThreads || block.y > kMostThreads || block.z > 64) {
    refuse(text("a block of ", tuple(block), " threads; it may have 1 to 1024, at most 64 along z"));
  }
  if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) {
    refuse(text("a grid of ", tuple(grid), " blocks; there may be 2^31 - 1 along x and 65535 along y and z"));
  }
  if (shared_bytes > kMostSharedBytes) {
    refuse(text(shared_bytes, " bytes of shared memory; a block has at most ", kMostSharedBytes));
  }
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return false;
  if (LaunchRecord::current) LaunchRecord::current->launches.push_back({name, grid, block, shared_bytes});
  return true;
}

// Starts `kernel` with grid blocks of block threads, each block with shared_bytes of dynamic shared memory.
//   gpu::launch("softmax", softmax<T>, rows, 256, 0, stream, y, x, columns);
template <class... Params, class... Args>
void launch(const char* name, void (*kernel)(Params...), dim3 grid, dim3 block, size_t shared_bytes,
            cudaStream_t stream, const Args&... args) {
  static_assert(sizeof...(Params) == sizeof...(Args), "launch: the kernel takes another number of arguments");
  if (!check_launch(name, grid, block, shared_bytes)) return;
#if defined(__CUDACC__)
  if (shared_bytes > kSharedBytes) {
    check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared_bytes)),
          name);
  }
  kernel<<<grid, block, shared_bytes, stream>>>(static_cast<Params>(args)...);
  check(cudaGetLastError(), name);
#else
  run_or_record(stream, name, grid, block, shared_bytes, [=] { kernel(static_cast<Params>(args)...); });
#endif
}

// The block's dynamic shared memory, aligned to 16 bytes.
template <class T>
__device__ T* dynamic_shared() {
#if defined(__CUDACC__)
  extern __shared__ double2 heed_dynamic_shared[];
  return reinterpret_cast<T*>(heed_dynamic_shared);
#else
  return static_cast<T*>(dynamic_shared_memory());
#endif
}

}  // namespace heed::HEED_GPU::gpu

namespace heed {
namespace gpu = HEED_GPU::gpu;  // heed::gpu::launch
}
