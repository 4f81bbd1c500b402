// Small kernels with one fault planted in each: faults NAME runs one and prints "right values" or "wrong values".
// tests/emulator_faults.sh builds this with and without sanitizers and checks who finds which fault.
// A line marked `races: NAME` is the one that a race detector must name.
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cuda/gpu.h"

namespace heed::HEED_GPU {

namespace {

enum class Fault {
  none,
  missing_barrier,
  skipped_barrier,
  different_barriers,
  bad_mask,
  short_warp,
  shared_overrun,
  unwritten_shared,
  missing_second_barrier,
  wrong_index,
  out_of_bounds,
  missing_atomic,
  misaligned_float4,
  host_reads,
  leading_dimension,
};

// ---- a sum over the block, as in softmax: every thread gets it

constexpr int kThreads = 128, kWarps = kThreads / 32;

template <Fault fault>
__device__ float warp_sum(float x) {
  const unsigned mask = fault == Fault::bad_mask ? 0x0000ffff : 0xffffffff;
  for (int delta = 16; delta > 0; delta /= 2) x += __shfl_xor_sync(mask, x, delta);
  return x;
}

template <Fault fault>
__device__ float block_sum(float x) {
  __shared__ float of_warp[kWarps];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  x = warp_sum<fault>(x);
  if (lane == 0 && (fault != Fault::unwritten_shared || warp != 2)) {
    of_warp[fault == Fault::shared_overrun && warp == kWarps - 1 ? kWarps : warp] = x;
  }
  if constexpr (fault == Fault::skipped_barrier) {
    if (thread < kThreads / 2) __syncthreads();
  } else if constexpr (fault == Fault::different_barriers) {
    if (thread < kThreads / 2) {
      __syncthreads();
    } else {
      __syncthreads();
    }
  } else if constexpr (fault != Fault::missing_barrier) {
    __syncthreads();
  }
  float sum = 0;
  for (int w = 0; w < kWarps; w++) sum += of_warp[w];  // races: missing_barrier
  return sum;
}

template <Fault fault>
__global__ void normalize(float* y, const float* x) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  y[i] = x[i] / block_sum<fault>(x[i]);
}

// ---- c = a b by tiles in shared memory; (n, n), n a multiple of the tile

constexpr int kTile = 8;

template <Fault fault>
__global__ void matmul(float* c, const float* a, const float* b, int n) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * kTile + ty, column = static_cast<int>(blockIdx.x) * kTile + tx;
  float sum = 0;
  for (int first = 0; first < n; first += kTile) {
    tile_a[ty][tx] = a[row * n + first + tx];  // races: missing_second_barrier
    tile_b[ty][tx] = b[(first + ty) * n + column];
    __syncthreads();
    for (int k = 0; k < kTile; k++) {
      sum += tile_a[ty][k] * (fault == Fault::wrong_index ? tile_b[tx][k] : tile_b[k][tx]);
    }
    if constexpr (fault != Fault::missing_second_barrier) __syncthreads();
  }
  c[row * n + column] = sum;
}

// ---- elementwise

template <Fault fault>
__global__ void twice(float* y, const float* x, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (fault == Fault::out_of_bounds ? i <= n : i < n) y[i] = 2 * x[i];  // out of bounds: out_of_bounds
}

// y += the number of blocks
template <Fault fault>
__global__ void count_blocks(int* y) {
  if (threadIdx.x != 0) return;
  if constexpr (fault == Fault::missing_atomic) {
    *y += 1;  // races: missing_atomic
  } else {
    atomicAdd(y, 1);
  }
}

__global__ void copy_by_fours(float4* y, const float4* x, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = x[i];  // misaligned: misaligned_float4
}

// ---- hosts

