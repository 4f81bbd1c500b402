// The list of devices. Each is made at its first use; none registers itself.
#include "tensor/cpu.h"
#include "tensor/error.h"
#include "tensor/reference.h"

namespace heed {

// The GPU devices, from cuda/device.cu: one source, compiled by g++ for the emulator and, in `make cuda`, by nvcc.
namespace emulated {
Device& device();
}
namespace cuda {
#ifdef HEED_WITH_CUDA
Device& device();
std::string absent_because();  // empty if a GPU can be used
#else
Device& device() { throw DeviceError("device: heed was built without CUDA"); }
std::string absent_because() {
  return "heed was built without the CUDA Toolkit; with nvcc 12 or newer, `make cuda` builds build/cuda/heed";
}
#endif
}  // namespace cuda

Device& device(const std::string& name) {
  if (name == "reference") return reference_device();
  if (name == "cpu") {
    static Cpu* cpu = new Cpu;  // never destroyed: tensors in static variables may outlive it
    return *cpu;
  }
  if (name == "emulated") return emulated::device();
  if (name == "cuda") {
    const std::string missing = cuda::absent_because();
    if (!missing.empty()) throw DeviceError("device: \"cuda\" is absent: " + missing);
    return cuda::device();
  }
  std::string known;
  for (const DeviceInfo& info : devices()) known += (known.empty() ? "" : ", ") + info.name;
  throw DeviceError("device: there is no \"" + name + "\"; heed has: " + known);
}

std::vector<DeviceInfo> devices() {
  return {{"reference", "the plainest loops there can be; what every other device is tested against", ""},
          {"cpu", "OpenBLAS and vectorised, multi-threaded loops", ""},
          {"emulated", "the CUDA kernels, run step by step on the CPU: slow, to read, check and debug them", ""},
          {"cuda", "an NVIDIA GPU", cuda::absent_because()}};
}

}  // namespace heed
