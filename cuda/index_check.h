// What a kernel does with an index outside its range: it notes the first one and goes on with 0 in its place. The host
// throws when it next waits for the device.
#pragma once
#include "cuda/gpu.h"

namespace heed::HEED_GPU {

enum class Indexed : int { nothing, gather, scatter_add, cross_entropy, attention };

struct WrongIndex {
  int by;  // Indexed; nothing while all is well
  int32_t index;
  int64_t limit;
};

// Which of several wrong indices is noted depends on the order of threads; that there is one does not.
__device__ inline bool in_range(int32_t index, int64_t limit, Indexed by, WrongIndex* wrong) {
  if (index >= 0 && index < limit) return true;
  if (atomicCAS(&wrong->by, static_cast<int>(Indexed::nothing), static_cast<int>(by)) == 0) {
    wrong->index = index;
    wrong->limit = limit;
  }
  return false;
}

}  // namespace heed::HEED_GPU
