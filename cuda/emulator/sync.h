// Where threads wait for each other: the block's barrier and the operations of a warp. Every call knows its source
// line, which the checks of block.cpp and warp.cpp put into their messages.
#pragma once
#include <cstring>

#include "cuda/emulator/types.h"
#include "tensor/site.h"

namespace heed::emulated {

constexpr unsigned kFullMask = 0xffffffffu;

// Returns when all threads of the block have called it, at the same line.
void __syncthreads(Site at = Site::here());

enum class WarpOp { index, up, down, exclusive_or, ballot, sync };

// The lanes of `mask` wait for each other, at the same line; returns what the lane gets: the value of another lane
// (argument: which one, within groups of `width` lanes), or for ballot the set of lanes with a value other than 0.
uint64_t exchange(WarpOp op, unsigned mask, uint64_t value, int argument, int width, Site at);

template <class T>
T shuffle(WarpOp op, unsigned mask, T value, int argument, int width, Site at) {
  static_assert(sizeof(T) <= sizeof(uint64_t), "a shuffle moves at most 8 bytes");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = exchange(op, mask, bits, argument, width, at);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize, Site at = Site::here()) {
  return shuffle(WarpOp::index, mask, value, lane, width, at);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize, Site at = Site::here()) {
  return shuffle(WarpOp::up, mask, value, static_cast<int>(delta), width, at);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize, Site at = Site::here()) {
  return shuffle(WarpOp::down, mask, value, static_cast<int>(delta), width, at);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize, Site at = Site::here()) {
  return shuffle(WarpOp::exclusive_or, mask, value, lane_mask, width, at);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, Site at = Site::here()) {
  return static_cast<unsigned>(exchange(WarpOp::ballot, mask, predicate != 0, 0, warpSize, at));
}
inline int __any_sync(unsigned mask, int predicate, Site at = Site::here()) {
  return __ballot_sync(mask, predicate, at) != 0;
}
inline int __all_sync(unsigned mask, int predicate, Site at = Site::here()) {
  return __ballot_sync(mask, predicate, at) == mask;
}
inline void __syncwarp(unsigned mask = kFullMask, Site at = Site::here()) {
  exchange(WarpOp::sync, mask, 0, 0, warpSize, at);
}

// The block's dynamic shared memory, aligned to 16 bytes; fails in a kernel that was launched without any.
void* dynamic_shared_memory();

}  // namespace heed::emulated
