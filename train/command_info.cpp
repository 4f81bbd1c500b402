#include <cstdio>

#include "tensor/blas.h"
#include "tensor/device.h"
#include "train/commands.h"

namespace heed::train {

void info_command() {
  std::printf("heed 0.1.0, compiled by g++ %s\n", __VERSION__);
  for (const DeviceInfo& device : devices()) {
    std::printf("device %-10s %s\n", device.name.c_str(), device.absent_because.empty() ? device.about.c_str() : ("absent: " + device.absent_because).c_str());
  }
  for (const std::string& warning : take_threads(0)) std::printf("warning: %s\n", warning.c_str());
  std::printf("threads %d\n", threads());
  std::printf("blas %s\n", blas_description().c_str());
  check_blas();
  std::printf("self-check of the matrix product: passed\n");
}

}  // namespace heed::train
