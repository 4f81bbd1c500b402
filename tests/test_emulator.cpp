// The emulator's own promises, with kernels written here. What it finds in wrong kernels: emulator_faults.sh.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
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
  explicit With(const std::string& words) : before(settings()) {
    settings() = parse_settings(words);
    settings().unordered = before.unordered;  // as `make races` says
  }
  ~With() { settings() = before; }
  Settings before;
};

const char* const kOrders[] = {"order=forward", "order=reverse", "order=random,seed=1", "order=random,seed=7"};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

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

// What every lane gets of `lane` by each of the shuffles.
__global__ void all_shuffles(int* y) {
  const int lane = static_cast<int>(threadIdx.x);
  int* mine = y + 6 * lane;
  mine[0] = __shfl_sync(0xffffffff, lane, 5);
  mine[1] = __shfl_sync(0xffffffff, lane, 5, 8);
  mine[2] = __shfl_up_sync(0xffffffff, lane, 3);
  mine[3] = __shfl_down_sync(0xffffffff, lane, 3, 16);
  mine[4] = static_cast<int>(__ballot_sync(0xffffffff, lane % 2));
  mine[5] = __any_sync(0xffffffff, lane == 7) + 2 * __all_sync(0xffffffff, lane == 7);
}

// The two halves of a warp go different ways.
__global__ void half_warps(int* y) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane < 16) {
    y[lane] = __shfl_xor_sync(0x0000ffff, lane, 1);
  } else {
    __syncwarp(0xffff0000);
    y[lane] = __shfl_xor_sync(0xffff0000, lane, 2);
  }
}

template <class T>
__global__ void read_unwritten_shared(T* y) {
  __shared__ T fixed[40];
  T* dynamic = gpu::dynamic_shared<T>();
  y[2 * blockIdx.x] = fixed[threadIdx.x + 39];
  y[2 * blockIdx.x + 1] = dynamic[threadIdx.x];
  fixed[threadIdx.x + 39] = dynamic[threadIdx.x] = T(1);
}

__global__ void reverse_in_shared(int* y, int n) {
  int* part = gpu::dynamic_shared<int>();
  const int t = static_cast<int>(threadIdx.x);
  part[t] = y[t];
  __syncthreads();
  y[t] = part[n - 1 - t];
}

__global__ void note_order(int* y, int* count) { y[atomicAdd(count, 1)] = static_cast<int>(threadIdx.x); }

__global__ void atomics(int* y, float* z) {
  atomicAdd(&y[0], 2);
  atomicMax(&y[1], static_cast<int>(threadIdx.x * 7 % 64));
  if (atomicCAS(&y[2], 0, static_cast<int>(threadIdx.x) + 1) == 0) y[3]++;
  atomicAdd(z, 0.5f);
}

__global__ void some_return_early(int n) {
  if (static_cast<int>(threadIdx.x) >= n) return;
  __syncthreads();
}

