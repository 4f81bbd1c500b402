// Convolution's unfold and its adjoint, fold. x: (B, C, H, W), columns: (B, C kh kw, OH OW), contiguous.
//
//   unfold:  columns[b, (c, i, j), (oh, ow)] = x[b, c, h, w],  h = oh stride_h - pad_h + i dilation_h, w likewise;  0
//   outside x fold:    x[b, c, h, w] = the sum of all columns that unfold took from there
//
// One thread for each output: of the columns, or of x. So fold needs no atomic additions, and its order is fixed. Bytes
// moved: the columns once; x is read (or its sums are found) from cache.
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/walk.h"

namespace heed::HEED_GPU {

namespace {

struct Sizes {
  int64_t B, C, H, W, OH, OW;
  int64_t x_steps[4];
  ConvOptions o;

  Sizes(const View& x, const ConvOptions& options)
      : B(x.shape[0]), C(x.shape[1]), H(x.shape[2]), W(x.shape[3]), o(options) {
    OH = (H + 2 * o.pad_h - o.dilation_h * (o.kernel_h - 1) - 1) / o.stride_h + 1;
    OW = (W + 2 * o.pad_w - o.dilation_w * (o.kernel_w - 1) - 1) / o.stride_w + 1;
    for (int axis = 0; axis < 4; axis++) x_steps[axis] = x.strides[axis];
  }
  int64_t columns() const { return B * C * o.kernel_h * o.kernel_w * OH * OW; }
  __device__ int64_t x_offset(int64_t b, int64_t c, int64_t h, int64_t w) const {
    return b * x_steps[0] + c * x_steps[1] + h * x_steps[2] + w * x_steps[3];
  }
};

template <class T>
__global__ void unfold_columns(T* columns, const T* x, Sizes s, int64_t count) {
  const int64_t n = this_item();
  if (n >= count) return;
  int64_t b, c, i, j, oh, ow;  // n = ((((b C + c) kh + i) kw + j) OH + oh) OW + ow
  int64_t rest = divide(divide(n, s.OW, ow), s.OH, oh);
  rest = divide(divide(rest, s.o.kernel_w, j), s.o.kernel_h, i);
  b = divide(rest, s.C, c);
  const int64_t h = oh * s.o.stride_h - s.o.pad_h + i * s.o.dilation_h;
  const int64_t w = ow * s.o.stride_w - s.o.pad_w + j * s.o.dilation_w;
  const bool inside = h >= 0 && h < s.H && w >= 0 && w < s.W;
  columns[n] = inside ? x[s.x_offset(b, c, h, w)] : T(0);
}

// The output position whose kernel element at `tap` lies on `place`; -1 if there is none.
__device__ int64_t output_over(int64_t place, int64_t tap, int64_t outputs, int64_t stride, int64_t pad,
                               int64_t dilation) {
  const int64_t start = place + pad - tap * dilation;
  if (start < 0 || start % stride != 0 || start / stride >= outputs) return -1;
  return start / stride;
}

template <class T>
__global__ void fold_columns(T* x, const T* columns, Sizes s) {
  const int64_t n = this_item();
  if (n >= s.B * s.C * s.H * s.W) return;
  int64_t c, h, w;  // n = ((b C + c) H + h) W + w
  const int64_t image = divide(divide(n, s.W, w), s.H, h), b = divide(image, s.C, c);
  T sum = 0;
  for (int64_t i = 0; i < s.o.kernel_h; i++) {
    const int64_t oh = output_over(h, i, s.OH, s.o.stride_h, s.o.pad_h, s.o.dilation_h);
    for (int64_t j = 0; oh >= 0 && j < s.o.kernel_w; j++) {
      const int64_t ow = output_over(w, j, s.OW, s.o.stride_w, s.o.pad_w, s.o.dilation_w);
      if (ow >= 0) sum += columns[(((image * s.o.kernel_h + i) * s.o.kernel_w + j) * s.OH + oh) * s.OW + ow];
    }
  }
  x[s.x_offset(b, c, h, w)] = sum;
}

}  // namespace

void Gpu::unfold(View columns, View x, const ConvOptions& options) {
  const Sizes s(x, options);
  with_floats(x.dtype, [&](auto t) {
    using T = decltype(t);
    launch_items("unfold", unfold_columns<T>, s.columns(), stream_, columns.as<T>(), x.as<T>(), s, s.columns());
  });
}

void Gpu::fold(View x, View columns, const ConvOptions& options) {
  const Sizes s(x, options);
  with_floats(x.dtype, [&](auto t) {
    using T = decltype(t);
    launch_items("fold", fold_columns<T>, x.numel(), stream_, x.as<T>(), columns.as<T>(), s);
  });
}

}  // namespace heed::HEED_GPU
