// Memory, copies to and from the host, and the one object of this device.
#include "cuda/device.h"

#include "tensor/error.h"

namespace heed::HEED_GPU {

namespace {

#if defined(__CUDACC__)
constexpr const char* kName = "cuda";
constexpr bool kKeepsFreedBlocks = true;
constexpr size_t kBlasWorkspace = size_t{32} << 20;  // what NVIDIA recommends for Hopper
#else
constexpr const char* kName = "emulated";
constexpr bool kKeepsFreedBlocks = false;  // reuse would hide what the emulator looks for
constexpr size_t kBlasWorkspace = 256;
#endif

const char* name_of(Indexed by) {
  switch (by) {
    case Indexed::gather:
      return "gather: index";
    case Indexed::scatter_add:
      return "scatter_add: index";
    case Indexed::attention:
      return "attention: length";
    default:
      return "cross_entropy: target";
  }
}

}  // namespace

Gpu::Gpu() : Device(kName, kKeepsFreedBlocks) {
  gpu::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
  gpu::check(cublasCreate(&blas_), "starting cuBLAS");
  gpu::check(cublasSetStream(blas_, stream_), "starting cuBLAS");
  void* workspace = nullptr;  // its own would be allocated anew for each graph
  gpu::check(cudaMalloc(&workspace, kBlasWorkspace), "allocating memory");
  gpu::check(cublasSetWorkspace(blas_, workspace, kBlasWorkspace), "starting cuBLAS");
  staging_.open(stream_);
  void* block = nullptr;
  gpu::check(cudaMalloc(&block, sizeof(WrongIndex)), "allocating memory");
  gpu::check(cudaMemsetAsync(block, 0, sizeof(WrongIndex), stream_), "clearing memory");
  wrong_index_ = static_cast<WrongIndex*>(block);
}

void* Gpu::allocate(size_t bytes) {
  void* block = nullptr;
  const cudaError_t error = cudaMalloc(&block, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // forget it: the caller frees its kept blocks and tries again
    throw DeviceError(text(name(), ": no memory for a block of ", bytes, " bytes; live tensors on this device take ",
                           memory().live(), " bytes, the new one included"));
  }
  gpu::check(error, "allocating memory");
  return block;
}

void Gpu::release(void* block, size_t) {
  if (graph_.recording()) return graph_.keep(block);
  gpu::check(cudaFree(block), "freeing memory");
}

void Gpu::upload(void* to, const void* host, size_t bytes) { staging_.upload(to, host, bytes); }

void Gpu::download(void* host, const void* from, size_t bytes) {
  require_no_recording("fetch numbers from");
  staging_.download(host, from, bytes);
  synchronize();
}

void Gpu::synchronize() {
  require_no_recording("wait for");
  gpu::check(cudaStreamSynchronize(stream_), "waiting for the device");
  if (!indexed_) return;
  indexed_ = false;
  WrongIndex wrong;
  staging_.download(&wrong, wrong_index_, sizeof wrong);
  if (wrong.by == static_cast<int>(Indexed::nothing)) return;
  gpu::check(cudaMemsetAsync(wrong_index_, 0, sizeof wrong, stream_), "clearing memory");
  throw IndexError(text(name_of(static_cast<Indexed>(wrong.by)), " ", wrong.index, " is outside [0, ", wrong.limit,
                        "); found on ", name(), " when the host next waited for it"));
}

void Gpu::require_no_recording(const char* what) const {
  if (!graph_.recording()) return;
  throw DeviceError(text(name(), ": the host cannot ", what, " this device while a graph is recorded: nothing is computed until it is launched"));
}

void Gpu::begin_capture() {
  if (graph_.recording()) throw DeviceError(text(name(), ": a graph is being recorded already"));
  graph_.wait();  // what it copies from the host stays in its place until then
  staging_.begin_recording();
  graph_.begin(stream_);
}

void Gpu::launch_capture() {
  staging_.end_recording();
  graph_.launch();
}

void Gpu::abandon_capture() noexcept {
  staging_.end_recording();
  try {
    graph_.abandon();
  } catch (const Error&) {}  // a device that failed says so at its next call
}

// Used by tensor/devices.cpp.
Device& device() {
  static Gpu* gpu = new Gpu;  // never destroyed: tensors in static variables may outlive it
  return *gpu;
}

// Which part is missing; empty if none is.
std::string absent_because() {
  int driver = 0, toolkit = 0, count = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return "no NVIDIA driver is installed";
  gpu::check(cudaRuntimeGetVersion(&toolkit), "asking for the CUDA version");
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) return "the NVIDIA driver finds no GPU";
  if (error != cudaSuccess) {
    return text("the NVIDIA driver (CUDA ", driver / 1000, ".", driver % 1000 / 10, ", heed was built with ",
                toolkit / 1000, ".", toolkit % 1000 / 10, ") says: ", cudaGetErrorString(error));
  }
  return "";
}

}  // namespace heed::HEED_GPU
