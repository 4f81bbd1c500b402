#include "train/blas_room.h"

#include <sys/mman.h>

#include <algorithm>

namespace heed::train {

bool has_room(size_t buffers, size_t rest) {
  void* taken[2 * kMostThreads];  // no heap: it is called before main
  buffers = std::min(buffers, 2 * kMostThreads);
  const auto map = [](size_t bytes) { return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); };
  size_t count = 0;
  while (count < buffers && (taken[count] = map(kBlasBuffer)) != MAP_FAILED) count++;
  void* const last = count == buffers ? map(rest) : MAP_FAILED;
  if (last != MAP_FAILED) munmap(last, rest);
  for (size_t i = 0; i < count; i++) munmap(taken[i], kBlasBuffer);
  return last != MAP_FAILED;
}

}  // namespace heed::train
