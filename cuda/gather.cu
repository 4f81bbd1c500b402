// gather: y[.., i, ..] = x[.., index[.., i, ..], ..], any dtype; elements move as bits.
//
// One thread for each element of y. For an embedding, where the index repeats along the row, the threads of a warp read
// neighbouring elements of one row of x. Bytes moved: y twice (read from x, written), the index once.
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/walk.h"

namespace heed::HEED_GPU {

namespace {

// x_step: from one position along the axis to the next in x. The walk stands still along that axis in x.
template <class T>
__global__ void gather_elements(T* y, const T* x, const int32_t* index, Walk<3> walk, int64_t x_size, int64_t x_step,
                                WrongIndex* wrong) {
  const int64_t i = this_item();
  if (i >= walk.count) return;
  const auto at = walk.at(i);
  const int32_t j = index[at.of[2]];
  y[at.of[0]] = in_range(j, x_size, Indexed::gather, wrong) ? x[at.of[1] + j * x_step] : T(0);
}

}  // namespace

void Gpu::gather(View y, View x, View index, int axis) {
  indexed_ = true;
  Strides standing = x.strides;
  standing[axis] = 0;
  const Walk<3> walk = walk_all<3>(y.shape, {y.strides, standing, index.strides});
  with_bits(y.dtype, [&](auto bits) {
    using T = decltype(bits);
    launch_items("gather", gather_elements<T>, walk.count, stream_, y.as<T>(), x.as<T>(), index.as<int32_t>(), walk,
                 x.shape[axis], x.strides[axis], wrong_index_);
  });
}

}  // namespace heed::HEED_GPU
