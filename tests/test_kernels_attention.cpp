// The fused attention of `cpu` and of CUDA against the plain loops of `reference`.
#include <doctest/doctest.h>
#include <omp.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tensor/device.h"
#include "tensor/reference.h"
#include "tests/compare_devices.h"
#include "tests/tested_devices.h"

using namespace heed;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

struct Sizes {
  int64_t B, H, T, S, D, E;
};

// (B, H, rows, columns), either alone or as one of three in a (B, rows, 3, H, columns) block.
template <class T>
struct Array {
  std::vector<T> values;
  View view;

  Array(const Shape& shape, bool strided, double fill) {
    const int64_t parts = strided ? 3 : 1;
    values.assign(static_cast<size_t>(shape.numel() * parts), static_cast<T>(fill));
    view = {values.data(), shape, contiguous_strides(shape), dtype_of<T>()};
    if (strided) {
      const int64_t row = 3 * shape[1] * shape[3];
      view.strides = {shape[2] * row, shape[3], row, 1};
      if (shape.numel() > 0) view.data = values.data() + shape[1] * shape[3];
    }
    if (!view.data) view.data = &spare_;
  }
  Array(const Array&) = delete;

  T& at(int64_t index) { return view.as<T>()[offset_of(view, index)]; }
  void randomize(Random& random) {
    for (int64_t i = 0; i < view.numel(); i++) at(i) = static_cast<T>(random.normal());
  }

 private:
  T spare_ = 0;
};

// The bytes from the first to the last element.
size_t extent(const View& v) {
  int64_t last = 0;
  for (int axis = 0; axis < v.rank(); axis++) last += (v.shape[axis] - 1) * v.strides[axis];
  return v && v.numel() > 0 ? static_cast<size_t>(last + 1) * size_of(v.dtype) : 0;
}

// Calls run with views of the device's memory: copies of the host's, which are copied back afterwards.
void on_device(Device& device, std::vector<View> views, const std::function<void(const std::vector<View>&)>& run) {
  std::vector<std::unique_ptr<compare::DeviceCopy>> copies;
  for (View& view : views) {
    if (device.on_host()) continue;
    copies.push_back(std::make_unique<compare::DeviceCopy>(device, view.as<char>(), extent(view)));
    view = copies.back()->view(view);
  }
  run(views);
  for (const auto& copy : copies) copy->fetch();
}

// One problem with its inputs; what a device makes of it is in `Results`.
template <class T>
struct Problem {
  Sizes n;
  Array<T> q, k, v, dout, keep;
  std::vector<int32_t> lengths;
  AttentionOptions options;

  Problem(Sizes n, bool strided, uint64_t seed = 1)
      : n(n),
        q({n.B, n.H, n.T, n.D}, strided, 0),
        k({n.B, n.H, n.S, n.D}, strided, 0),
        v({n.B, n.H, n.S, n.E}, strided, 0),
        dout({n.B, n.H, n.T, n.E}, strided, 0),
        keep({n.B, n.H, n.T, n.S}, false, 1) {
    Random random(seed);
    for (Array<T>* x : {&q, &k, &v, &dout}) x->randomize(random);
    options.scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(n.D, 1)));
  }

  void use_lengths(const std::vector<int32_t>& values) {
    lengths = values;
    options.mask.lengths = {lengths.data(), {n.B}, {1}, DType::i32};
  }
  void use_keep(double p) {  // hides each key with probability p
    Random random(7);
    for (int64_t i = 0; i < keep.view.numel(); i++) keep.at(i) = random.uniform() < p ? T(0) : T(1);
    options.mask.keep = keep.view;
  }
};

template <class T>
struct Results {
  Array<T> o, lse, dq, dk, dv;

  Results(Device& device, Problem<T>& p, bool strided = false)
      : o({p.n.B, p.n.H, p.n.T, p.n.E}, strided, kNaN),
        lse({p.n.B, p.n.H, p.n.T, 1}, false, kNaN),
        dq(p.q.view.shape, strided, kNaN),
        dk(p.k.view.shape, strided, kNaN),
        dv(p.v.view.shape, strided, kNaN) {
    View lse_view = lse.view;
    lse_view.shape = {p.n.B, p.n.H, p.n.T};
    lse_view.strides = contiguous_strides(lse_view.shape);
    const AttentionMask& mask = p.options.mask;
    const std::vector<View> host = {o.view,   lse_view, dq.view,  dk.view,   dv.view,     p.dout.view,
                                    p.q.view, p.k.view, p.v.view, mask.keep, mask.lengths};
    on_device(device, host, [&](const std::vector<View>& x) {
      AttentionOptions options = p.options;
      options.mask.keep = x[9], options.mask.lengths = x[10];
      device.attention(x[0], x[1], x[6], x[7], x[8], options);
      device.attention_grad(x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[0], x[1], options);
    });
  }
};

