// Reductions over any axes: sum, max, min, sum of squares, argmax.
//
// An output's elements are cut into parts where there are too few outputs to fill the GPU, and each part's state goes
// to scratch memory; a second kernel combines the parts. So the order of additions depends on sizes alone: two runs
// give the same bits. Bytes moved: x once.
//
//   x contiguous along a reduced axis:  a team of threads for each part, whose states meet by warp shuffles
//   otherwise:                          threads of a warp take neighbouring outputs, so that together they read whole
//   lines
#include <climits>

#include "cuda/device.h"
#include "cuda/team.h"
#include "cuda/walk.h"
#include "tensor/scratch.h"

namespace heed::HEED_GPU {

namespace {

// ---- what is reduced: from the identity, add() elements to a state, combine() states

template <class T>
struct Sum {
  using State = T;
  using Element = T;
  using Result = T;
  __device__ static State identity() { return 0; }
  __device__ static State add(State s, T x, int64_t) { return s + x; }
  __device__ static State combine(State a, State b) { return a + b; }
  __device__ static Result result(State s) { return s; }
};

template <class T, class Formula, bool kFromAbove>
struct Extreme {
  using State = T;
  using Element = T;
  using Result = T;
  __device__ static State identity() { return kFromAbove ? T(INFINITY) : T(-INFINITY); }
  __device__ static State add(State s, T x, int64_t) { return combine(x, s); }
  __device__ static State combine(State a, State b) { return Formula::template f<ExactMath>(a, b); }
  __device__ static Result result(State s) { return s; }
};
template <class T>
using Max = Extreme<T, formula::Maximum, false>;
template <class T>
using Min = Extreme<T, formula::Minimum, true>;

// In f64 whatever the elements: the square of 1e30 is beyond f32.
template <class T>
struct SumSquares : Sum<double> {
  using Element = T;
  __device__ static State add(State s, T x, int64_t) { return s + static_cast<double>(x) * static_cast<double>(x); }
};

template <class T>
struct Candidate {
  T value;
  int32_t index;
};
template <class T>
__device__ Candidate<T> shuffle_xor(Candidate<T> c, int distance) {
  return {__shfl_xor_sync(kAllLanes, c.value, distance), __shfl_xor_sync(kAllLanes, c.index, distance)};
}

// NaN is the largest; of equal values the first counts.
template <class T>
struct ArgMax {
  using State = Candidate<T>;
  using Element = T;
  using Result = int32_t;
  __device__ static State identity() { return {T(-INFINITY), INT_MAX}; }
  __device__ static State add(State s, T x, int64_t i) { return combine(s, {x, static_cast<int32_t>(i)}); }
  __device__ static State combine(State a, State b) {
    const bool nan_a = a.value != a.value, nan_b = b.value != b.value;
    const bool equal = a.value == b.value || (nan_a && nan_b);
    const bool take_b = equal ? b.index < a.index : nan_b || (!nan_a && b.value > a.value);
    return take_b ? b : a;
  }
  __device__ static Result result(State s) { return s.index; }
};

// ---- kernels

template <class Op>
struct Problem {
  const typename Op::Element* x;
  typename Op::Result* y;
  typename Op::State* states;  // (outputs, parts); unused if there is one part
  Walk<2> outputs;             // steps of y and x
  Walk<1> reduced;             // steps of x
  int64_t parts, part_length;

  __device__ const typename Op::Element* start(int64_t output) const { return x + outputs.at(output).of[1]; }
  __device__ int64_t begin(int64_t part) const { return part * part_length; }
  __device__ int64_t end(int64_t part) const {
    return begin(part) + part_length < reduced.count ? begin(part) + part_length : reduced.count;
  }
  __device__ void finish(int64_t output, int64_t part, typename Op::State state) const {
    if (parts > 1) {
      states[output * parts + part] = state;
    } else {
      y[outputs.at(output).of[0]] = Op::result(state);
    }
  }
};

// A team of kThreads for each part.
template <class Op, int kThreads>
__global__ void reduce_lines(Problem<Op> p) {
  const int64_t team = this_team<kThreads>();
  if (team >= p.outputs.count * p.parts) return;
  int64_t part;
  const int64_t output = divide(team, p.parts, part);
  const auto* x = p.start(output);
  auto state = Op::identity();
  for (int64_t i = p.begin(part) + this_member<kThreads>(); i < p.end(part); i += kThreads) {
    state = Op::add(state, x[p.reduced.at(i).of[0]], i);
  }
  state = team_reduce<kThreads>(state, Op::combine);
  if (this_member<kThreads>() == 0) p.finish(output, part, state);
}

// blockDim.x outputs for each block, blockIdx.y its part; the blockDim.y rows of threads share the part's elements.
template <class Op>
__global__ void reduce_columns(Problem<Op> p) {
  auto* shared = gpu::dynamic_shared<typename Op::State>();
  const int64_t output = this_item(), part = blockIdx.y;
  const bool present = output < p.outputs.count;
  auto state = Op::identity();
  if (present) {
    const auto* x = p.start(output);
    for (int64_t i = p.begin(part) + threadIdx.y; i < p.end(part); i += blockDim.y) {
      state = Op::add(state, x[p.reduced.at(i).of[0]], i);
    }
  }
  if (blockDim.y > 1) {
    shared[threadIdx.y * blockDim.x + threadIdx.x] = state;
    __syncthreads();
    if (threadIdx.y > 0) return;
    for (unsigned row = 1; row < blockDim.y; row++) state = Op::combine(state, shared[row * blockDim.x + threadIdx.x]);
  }
  if (present) p.finish(output, part, state);
}

// A warp for each output.
template <class Op>
__global__ void combine_parts(Problem<Op> p) {
  const int64_t output = this_team<kWarp>();
  if (output >= p.outputs.count) return;
  auto state = Op::identity();
  for (int64_t part = this_member<kWarp>(); part < p.parts; part += kWarp) {
    state = Op::combine(state, p.states[output * p.parts + part]);
  }
  state = team_reduce<kWarp>(state, Op::combine);
  if (this_member<kWarp>() == 0) p.y[p.outputs.at(output).of[0]] = Op::result(state);
}

// ---- the host's side

constexpr int64_t kWantedBlocks = 1024;      // some eight for each multiprocessor of a large GPU
constexpr int64_t kShortestLinePart = 2048;  // elements, for a block of threads
constexpr int64_t kShortestColumnPart = 64;  // elements, for kColumnRows threads
constexpr int kColumnRows = 8;

template <class Op>
class Reduce {
 public:
  Reduce(const char* name, Memory& memory, cudaStream_t stream, const View& y, const View& x)
      : name_(name), memory_(memory), stream_(stream) {
    p_ = {x.as<typename Op::Element>(), y.as<typename Op::Result>(), nullptr, {}, {}, 1, 0};
    for (int axis = 0; axis < x.rank(); axis++) {
      if (x.shape[axis] == y.shape[axis]) {
        p_.outputs.add_axis(x.shape[axis], {y.strides[axis], x.strides[axis]});
      } else {
        p_.reduced.add_axis(x.shape[axis], {x.strides[axis]});
      }
    }
  }

