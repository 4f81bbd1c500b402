// The list of devices. Each is made at its first use; none registers itself.
#include "tensor/cpu.h"
#include "tensor/error.h"
#include "tensor/reference.h"

namespace heed {

Device& device(const std::string& name) {
  if (name == "reference") return reference_device();
  if (name == "cpu") {
    static Cpu* cpu = new Cpu;  // never destroyed: tensors in static variables may outlive it
    return *cpu;
  }
  std::string known;
  for (const DeviceInfo& info : devices()) known += (known.empty() ? "" : ", ") + info.name;
  throw DeviceError("device: there is no \"" + name + "\"; heed has: " + known);
}

std::vector<DeviceInfo> devices() {
  return {{"reference", "the plainest loops there can be; what every other device is tested against", ""},
          {"cpu", "OpenBLAS and vectorised, multi-threaded loops", ""}};
}

}  // namespace heed