// The largest difference relative to the largest value; infinite where one is NaN or infinite and the other is not the
// same.
template <class T>
double difference(Array<T>& a, Array<T>& b) {
  double largest = 1, worst = 0;
  for (int64_t i = 0; i < b.view.numel(); i++) {
    const double x = a.at(i), y = b.at(i);
    if (x == y) continue;
    if (std::isfinite(y)) largest = std::max(largest, std::abs(y));
    const double gap = std::abs(x - y);
    worst = gap < kInfinity ? std::max(worst, gap) : kInfinity;
  }
  return worst / largest;
}

template <class T>
double difference(Results<T>& a, Results<T>& b) {
  double worst = 0;
  for (auto part : {&Results<T>::o, &Results<T>::lse, &Results<T>::dq, &Results<T>::dk, &Results<T>::dv}) {
    worst = std::max(worst, difference(a.*part, b.*part));
  }
  return worst;
}

template <class T>
constexpr double kTolerance = sizeof(T) == 4 ? 2e-5 : 1e-12;

template <class T>
void check_against_reference(Device& tested, Problem<T>& p, bool strided = false, double tolerance = kTolerance<T>) {
  Results<T> expected(reference_device(), p), actual(tested, p, strided);
  CHECK(difference(actual, expected) < tolerance);
}

// Every value of a equals b's, bit for bit but for the sign of 0.
template <class T>
bool same(Results<T>& a, Results<T>& b) {
  return difference(a, b) == 0;
}

struct Threads {  // of OpenMP, while in scope
  int before = omp_get_max_threads();
  explicit Threads(int count) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(before); }
};

// All but `reference`.
std::vector<Device*> others() {
  std::vector<Device*> out = tests::tested_devices();
  std::erase(out, &reference_device());
  return out;
}

}  // namespace

TEST_CASE_TEMPLATE("kernels: attention: odd sizes, packed and strided", T, float, double) {
  for (Device* device : others()) {
    Device& tested = *device;
    CAPTURE(tested.name());
    const std::vector<Sizes> sizes = {{1, 1, 1, 1, 1, 1},      {2, 3, 7, 33, 5, 9},       {1, 2, 33, 7, 16, 16},
                                      {2, 1, 64, 128, 64, 64}, {1, 1, 65, 129, 17, 3},    {1, 2, 1, 257, 64, 64},
                                      {1, 1, 257, 1, 8, 8},    {1, 1, 130, 300, 32, 100}, {1, 1, 20, 30, 300, 260},
                                      {1, 2, 97, 100, 8, 8}};
    for (const Sizes& n : sizes) {
      for (bool strided : {false, true}) {
        CAPTURE(n.T);
        CAPTURE(n.S);
        Problem<T> p(n, strided);
        check_against_reference(tested, p, strided);
      }
    }
  }
}

TEST_CASE_TEMPLATE("kernels: attention: every combination of masks", T, float, double) {
  for (Device* device : others()) {
    Device& tested = *device;
    CAPTURE(tested.name());
    const std::vector<Sizes> sizes = {
        {2, 2, 9, 9, 8, 8}, {2, 1, 70, 150, 4, 6}, {2, 1, 150, 70, 4, 6}, {3, 1, 99, 260, 4, 4}};
    for (const Sizes& n : sizes) {
      for (int bits = 1; bits < 32; bits++) {
        CAPTURE(n.T);
        CAPTURE(bits);
        Problem<T> p(n, false);
        p.options.mask.causal = bits & 1;
        p.options.mask.window = bits & 2 ? n.S / 10 + 1 : 0;
        if (bits & 4) p.use_lengths({static_cast<int32_t>(n.S * 2 / 3), 0, static_cast<int32_t>(n.S)});
        if (bits & 8) p.use_keep(0.3);
        if (bits & 16) p.options.dropout = {0.4, 99, 3};
        check_against_reference(tested, p);
      }
    }
  }
}