  void run() {
    if (p_.outputs.count == 0) return;
    const int64_t length = p_.reduced.count;
    if (lies_along_lines() && length >= 1024) {
      run_lines<kBlock>(std::clamp<int64_t>(kWantedBlocks / p_.outputs.count, 1, length / kShortestLinePart + 1));
    } else if (lies_along_lines() && length >= kWarp) {
      run_lines<kWarp>(1);
    } else {
      run_columns();
    }
  }

 private:
  bool lies_along_lines() const {
    if (p_.reduced.rank == 0 || p_.outputs.rank == 0) return p_.outputs.rank == 0;
    return p_.reduced.step[0][p_.reduced.rank - 1] <= p_.outputs.step[1][p_.outputs.rank - 1];
  }

  template <int kThreads>
  void run_lines(int64_t parts) {
    in_parts(parts, [&] {
      launch_teams<kThreads>(name_, reduce_lines<Op, kThreads>, p_.outputs.count * parts, sizeof(typename Op::State),
                             stream_, p_);
    });
  }

  void run_columns() {
    const int64_t rows = p_.reduced.count < kShortestColumnPart ? 1 : kColumnRows;
    const int64_t width = rows > 1 ? kWarp : std::min<int64_t>(kBlock, ceil_div(p_.outputs.count, kWarp) * kWarp);
    const int64_t blocks = ceil_div(p_.outputs.count, width);
    const int64_t parts = std::clamp<int64_t>(kWantedBlocks / blocks, 1, p_.reduced.count / kShortestColumnPart + 1);
    in_parts(parts, [&] {
      gpu::launch(name_, reduce_columns<Op>, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(parts)),
                  dim3(static_cast<unsigned>(width), static_cast<unsigned>(rows)),
                  static_cast<size_t>(width * rows) * sizeof(typename Op::State), stream_, p_);
    });
  }

  template <class Launch>
  void in_parts(int64_t parts, const Launch& launch) {
    p_.parts = parts;
    p_.part_length = ceil_div(p_.reduced.count, parts);
    const size_t states = parts > 1 ? static_cast<size_t>(p_.outputs.count * parts) : 0;
    const Scratch scratch(memory_, states * sizeof(typename Op::State));
    p_.states = scratch.as<typename Op::State>();
    launch();
    if (parts > 1) launch_teams<kWarp>("combine_parts", combine_parts<Op>, p_.outputs.count, 0, stream_, p_);
  }

  const char* name_;
  Memory& memory_;
  cudaStream_t stream_;
  Problem<Op> p_;
};

}  // namespace

void Gpu::reduce(Reduction op, View y, View x) {
  with_floats(x.dtype, [&](auto t) {
    using T = decltype(t);
    switch (op) {
      case Reduction::sum:
        return Reduce<Sum<T>>("sum", memory(), stream_, y, x).run();
      case Reduction::max:
        return Reduce<Max<T>>("max", memory(), stream_, y, x).run();
      case Reduction::min:
        return Reduce<Min<T>>("min", memory(), stream_, y, x).run();
      case Reduction::sum_squares:
        return Reduce<SumSquares<T>>("sum_squares", memory(), stream_, y, x).run();
    }
  });
}

void Gpu::argmax(View y, View x) {
  with_floats(x.dtype, [&](auto t) { Reduce<ArgMax<decltype(t)>>("argmax", memory(), stream_, y, x).run(); });
}

}  // namespace heed::HEED_GPU
