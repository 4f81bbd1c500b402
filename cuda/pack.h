// Sixteen bytes of neighbouring elements, which a thread loads or stores in one instruction: float4 for any type.
#pragma once
#include "cuda/gpu.h"
#include "cuda/walk.h"

namespace heed::HEED_GPU {

template <class T>
struct alignas(16) Pack {
  static constexpr int kWidth = 16 / sizeof(T);
  T value[kWidth];
};

// A walk over packs. Along its last axis each operand lies contiguous (step 1) or repeats one element (step 0).
template <int N>
struct PackedWalk {
  Walk<N> packs;       // its last axis counts packs
  int64_t length = 0;  // elements of the last axis; the last pack of a line may be a part of one
  bool repeats[N] = {};

  // How many elements the pack with this index has.
  template <class T>
  __device__ int elements(int64_t index) const {
    int64_t pack;
    divide(index, packs.size[packs.rank - 1], pack);
    const int64_t rest = length - pack * Pack<T>::kWidth;
    return rest < Pack<T>::kWidth ? static_cast<int>(rest) : Pack<T>::kWidth;
  }
};

template <class T>
__device__ Pack<T> load_pack(const T* from, bool repeats, int elements) {
  if (!repeats && elements == Pack<T>::kWidth) return *reinterpret_cast<const Pack<T>*>(from);
  Pack<T> pack;
  for (int i = 0; i < Pack<T>::kWidth; i++) pack.value[i] = from[repeats || i >= elements ? 0 : i];
  return pack;
}

template <class T>
__device__ void store_pack(T* to, const Pack<T>& pack, int elements) {
  if (elements == Pack<T>::kWidth) {
    *reinterpret_cast<Pack<T>*>(to) = pack;
  } else {
#pragma unroll  // so that the pack stays in registers
    for (int i = 0; i < Pack<T>::kWidth; i++) {
      if (i < elements) to[i] = pack.value[i];
    }
  }
}

// Turns a walk over elements into one over packs of `width`, if all lines begin at multiples of 16 bytes. Operand 0 is
// the output.
template <int N>
bool pack_walk(PackedWalk<N>& packed, const Walk<N>& walk, const void* const (&data)[N], int64_t width) {
  if (walk.rank == 0) return false;
  const int last = walk.rank - 1;
  packed.packs = walk;
  packed.length = walk.size[last];
  packed.packs.size[last] = (packed.length + width - 1) / width;
  packed.packs.count = walk.count / packed.length * packed.packs.size[last];
  for (int n = 0; n < N; n++) {
    packed.repeats[n] = walk.step[n][last] == 0;
    packed.packs.step[n][last] *= width;
    if (packed.repeats[n] && n > 0) continue;
    if (walk.step[n][last] != 1 || reinterpret_cast<uintptr_t>(data[n]) % 16 != 0) return false;
    for (int axis = 0; axis < last; axis++) {
      if (walk.step[n][axis] % width != 0) return false;
    }
  }
  return true;
}

}  // namespace heed::HEED_GPU
