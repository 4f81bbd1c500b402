// Sixteen bytes of neighbouring elements, which a thread loads or stores in one instruction: float4 for any type. Where
// operands differ in size, the widest fills the sixteen bytes and the others have packs of as many elements.
#pragma once
#include "cuda/gpu.h"
#include "cuda/walk.h"

namespace heed::HEED_GPU {

template <class T, int Width = 16 / sizeof(T)>
struct alignas(Width * sizeof(T)) Pack {
  static constexpr int kWidth = Width;
  T value[Width];
};

// Elements in a pack of operands of these two types.
template <class A, class B>
constexpr int kWidthOf = 16 / (sizeof(A) > sizeof(B) ? sizeof(A) : sizeof(B));

// A walk over packs. Along its last axis each operand lies contiguous (step 1) or repeats one element (step 0).
template <int N>
struct PackedWalk {
  Walk<N> packs;       // its last axis counts packs
  int64_t length = 0;  // elements of the last axis; the last pack of a line may be a part of one
  bool repeats[N] = {};

  // How many elements the pack with this index has.
  template <int kWidth>
  __device__ int elements(int64_t index) const {
    int64_t pack;
    divide(index, packs.size[packs.rank - 1], pack);
    const int64_t rest = length - pack * kWidth;
    return rest < kWidth ? static_cast<int>(rest) : kWidth;
  }
};

template <class T, int kWidth = Pack<T>::kWidth>
__device__ Pack<T, kWidth> load_pack(const T* from, bool repeats, int elements) {
  if (!repeats && elements == kWidth) return *reinterpret_cast<const Pack<T, kWidth>*>(from);
  Pack<T, kWidth> pack;
  for (int i = 0; i < kWidth; i++) pack.value[i] = from[repeats || i >= elements ? 0 : i];
  return pack;
}

template <class T, int kWidth>
__device__ void store_pack(T* to, const Pack<T, kWidth>& pack, int elements) {
  if (elements == kWidth) {
    *reinterpret_cast<Pack<T, kWidth>*>(to) = pack;
  } else {
#pragma unroll  // so that the pack stays in registers
    for (int i = 0; i < kWidth; i++) {
      if (i < elements) to[i] = pack.value[i];
    }
  }
}

inline bool aligned_for_packs(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

// Turns a walk over elements into one over packs of `width`, if every operand begins at a multiple of 16 bytes and its
// lines are a multiple of `width` apart. Operand 0 is the output.
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
    if (walk.step[n][last] != 1 || !aligned_for_packs(data[n])) return false;
    for (int axis = 0; axis < last; axis++) {
      if (walk.step[n][axis] % width != 0) return false;
    }
  }
  return true;
}

}  // namespace heed::HEED_GPU
