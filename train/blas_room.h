// Room for OpenBLAS's buffers: where there is none for one it tries for ever, so the room is tried before.
#pragma once
#include <cstddef>

namespace heed::train {

constexpr size_t kBlasBuffer = 128 << 20;  // bytes, one for each thread
constexpr size_t kMostThreads = 1024;

// Can this process map so many buffers (at most two for each of kMostThreads), and `rest` bytes more? Maps them and gives them back.
bool has_room(size_t buffers, size_t rest);

}  // namespace heed::train