template <class T>
struct Buffer {
  explicit Buffer(size_t count) : Buffer(std::vector<T>(count)) {}
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

std::vector<float> numbers(int count) {
  std::vector<float> out;
  for (int i = 0; i < count; i++) out.push_back(static_cast<float>(i * 7 % 11 + 1));
  return out;
}

bool close(float a, float b) { return std::fabs(a - b) <= 1e-5f * std::fabs(b); }  // false for NaN

template <Fault fault>
bool run_normalize() {
  const int blocks = 3, threads = fault == Fault::short_warp ? kThreads - 16 : kThreads;
  const std::vector<float> x = numbers(blocks * threads);
  const Buffer<float> device_x(x), y(x.size());
  gpu::launch("normalize", normalize<fault>, blocks, threads, 0, nullptr, y.data, device_x.data);
  const std::vector<float> values = y.values();
  bool right = true;
  for (size_t first = 0; first < x.size(); first += static_cast<size_t>(threads)) {
    float sum = 0;
    for (size_t i = first; i < first + static_cast<size_t>(threads); i++) sum += x[i];
    for (size_t i = first; i < first + static_cast<size_t>(threads); i++) right = right && close(values[i], x[i] / sum);
  }
  return right;
}

template <Fault fault>
bool run_matmul() {
  const int n = 3 * kTile;
  const std::vector<float> a = numbers(n * n), b = numbers(n * n + 5);
  const Buffer<float> device_a(a), device_b(b), c(a.size());
  gpu::launch("matmul", matmul<fault>, dim3(n / kTile, n / kTile), dim3(kTile, kTile), 0, nullptr, c.data,
              device_a.data, device_b.data, n);
  const std::vector<float> values = c.values();
  bool right = true;
  for (int i = 0; i < n * n; i++) {
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[static_cast<size_t>(i / n * n + k)] * b[static_cast<size_t>(k * n + i % n)];
    right = right && close(values[static_cast<size_t>(i)], sum);
  }
  return right;
}

template <Fault fault>
bool run_twice() {
  const int n = 1000;
  const std::vector<float> x = numbers(n);
  const Buffer<float> device_x(x), y(x.size());
  gpu::launch("twice", twice<fault>, 8, kThreads, 0, nullptr, y.data, device_x.data, n);
  const std::vector<float> values = y.values();
  bool right = true;
  for (size_t i = 0; i < x.size(); i++) right = right && close(values[i], 2 * x[i]);
  return right;
}

template <Fault fault>
bool run_count() {
  const Buffer<int> y(1);
  gpu::launch("count_blocks", count_blocks<fault>, 8, 32, 0, nullptr, y.data);
  return y.values()[0] == 8;
}

template <Fault fault>
bool run_copy() {
  const int skip = fault == Fault::misaligned_float4 ? 1 : 4, n = 64;
  const std::vector<float> x = numbers(n + 4);
  const Buffer<float> device_x(x), y(static_cast<size_t>(n));
  gpu::launch("copy_by_fours", copy_by_fours, 1, n / 4, 0, nullptr, reinterpret_cast<float4*>(y.data),
              reinterpret_cast<const float4*>(device_x.data + skip), n / 4);
  return y.values()[5] == x[static_cast<size_t>(5 + skip)];
}

template <Fault fault>
bool run_host() {
  const Buffer<float> x(numbers(16));
  const volatile float* begin = x.data;
  return fault == Fault::host_reads ? *begin == 1 : x.values()[0] == 1;  // the host reads: host_reads
}

template <Fault fault>
bool run_product() {  // (4, 3) times (3, 4), row-major: as cuBLAS sees it, the transposes in the other order
  const int m = 4, k = 3, n = 4, ldb = fault == Fault::leading_dimension ? n + 1 : n;
  const Buffer<float> a(numbers(m * k)), b(numbers(k * n)), c(static_cast<size_t>(m * n));
  const float one = 1, zero = 0;
  cublasHandle_t handle = nullptr;
  gpu::check(cublasCreate(&handle), "cublasCreate");
  const auto status = cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b.data, ldb, 0, a.data,
                                                k, 0, &zero, c.data, n, 0, 1);
  gpu::check(status, "cublasSgemmStridedBatched");
  cublasDestroy(handle);
  const std::vector<float> x = a.values(), y = b.values();
  return close(c.values()[0], x[0] * y[0] + x[1] * y[4] + x[2] * y[8]);
}

template <Fault fault>
bool run_right_ones() {
  return run_normalize<fault>() && run_matmul<fault>() && run_twice<fault>() && run_count<fault>() &&
         run_copy<fault>() && run_host<fault>() && run_product<fault>();
}

const std::map<std::string, std::function<bool()>> kFaults = {
    {"none", run_right_ones<Fault::none>},
    {"missing_barrier", run_normalize<Fault::missing_barrier>},
    {"skipped_barrier", run_normalize<Fault::skipped_barrier>},
    {"different_barriers", run_normalize<Fault::different_barriers>},
    {"bad_mask", run_normalize<Fault::bad_mask>},
    {"short_warp", run_normalize<Fault::short_warp>},
    {"shared_overrun", run_normalize<Fault::shared_overrun>},
    {"unwritten_shared", run_normalize<Fault::unwritten_shared>},
    {"missing_second_barrier", run_matmul<Fault::missing_second_barrier>},
    {"wrong_index", run_matmul<Fault::wrong_index>},
    {"out_of_bounds", run_twice<Fault::out_of_bounds>},
    {"missing_atomic", run_count<Fault::missing_atomic>},
    {"misaligned_float4", run_copy<Fault::misaligned_float4>},
    {"host_reads", run_host<Fault::host_reads>},
    {"leading_dimension", run_product<Fault::leading_dimension>},
};

}  // namespace

}  // namespace heed::HEED_GPU

int main(int argc, char** argv) {
  try {
    const auto& run = heed::HEED_GPU::kFaults.at(argc == 2 ? argv[1] : "");
    std::puts(run() ? "right values" : "wrong values");
  } catch (const std::exception& error) { std::printf("exception: %s\n", error.what()); }
}
