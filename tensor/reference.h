// The reference device: every kernel in plain loops, for reading, for stepping through, and as the oracle of the tests.
#pragma once
#include "tensor/device.h"

namespace heed {

Device& reference_device();

}  // namespace heed
