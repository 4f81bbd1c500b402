// What the gdb session steps through: softmax on the emulated device, of rows long enough for a block each. Row r holds
// r + w where warp w of its block will look, so that each warp's maximum and sum of exponentials are known beforehand.
#include <cstdio>

#include "tensor/ops.h"

using namespace heed;

int main() {
  constexpr int64_t kRows = 3, kLength = 2048, kBlock = 256, kWarp = 32;
  std::vector<float> values;
  for (int64_t r = 0; r < kRows; r++) {
    for (int64_t i = 0; i < kLength; i++) values.push_back(static_cast<float>(r + i % kBlock / kWarp));
  }
  set_default_device(device("emulated"));
  const Tensor y = softmax(from_vector(values, {kRows, kLength}));
  std::printf("the rows sum to %s\n", sum(y, {1}).to_string(3).c_str());
}