__global__ void two_barriers() {
  if (threadIdx.x < 48) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void shuffle_with(unsigned mask, int source, int width) { __shfl_sync(mask, 1, source, width); }

__global__ void two_shuffles() {
  if (threadIdx.x % 2) {
    __shfl_xor_sync(0xffffffff, 1.0f, 1);
  } else {
    __syncwarp();
  }
}

__global__ void throw_in_thread(unsigned t) {
  __syncthreads();
  if (threadIdx.x == t) throw ShapeError("thrown by a thread");
  __syncthreads();
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

TEST_CASE("emulator: every shuffle gives the lane that CUDA's manual says") {
  for (const char* order : kOrders) {
    const With with(order);
    Buffer<int> y(32 * 6);
    gpu::launch("all_shuffles", all_shuffles, 1, 32, 0, nullptr, y.data);
    const std::vector<int> values = y.values();
    for (int lane = 0; lane < 32; lane++) {
      const int* mine = &values[static_cast<size_t>(6 * lane)];
      CHECK(mine[0] == 5);
      CHECK(mine[1] == lane / 8 * 8 + 5);
      CHECK(mine[2] == (lane < 3 ? lane : lane - 3));
      CHECK(mine[3] == (lane % 16 > 12 ? lane : lane + 3));
      CHECK(static_cast<unsigned>(mine[4]) == 0xaaaaaaaa);
      CHECK(mine[5] == 1);
    }
    Buffer<int> z(32);
    gpu::launch("half_warps", half_warps, 1, 32, 0, nullptr, z.data);
    for (int lane = 0; lane < 32; lane++) CHECK(z.values()[static_cast<size_t>(lane)] == (lane ^ (lane < 16 ? 1 : 2)));
  }
}

TEST_CASE_TEMPLATE("emulator: shared memory is NaN before every block", T, float, double) {
  Buffer<T> y(2 * 3);
  gpu::launch("read_unwritten_shared", read_unwritten_shared<T>, 3, 1, sizeof(T), nullptr, y.data);
  for (T value : y.values()) CHECK(std::isnan(value));
}

TEST_CASE("emulator: dynamic shared memory") {
  Buffer<int> y(std::vector<int>{1, 2, 3, 4, 5});
  gpu::launch("reverse_in_shared", reverse_in_shared, 1, 5, 5 * sizeof(int), nullptr, y.data, 5);
  CHECK(y.values() == std::vector<int>{5, 4, 3, 2, 1});
  const std::string error = error_of([&] { gpu::launch("bare", reverse_in_shared, 1, 5, 0, nullptr, y.data, 5); });
  CHECK(contains(error, " of block (0, 0, 0): dynamic_shared: the kernel was launched without"));
}

TEST_CASE("emulator: the order of threads") {
  const auto order_by = [](const char* words) {
    const With with(words);
    Buffer<int> y(64), count(1, 0);
    gpu::launch("note_order", note_order, 1, 64, 0, nullptr, y.data, count.data);
    return y.values();
  };
  std::vector<int> expected(64);
  for (int i = 0; i < 64; i++) expected[static_cast<size_t>(i)] = i;
  CHECK(order_by("order=forward") == expected);
  std::reverse(expected.begin(), expected.end());
  CHECK(order_by("order=reverse") == expected);
  CHECK(order_by("order=random,seed=3") == order_by("order=random,seed=3"));
  CHECK(order_by("order=random,seed=3") != order_by("order=random,seed=4"));
  std::vector<int> random = order_by("order=random,seed=3");
  std::sort(random.rbegin(), random.rend());
  CHECK(random == expected);
}

TEST_CASE("emulator: atomics") {
  for (const char* order : kOrders) {
    const With with(order);
    Buffer<int> y(4, 0);
    Buffer<float> z(1, 0);
    gpu::launch("atomics", atomics, 2, 64, 0, nullptr, y.data, z.data);
    CHECK(y.values()[0] == 256);
    CHECK(y.values()[1] == 63);
    CHECK(y.values()[3] == 1);
    CHECK(z.values()[0] == 64);
  }
}

TEST_CASE("emulator: threads that miss a barrier are named") {
  for (const char* order : kOrders) {
    const With with(order);
    const std::string error = error_of([] { gpu::launch("early", some_return_early, 2, 64, 0, nullptr, 40); });
    CHECK(contains(error, "early: block ("));
    CHECK(contains(error, "cannot go on: 40 threads wait in __syncthreads at tests/test_emulator.cpp:"));
    CHECK(contains(error, "(the first is (0, 0, 0)), 24 of 64 have returned"));
    CHECK(contains(error, "\n  at tests/test_emulator.cpp:"));
  }
  gpu::launch("fine", some_return_early, 2, 64, 0, nullptr, 64);  // a failure leaves nothing behind
}

TEST_CASE("emulator: different barriers are named") {
  for (const char* order : kOrders) {
    const With with(order);
    const std::string error = error_of([] { gpu::launch("two", two_barriers, 1, 64, 0, nullptr); });
    CHECK(contains(error, "two: block (0, 0, 0) cannot go on: 48 threads wait in __syncthreads at "));
    CHECK(contains(error, "(the first is (0, 0, 0)), 16 threads wait in __syncthreads at "));
    CHECK(contains(error, "(the first is (48, 0, 0)), 0 of 64 have returned"));
  }
}

TEST_CASE("emulator: wrong masks are named") {
  const With with("order=forward");
  const auto error_with = [](unsigned threads, unsigned mask, int source, int width) {
    return error_of([=] { gpu::launch("masks", shuffle_with, 1, threads, 0, nullptr, mask, source, width); });
  };
  CHECK(error_with(32, 0xffffffff, 3, 32) == "no error");
  CHECK(error_with(16, 0x0000ffff, 3, 16) == "no error");
  CHECK(contains(
      error_with(32, 0x0000ffff, 0, 32),
      "masks: thread (16, 0, 0) of block (0, 0, 0): __shfl_sync: lane 16 is not in its own mask 0xffff\n  at tests/"));
  CHECK(contains(error_with(16, 0xffffffff, 0, 32), "names lanes that do not exist; this warp has 16"));
  CHECK(contains(error_with(80, 0xffffffff, 0, 32), "thread (64, 0, 0) of block (0, 0, 0): __shfl_sync: mask"));
  CHECK(contains(error_with(16, 0x0000ffff, 20, 32), "lane 0 reads lane 20, which is not in the mask 0xffff"));
  CHECK(contains(error_with(32, 0xffffffff, 0, 12), "width is 12"));
  const std::string error = error_of([] { gpu::launch("two", two_shuffles, 1, 32, 0, nullptr); });
  CHECK(contains(error, "__shfl_xor_sync with mask 0xffffffff, but lane 0 of the mask is in __syncwarp at tests/"));
}

TEST_CASE("emulator: an exception of any thread arrives at the host") {
  for (const char* order : kOrders) {
    const With with(order);
    for (unsigned t : {0u, 5u, 63u}) {
      CHECK_THROWS_WITH_AS(gpu::launch("throws", throw_in_thread, 1, 64, 0, nullptr, t), "thrown by a thread",
                           ShapeError);
    }
  }
}

TEST_CASE("emulator: launch limits") {
  const auto error_with = [](dim3 grid, dim3 block, size_t shared) {
    return error_of([=] { gpu::launch("number", number, grid, block, shared, nullptr, nullptr, 0); });
  };
  CHECK(error_with(1, 1024, 99 << 10) == "no error");
  CHECK(error_with(1, dim3(4, 4, 64), 0) == "no error");
  CHECK(contains(error_with(1, 1025, 0), "number: cannot be launched: a block of (1025, 1, 1) threads"));
  CHECK(contains(error_with(1, 0, 0), "a block of (0, 1, 1) threads"));
  CHECK(contains(error_with(1, dim3(1, 1, 65), 0), "a block of (1, 1, 65) threads"));
  CHECK(contains(error_with(1, dim3(1u << 31, 1u << 31, 4), 0), "a block of"));  // whose product is 0 in 64 bits
  CHECK(contains(error_with(dim3(1, 65536), 1, 0), "a grid of (1, 65536, 1) blocks"));
  CHECK(contains(error_with(1u << 31, 1, 0), "a grid of"));
  CHECK(contains(error_with(1, 1, (99 << 10) + 1), "101377 bytes of shared memory"));
}

TEST_CASE("emulator: launches are recorded while asked for, empty grids not launched") {
  Buffer<int> y(600);
  gpu::LaunchRecord record;
  gpu::launch("number", number, dim3(3, 1, 1), 200, 16, nullptr, y.data, 600);
  gpu::launch("nothing", number, dim3(3, 0, 1), 200, 0, nullptr, y.data, 600);
  REQUIRE(record.launches.size() == 1);
  CHECK(record.launches[0].name == "number");
  CHECK(record.launches[0].grid.x == 3);
  CHECK(record.launches[0].block.x == 200);
  CHECK(record.launches[0].shared_bytes == 16);
}

TEST_CASE("emulator: settings") {
  const Settings s = parse_settings("order=random,seed=12,guard=1,unordered=1");
  CHECK(s.order == Order::random);
  CHECK(s.seed == 12);
  CHECK(s.guard);
  CHECK(s.unordered);
  CHECK(parse_settings("").order == Order::forward);
  for (const char* wrong :
       {"ordr=forward", "order=sideways", "seed=", "seed=1x", "guard=yes", "guard", "order=reverse,,"}) {
    CHECK(contains(error_of([=] { parse_settings(wrong); }), "HEED_EMULATOR: cannot understand \""));
  }
}

TEST_CASE("emulator: memory") {
  for (const char* guard : {"guard=0", "guard=1"}) {
    const With with(guard);
    size_t before = 0, after = 0, total = 0;
    cudaMemGetInfo(&before, &total);
    Buffer<int> y(std::vector<int>{1, 2, 3}), z(3);
    cudaMemGetInfo(&after, &total);
    CHECK(before - after == 24);
    cudaMemcpy(z.data, y.data, 12, cudaMemcpyDeviceToDevice);
    CHECK(z.values() == std::vector<int>{1, 2, 3});
    cudaMemset(z.data + 1, 0, 4);
    CHECK(z.values() == std::vector<int>{1, 0, 3});

    int host[4] = {};
    CHECK(contains(error_of([&] { cudaMemcpy(host, y.data, 16, cudaMemcpyDeviceToHost); }),
                   "cudaMemcpy: the source takes 16 bytes, but its allocation of 12 bytes has only 12 from there"));
    CHECK(contains(error_of([&] { cudaMemcpy(y.data, host, 12, cudaMemcpyDeviceToHost); }), "announced"));
    CHECK(contains(error_of([&] { cudaMemcpy(host, y.data, 12, cudaMemcpyHostToDevice); }), "not in device memory"));
    CHECK(contains(error_of([&] { cudaMemset(y.data + 3, 0, 1); }), "which is not in device memory"));
    CHECK(contains(error_of([&] { cudaFree(y.data + 1); }), "not the begin of an allocation"));
  }
  void* block = nullptr;
  const std::string error = error_of([&] { gpu::check(cudaMalloc(&block, size_t{1} << 60), "cudaMalloc"); });
  CHECK(contains(error, "cudaMalloc: out of memory\n  at tests/test_emulator.cpp:"));
  CHECK(block == nullptr);
}

TEST_CASE("emulator: fresh memory is NaN") {
  float* x = nullptr;
  float host = 0;
  cudaMalloc(&x, sizeof host);
  cudaMemcpy(&host, x, sizeof host, cudaMemcpyDeviceToHost);
  CHECK(std::isnan(host));
  cudaFree(x);
}

TEST_CASE("emulator: streams, events and the device") {
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  cudaStreamCreate(&stream), cudaEventCreate(&begin), cudaEventCreate(&end);
  cudaEventRecord(begin, stream), cudaEventRecord(end, stream);
  float milliseconds = -1;
  cudaEventElapsedTime(&milliseconds, begin, end);
  CHECK(milliseconds >= 0);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  cudaEventDestroy(begin), cudaEventDestroy(end), cudaStreamDestroy(stream);
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  CHECK(properties.warpSize == 32);
  CHECK(cudaGetDeviceProperties(&properties, 1) == cudaErrorInvalidDevice);
}

namespace {

// op(a) op(b) by the definition, for column-major matrices of a batch.
template <class T>
void check_gemm(const char* guard) {
  const With with(guard);
  const int m = 3, n = 4, k = 5, batch = 2;
  cublasHandle_t handle = nullptr;
  gpu::check(cublasCreate(&handle), "cublasCreate");
  for (int transposes = 0; transposes < 4; transposes++) {
    const bool ta = transposes & 1, tb = transposes & 2;
    const int lda = (ta ? k : m) + 1, ldb = tb ? n : k, ldc = m;
    const int size_a = lda * (ta ? m : k), size_b = ldb * (tb ? k : n), size_c = ldc * n;
    std::vector<T> a(static_cast<size_t>(batch * size_a)), b(static_cast<size_t>(batch * size_b));
    for (size_t i = 0; i < a.size(); i++) a[i] = T(static_cast<float>(i % 7));
    for (size_t i = 0; i < b.size(); i++) b[i] = T(static_cast<float>(i % 5) - 2);
    Buffer<T> device_a(a), device_b(b), device_c(static_cast<size_t>(batch * size_c), T(1.0f));
    const auto op = [](bool t) { return t ? CUBLAS_OP_T : CUBLAS_OP_N; };
    if constexpr (std::is_same_v<T, double>) {
      const double alpha = 2, beta = 3;
      cublasDgemmStridedBatched(handle, op(ta), op(tb), m, n, k, &alpha, device_a.data, lda, size_a, device_b.data, ldb,
                                size_b, &beta, device_c.data, ldc, size_c, batch);
    } else {
      const float alpha = 2, beta = 3;
      const cudaDataType type = std::is_same_v<T, float> ? CUDA_R_32F
                                : std::is_same_v<T, f16> ? CUDA_R_16F
                                                         : CUDA_R_16BF;
      cublasGemmStridedBatchedEx(handle, op(ta), op(tb), m, n, k, &alpha, device_a.data, type, lda, size_a,
                                 device_b.data, type, ldb, size_b, &beta, device_c.data, type, ldc, size_c, batch,
                                 CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    }
    const std::vector<T> c = device_c.values();
    for (int s = 0; s < batch; s++) {
      for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
          double expected = 3;
          for (int p = 0; p < k; p++) {
            expected += 2 * convert<double>(a[static_cast<size_t>(s * size_a + (ta ? p + i * lda : i + p * lda))]) *
                        convert<double>(b[static_cast<size_t>(s * size_b + (tb ? j + p * ldb : p + j * ldb))]);
          }
          CHECK(convert<double>(c[static_cast<size_t>(s * size_c + i + j * ldc)]) ==
                doctest::Approx(expected).epsilon(0.005));
        }
      }
    }
  }
  cublasDestroy(handle);
}

}  // namespace

TEST_CASE_TEMPLATE("emulator: cuBLAS products, strided and transposed", T, float, double, f16, bf16) {
  check_gemm<T>("guard=0");
  check_gemm<T>("guard=1");
}

TEST_CASE("emulator: cuBLAS operands beyond their allocation are named") {
  Buffer<float> a(6), b(6), c(4);
  const float one = 1, zero = 0;
  cublasHandle_t handle = nullptr;
  const auto error_with = [&](int lda, int ldb, long long stride_c, int batch) {
    return error_of([&] {
      gpu::check(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 3, &one, a.data, lda, 0, b.data, ldb, 0, &zero,
                                c.data, 2, stride_c, batch), "product");
    });
  };
  CHECK(contains(error_with(2, 3, 4, 1), "product: not initialized"));
  cublasCreate(&handle);
  CHECK(error_with(2, 3, 4, 1) == "no error");
  CHECK(contains(error_with(3, 3, 4, 1),
                 "matrix a (2, 3, column-major) of 1 with leading dimension 3 and stride 0 takes 32 bytes"));
  CHECK(contains(error_with(2, 2, 4, 1),
                 "matrix b (3, 2, column-major) has a leading dimension of 2, less than its rows"));
  CHECK(contains(error_with(2, 3, 4, 2), "matrix c (2, 2, column-major) of 2"));
  cublasDestroy(handle);
}

TEST_CASE("emulator: cuBLAS products of halves: what fits, and which types go together") {
  Buffer<f16> a(6), b(6);
  Buffer<float> c(4);
  const float one = 1, zero = 0;
  cublasHandle_t handle = nullptr;
  cublasCreate(&handle);
  const auto multiply = [&](int lda, cudaDataType type_b, cudaDataType type_c) {
    return cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 3, &one, a.data, CUDA_R_16F, lda, 0,
                                      b.data, type_b, 3, 0, &zero, c.data, type_c, 2, 4, 1, CUBLAS_COMPUTE_32F,
                                      CUBLAS_GEMM_DEFAULT);
  };
  CHECK(multiply(2, CUDA_R_16F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
  CHECK(contains(error_of([&] { multiply(3, CUDA_R_16F, CUDA_R_32F); }),
                 "leading dimension 3 and stride 0 takes 16 bytes"));
  CHECK(multiply(2, CUDA_R_16BF, CUDA_R_32F) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(multiply(2, CUDA_R_16F, CUDA_R_16BF) == CUBLAS_STATUS_NOT_SUPPORTED);
  cublasDestroy(handle);
}

}  // namespace heed::HEED_GPU
