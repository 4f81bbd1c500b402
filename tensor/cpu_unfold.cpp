// Unfolding for convolution on the fast CPU device.
//
// A row of the columns belongs to one channel and one place (i, j) in the kernel; it is a shifted copy of the channel,
// line by line. The part of a line that lies inside x is found once, so the loop over it has no conditions. Threads
// share channels.
#include "tensor/cpu.h"
#include "tensor/cpu_loops.h"

namespace heed {

namespace {

// One direction of the kernel at one of its places: output o reads input o * stride + offset.
struct Shift {
  int64_t stride, offset, first, last;  // outputs in [first, last) read inside the input

  Shift(int64_t outputs, int64_t size, int64_t stride, int64_t offset) : stride(stride), offset(offset) {
    const auto first_at_least = [&](int64_t input) {  // the first output that reads at `input` or beyond
      return std::clamp<int64_t>((input - offset + stride - 1) / stride, 0, outputs);
    };
    first = offset >= 0 ? 0 : first_at_least(0);
    last = offset >= size ? 0 : std::max(first, first_at_least(size));
  }
  int64_t input(int64_t output) const { return output * stride + offset; }
};

struct UnfoldSizes {
  int64_t B, C, H, W, OH, OW;

  UnfoldSizes(const View& x, const ConvOptions& o)
      : B(x.shape[0]),
        C(x.shape[1]),
        H(x.shape[2]),
        W(x.shape[3]),
        OH((H + 2 * o.pad_h - o.dilation_h * (o.kernel_h - 1) - 1) / o.stride_h + 1),
        OW((W + 2 * o.pad_w - o.dilation_w * (o.kernel_w - 1) - 1) / o.stride_w + 1) {}
};

// Calls fn(vertical, horizontal, column_row) for each place (i, j) of the kernel in channel c.
template <class Fn>
void for_each_place(const UnfoldSizes& n, const ConvOptions& o, int64_t c, const Fn& fn) {
  for (int64_t i = 0; i < o.kernel_h; i++) {
    const Shift vertical(n.OH, n.H, o.stride_h, i * o.dilation_h - o.pad_h);
    for (int64_t j = 0; j < o.kernel_w; j++) {
      const Shift horizontal(n.OW, n.W, o.stride_w, j * o.dilation_w - o.pad_w);
      fn(vertical, horizontal, (c * o.kernel_h + i) * o.kernel_w + j);
    }
  }
}

// The channels (b, c) are shared among threads: calls fn(channel of x, row 0 of the columns of sample b, c).
template <class T, class Fn>
void for_each_channel(const View& x, const View& columns, const UnfoldSizes& n, int64_t places, const Fn& fn) {
  cpu::parallel_for(n.B * n.C, places * n.OH * n.OW, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      const int64_t b = k / n.C, c = k % n.C;
      fn(x.as<T>() + b * x.strides[0] + c * x.strides[1], columns.as<T>() + b * columns.strides[0], c);
    }
  });
}

template <class T>
void unfold_floats(const View& columns, const View& x, const ConvOptions& o) {
  const UnfoldSizes n(x, o);
  const int64_t h_step = x.strides[2], w_step = x.strides[3];
  for_each_channel<T>(x, columns, n, o.kernel_h * o.kernel_w, [&](const T* channel, T* sample, int64_t c) {
    for_each_place(n, o, c, [&](const Shift& vertical, const Shift& horizontal, int64_t row) {
      T* to = sample + row * columns.strides[1];
      for (int64_t oh = 0; oh < n.OH; oh++, to += n.OW) {
        if (oh < vertical.first || oh >= vertical.last) {
          std::fill_n(to, n.OW, T(0));
          continue;
        }
        const T* from = channel + vertical.input(oh) * h_step + horizontal.offset * w_step;
        const int64_t step = horizontal.stride * w_step;
        std::fill_n(to, horizontal.first, T(0));
        if (step == 1) {
          std::copy(from + horizontal.first, from + horizontal.last, to + horizontal.first);
        } else {
          for (int64_t ow = horizontal.first; ow < horizontal.last; ow++) to[ow] = from[ow * step];
        }
        std::fill_n(to + horizontal.last, n.OW - horizontal.last, T(0));
      }
    });
  });
}

template <class T>
void fold_floats(const View& x, const View& columns, const ConvOptions& o) {
  const UnfoldSizes n(x, o);
  const int64_t h_step = x.strides[2], w_step = x.strides[3];
  for_each_channel<T>(x, columns, n, o.kernel_h * o.kernel_w, [&](T* channel, const T* sample, int64_t c) {
    for_each_place(n, o, c, [&](const Shift& vertical, const Shift& horizontal, int64_t row) {
      const T* from = sample + row * columns.strides[1];
      for (int64_t oh = vertical.first; oh < vertical.last; oh++) {
        T* to = channel + vertical.input(oh) * h_step + horizontal.offset * w_step;
        const int64_t step = horizontal.stride * w_step;
        if (step == 1) {
#pragma omp simd  // x and its columns do not overlap
          for (int64_t ow = horizontal.first; ow < horizontal.last; ow++) to[ow] += from[oh * n.OW + ow];
        } else {
          for (int64_t ow = horizontal.first; ow < horizontal.last; ow++) to[ow * step] += from[oh * n.OW + ow];
        }
      }
    });
  });
}

}  // namespace

void Cpu::unfold(View columns, View x, const ConvOptions& options) {
  if (x.numel() == 0) return fill(columns, 0);  // padding alone
  with_floats(x.dtype, [&](auto t) { unfold_floats<decltype(t)>(columns, x, options); });
}

void Cpu::fold(View x, View columns, const ConvOptions& options) {
  fill(x, 0);
  with_floats(x.dtype, [&](auto t) { fold_floats<decltype(t)>(x, columns, options); });
}

}  // namespace heed