TEST_CASE_TEMPLATE("kernels: attention: rows that see nothing give 0, and lse = -inf", T, float, double) {
  for (Device* device : others()) {
    Device& tested = *device;
    CAPTURE(tested.name());
    Problem<T> p({1, 2, 5, 200, 8, 8}, false);
    p.use_keep(0.5);
    for (int64_t s = 0; s < 200; s++) p.keep.at(1 * 5 * 200 + 3 * 200 + s) = 0;  // head 1, query 3
    Results<T> r(tested, p);
    CHECK(r.lse.at(1 * 5 + 3) == -kInfinity);
    for (int64_t e = 0; e < 8; e++) {
      CHECK(r.o.at((1 * 5 + 3) * 8 + e) == 0);
      CHECK(r.dq.at((1 * 5 + 3) * 8 + e) == 0);
    }
    check_against_reference(tested, p);
  }
}

TEST_CASE_TEMPLATE("kernels: attention: NaN and infinity in hidden keys and values go nowhere", T, float, double) {
  for (Device* device : others()) {
    Device& tested = *device;
    CAPTURE(tested.name());
    for (int kind = 0; kind < 3; kind++) {
      CAPTURE(kind);
      Problem<T> p({2, 2, 40, 170, 8, 24}, false);
      const auto spoil = [&](int64_t s) {  // key and value s of sample 1 in every head
        for (int64_t h = 0; h < 2; h++) {
          for (int64_t d = 0; d < 8; d++)
            p.k.at(((2 + h) * 170 + s) * 8 + d) = static_cast<T>(d % 2 ? kNaN : kInfinity);
          for (int64_t e = 0; e < 24; e++)
            p.v.at(((2 + h) * 170 + s) * 24 + e) = static_cast<T>(e % 2 ? kNaN : -kInfinity);
        }
      };
      if (kind == 0) {
        p.use_lengths({170, 100});
        for (int64_t s = 100; s < 170; s++) spoil(s);
      } else if (kind == 1) {
        p.use_keep(0.2);
        for (int64_t row = 80; row < 160; row++)
          p.keep.at(row * 170 + 77) = p.keep.at(row * 170 + 150) = 0;  // all of sample 1
        spoil(77), spoil(150);
      } else {
        p.options.mask.window = 20;  // queries 0..39 are at keys 130..169: keys before 110 are hidden from all
        spoil(109);
      }
      Results<T> r(tested, p);
      for (auto part : {&Results<T>::o, &Results<T>::dq, &Results<T>::dk, &Results<T>::dv}) {
        int64_t bad = 0;
        for (int64_t i = 0; i < (r.*part).view.numel(); i++) bad += !std::isfinite((r.*part).at(i));
        CHECK(bad == 0);
      }
      check_against_reference(tested, p);
    }
  }
}

TEST_CASE_TEMPLATE("kernels: attention: a causal query does not see what later keys hold", T, float, double) {
  for (Device* device : others()) {
    Device& tested = *device;
    CAPTURE(tested.name());
    Problem<T> p({1, 1, 100, 100, 8, 8}, false);
    p.options.mask.causal = true;
    for (int64_t e = 0; e < 8; e++) p.v.at(99 * 8 + e) = static_cast<T>(kNaN);  // only the last query sees it
    Results<T> r(tested, p);
    int64_t bad = 0;
    for (int64_t i = 0; i < 99 * 8; i++) bad += !std::isfinite(r.o.at(i)) + !std::isfinite(r.dq.at(i));
    CHECK(bad == 0);
    for (int64_t e = 0; e < 8; e++) CHECK(std::isnan(r.o.at(99 * 8 + e)));
  }
}

TEST_CASE_TEMPLATE("kernels: attention: scores far beyond what exp can take", T, float, double) {
  for (Device* device : others()) {
    Device& tested = *device;
    CAPTURE(tested.name());
    Problem<T> p({1, 1, 40, 300, 8, 8}, false);
    p.options.scale = 1e3;
    check_against_reference(tested, p, false, 200 * kTolerance<T>);  // the scores themselves are rounded at 1e3
  }
}

TEST_CASE_TEMPLATE("kernels: attention: dropout of 1 leaves nothing, first_sample shifts the samples", T, float,
                   double) {
  for (Device* device : others()) {
    Device& tested = *device;
    CAPTURE(tested.name());
    Problem<T> p({2, 2, 20, 30, 8, 8}, false);
    p.options.dropout = {1, 5, 0};
    Results<T> none(tested, p);
    for (int64_t i = 0; i < none.o.view.numel(); i++) CHECK(none.o.at(i) == 0);
    p.options.dropout = {0.3, 5, 40};
    check_against_reference(tested, p);
  }
}

