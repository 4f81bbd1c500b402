// Records what is asked of a device and starts it as one: launching a GPU's small kernels one by one takes the host longer
// than they run.
#pragma once
#include "tensor/device.h"

namespace heed {

// From its construction to launch() nothing is done, only recorded; the host must not wait for a result in between
// (DeviceError). Without launch(), as when an exception passes, nothing of it is done at all. `on` = false: no effect.
class Capture {
 public:
  Capture(Device& device, bool on) : device_(on ? &device : nullptr) {
    if (device_) device_->begin_capture();
  }
  ~Capture() {
    if (device_) device_->abandon_capture();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  void launch() {
    Device* device = device_;
    device_ = nullptr;
    if (device) device->launch_capture();
  }

 private:
  Device* device_;
};

}  // namespace heed
