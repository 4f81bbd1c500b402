// The emulator's own promises, with kernels written here. What it finds in wrong kernels: emulator_faults.sh.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "cuda/gpu.h"

namespace heed::HEED_GPU {

namespace {

// An array in device memory.
template <class T>
struct Buffer {
  explicit Buffer(size_t count, T value = T()) : Buffer(std::vector<T>(count, value)) {}
  explicit Buffer(const std::vector<T>& values) : count(values.size()) {
    gpu::check(cudaMalloc(&data, count * sizeof(T)), "cudaMalloc");
    gpu::check(cudaMemcpy(data, values.data(), count * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  ~Buffer() { cudaFree(data); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::vector<T> values() const {
    std::vector<T> out(count);
    gpu::check(cudaMemcpy(out.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return out;
  }

  size_t count;
  T* data = nullptr;
};

// Settings while it lives.
struct With {
  explicit With(const std::string& words) : before(settings()) { settings() = parse_settings(words); }
  ~With() { settings() = before; }
  Settings before;
};

const char* const kOrders[] = {"order=forward", "order=reverse", "order=random,seed=1", "order=random,seed=7"};

template <class Fn>
std::string error_of(Fn fn) {
  try {
    fn();
  } catch (const DeviceError& error) { return error.what(); }
  return "no error";
}

__global__ void number(int* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = i;
}

__global__ void number_3d(int* y) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  y[block * blockDim.x * blockDim.y * blockDim.z + thread] += 1;
}

// y[block] = sum of the block's part of x, by halves.
template <class T>
__global__ void block_sum(T* y, const T* x) {
  __shared__ T part[256];
  const unsigned t = threadIdx.x;
  part[t] = x[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = part[0];
}

template <class T>
__device__ T warp_sum(T x) {
  for (int delta = warpSize / 2; delta > 0; delta /= 2) x += __shfl_xor_sync(0xffffffff, x, delta);
  return x;
}

template <class T>
__global__ void warp_sums(T* y, const T* x) {
  y[threadIdx.x] = warp_sum(x[threadIdx.x]);
}

}  // namespace

TEST_CASE("emulator: every thread of every block runs once") {
  for (const char* order : kOrders) {
    const With with(order);
    Buffer<int> y(1000, -1);
    gpu::launch("number", number, 4, 256, 0, nullptr, y.data, 1000);
    const std::vector<int> values = y.values();
    for (int i = 0; i < 1000; i++) CHECK(values[static_cast<size_t>(i)] == i);

    Buffer<int> z(2 * 3 * 4 * 5 * 6 * 7, 0);
    gpu::launch("number_3d", number_3d, dim3(2, 3, 4), dim3(5, 6, 7), 0, nullptr, z.data);
    for (int value : z.values()) CHECK(value == 1);
  }
}

TEST_CASE_TEMPLATE("emulator: a barrier waits for the block", T, float, double) {
  for (const char* order : kOrders) {
    const With with(order);
    std::vector<T> x(3 * 256);
    for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<T>(i % 17);
    Buffer<T> device_x(x), y(3);
    gpu::launch("block_sum", block_sum<T>, 3, 256, 0, nullptr, y.data, device_x.data);
    for (size_t b = 0; b < 3; b++) {
      T expected = 0;
      for (size_t i = 0; i < 256; i++) expected += x[b * 256 + i];
      CHECK(y.values()[b] == expected);
    }
  }
}

TEST_CASE_TEMPLATE("emulator: shuffles", T, float, double, int) {
  for (const char* order : kOrders) {
    const With with(order);
    std::vector<T> x(96);
    for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<T>(i);
    Buffer<T> device_x(x), y(96);
    gpu::launch("warp_sums", warp_sums<T>, 1, 96, 0, nullptr, y.data, device_x.data);
    for (size_t i = 0; i < 96; i++) CHECK(y.values()[i] == static_cast<T>(496 + 1024 * (i / 32)));
  }
}

}  // namespace heed::HEED_GPU