TEST_CASE_TEMPLATE("kernels: attention: empty sizes", T, float, double) {
  for (Device* device : others()) {
    Device& tested = *device;
    CAPTURE(tested.name());
    for (const Sizes& n : std::vector<Sizes>{{0, 2, 3, 4, 5, 6},
                                             {1, 0, 3, 4, 5, 6},
                                             {1, 2, 0, 4, 5, 6},
                                             {1, 2, 3, 0, 5, 6},
                                             {1, 2, 3, 4, 0, 6},
                                             {1, 2, 3, 4, 5, 0}}) {
      Problem<T> p(n, false);
      check_against_reference(tested, p);
    }
  }
}

TEST_CASE_TEMPLATE("kernels: attention: the same bits for any number of threads", T, float, double) {
  Device& tested = device("cpu");
  for (const Sizes& n : std::vector<Sizes>{{1, 1, 700, 600, 16, 16}, {1, 3, 300, 300, 8, 8}, {2, 4, 100, 200, 8, 8}}) {
    for (bool causal : {false, true}) {
      Problem<T> p(n, false);
      p.options.mask.causal = causal;
      p.options.dropout = {0.2, 1, 0};
      const Threads one(1);
      Results<T> expected(tested, p);
      for (int threads : {2, 3, 5}) {
        const Threads several(threads);
        Results<T> actual(tested, p);
        CHECK(same(actual, expected));
      }
    }
  }
}

TEST_CASE("kernels: attention: keys, values and the mask may repeat along samples and heads") {
  for (Device* device : others()) {
    Device& tested = *device;
    CAPTURE(tested.name());
    Problem<double> p({2, 3, 40, 150, 8, 8}, false);
    p.use_keep(0.3);
    p.k.view.strides[1] = p.v.view.strides[1] = 0;
    p.options.mask.keep.strides[0] = p.options.mask.keep.strides[1] = 0;
    check_against_reference(tested, p);
    p.options.mask.keep.strides[3] = 40;  // (S, T) in memory
    p.options.mask.keep.strides[2] = 1;
    check_against_reference(tested, p);
  }
}

TEST_CASE("kernels: attention: gradients that are not wanted may be absent") {
  for (Device* device : others()) {
    Device& tested = *device;
    CAPTURE(tested.name());
    Problem<double> p({1, 2, 70, 140, 8, 8}, false);
    Results<double> r(tested, p);
    Array<double> dk(p.k.view.shape, false, kNaN);
    View lse = r.lse.view;
    lse.shape = {1, 2, 70}, lse.strides = {140, 70, 1};
    on_device(tested, {dk.view, p.dout.view, p.q.view, p.k.view, p.v.view, r.o.view, lse}, [&](const auto& x) {
      tested.attention_grad({}, x[0], {}, x[1], x[2], x[3], x[4], x[5], x[6], p.options);
    });
    CHECK(difference(dk, r.dk) == 0);
  }
}

TEST_CASE("kernels: attention: gradients by central differences") {
  Device& tested = device("cpu");
  Problem<double> p({1, 2, 6, 140, 5, 4}, false);
  p.options.mask.causal = true;
  p.options.mask.window = 137;
  p.use_keep(0.2);
  p.options.dropout = {0.25, 12, 0};
  Results<double> r(tested, p);
  const auto loss = [&] {  // sum of o * dout
    Results<double> at(tested, p);
    double sum = 0;
    for (int64_t i = 0; i < at.o.view.numel(); i++) sum += at.o.at(i) * p.dout.at(i);
    return sum;
  };
  const auto check = [&](Array<double>& x, Array<double>& dx, int64_t step) {
    constexpr double h = 1e-5;
    for (int64_t i = 0; i < x.view.numel(); i += step) {
      const double value = x.at(i);
      x.at(i) = value + h;
      const double up = loss();
      x.at(i) = value - h;
      const double down = loss();
      x.at(i) = value;
      CHECK(std::abs((up - down) / (2 * h) - dx.at(i)) < 1e-8);
    }
  };
  check(p.q, r.dq, 1);
  check(p.k, r.dk, 7);
  check(p.v, r.dv, 7);
}
