// The devices that are compared with `reference`.
#pragma once
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "tensor/device.h"

namespace heed::tests {

// All that can be used here, `reference` too; or those that HEED_TEST_DEVICES names: "cuda", "cpu,cuda". DeviceError if
// one of them cannot be used.
inline std::vector<Device*> tested_devices() {
  std::vector<Device*> out;
  if (const char* names = std::getenv("HEED_TEST_DEVICES")) {
    std::istringstream list(names);
    for (std::string name; std::getline(list, name, ',');) out.push_back(&device(name));
    return out;
  }
  for (const DeviceInfo& info : devices()) {
    if (info.absent_because.empty()) out.push_back(&device(info.name));
  }
  return out;
}

}  // namespace heed::tests
