// Matrix products of `cpu` and of CUDA against the plain loops of `reference`: every layout, the sizes at which paths change, BLAS
// itself.
#include <doctest/doctest.h>
#include <omp.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tensor/blas.h"
#include "tensor/device.h"
#include "tests/compare_devices.h"

using namespace heed;
using namespace heed::compare;

namespace {

struct Sizes {
  Shape lead;
  int64_t M, N, K;
};

Shape with(Shape lead, int64_t rows, int64_t columns) {
  lead.push_back(rows);
  lead.push_back(columns);
  return lead;
}

double tolerance(DType dtype) { return dtype == DType::f32 ? 3e-5 : 1e-12; }

void check(const Sizes& n, DType dtype, Layout lc, Layout la, Layout lb, double alpha, double beta) {
  Array c = random(with(n.lead, n.M, n.N), dtype, lc, -2, 2, 1);
  if (beta == 0) c.fill([] { return kNaN; });  // must not be read
  agree(text("matmul ", n.lead, " ", n.M, " ", n.N, " ", n.K, " layouts ", static_cast<int>(lc), static_cast<int>(la),
             static_cast<int>(lb), " beta ", beta),
        {c, random(with(n.lead, n.M, n.K), dtype, la, -2, 2, 2), random(with(n.lead, n.K, n.N), dtype, lb, -2, 2, 3)},
        tolerance(dtype),
        [&](Device& device, const std::vector<View>& v) { device.matmul(v[0], v[1], v[2], alpha, beta); });
}

constexpr auto kPlain = Layout::contiguous;

Array as_f64(const Array& x, const Shape& shape, Layout layout) {
  Array wide(shape, DType::f64, layout);
  for (size_t i = 0; i < x.size(); i++) wide.set(i, x.get(i));
  return wide;
}

// f16 and bf16 against the f64 product of the same numbers. A product of two halves is exact in f32, so that only the
// sums round: a device that adds in halves is off by a hundred times the tolerance.
void check_halves(const Sizes& n, DType half, Layout lc, Layout la, Layout lb, double alpha, double beta) {
  const Shape sc = with(n.lead, n.M, n.N), sa = with(n.lead, n.M, n.K), sb = with(n.lead, n.K, n.N);
  Array c = random(sc, DType::f32, lc, -2, 2, 1);
  if (beta == 0) c.fill([] { return kNaN; });
  const Array a = random(sa, half, la, -2, 2, 2), b = random(sb, half, lb, -2, 2, 3);
  INFO(name_of(half), " ", n.lead, " ", n.M, " ", n.N, " ", n.K, " layouts ", static_cast<int>(lc), " ",
       static_cast<int>(la), " ", static_cast<int>(lb), " beta ", beta);
  const Run run = [&](Device& device, const std::vector<View>& v) { device.matmul(v[0], v[1], v[2], alpha, beta); };
  const std::vector<Array> expected =
      results(reference_device(), {as_f64(c, sc, lc), as_f64(a, sa, la), as_f64(b, sb, lb)}, run);
  std::vector<Device*> all = gpu_devices();
  for (Device* plain : {&reference_device(), &device("cpu")}) all.push_back(plain);
  for (Device* device : all) check_near(*device, results(*device, {c, a, b}, run), expected, 1e-5);
}

const std::vector<DType> kHalves = {DType::f16, DType::bf16};

}  // namespace

TEST_CASE("kernels: matmul: every layout of every operand") {
  for (const Sizes& n : std::vector<Sizes>{{{}, 3, 4, 5}, {{2, 3}, 4, 2, 3}}) {
    for (Layout lc : kLayouts) {
      for (Layout la : kInputLayouts) {
        for (Layout lb : kInputLayouts) {
          check(n, DType::f32, lc, la, lb, 1, 0);
          check(n, DType::f64, lc, la, lb, -0.5, 1.5);
        }
      }
    }
  }
}

TEST_CASE("kernels: matmul: sizes, rows and columns") {
  const auto transposed = [](View v) {
    const int last = v.rank() - 1;
    std::swap(v.shape[last], v.shape[last - 1]);
    std::swap(v.strides[last], v.strides[last - 1]);
    return v;
  };
  for (DType dtype : {DType::f32, DType::f64}) {
    for (int64_t M : {1, 2, 7, 33, 65}) {
      for (int64_t N : {1, 3, 16, 33}) {
        for (int64_t K : {1, 5, 32, 100}) {
          check({{3}, M, N, K}, dtype, Layout::padded, Layout::stepped, kPlain, 2, 0.5);
          for (int which = 0; which < 8; which++) {  // of c, a, b that lie transposed
            const bool tc = which & 1, ta = which & 2, tb = which & 4;
            agree(
                text("matmul ", M, " ", N, " ", K, " transposed ", which),
                {tc ? random({N, M}, dtype) : random({M, N}, dtype), ta ? random({K, M}, dtype) : random({M, K}, dtype),
                 tb ? random({N, K}, dtype) : random({K, N}, dtype)},
                tolerance(dtype), [&](Device& device, const std::vector<View>& v) {
                  device.matmul(tc ? transposed(v[0]) : v[0], ta ? transposed(v[1]) : v[1],
                                tb ? transposed(v[2]) : v[2], 1, 0);
                });
          }
        }
      }
    }
  }
}

TEST_CASE("kernels: matmul: rank 2 to 8, and leading axes that one operand repeats") {
  const Shape lead = {2, 1, 3, 2, 1, 2};
  for (int rank = 2; rank <= 8; rank++) {
    Shape first;
    for (int i = 0; i < rank - 2; i++) first.push_back(lead[i]);
    check({first, 5, 6, 7}, DType::f64, kPlain, kPlain, kPlain, 1, 0);
  }
  // Which leading axes of a and of b are repeated (stride 0): all 16 combinations for two axes.
  for (int bits = 0; bits < 16; bits++) {
    for (int64_t M : {1, 5}) {
      const auto repeat = [&](View v, int which) {
        for (int i = 0; i < 2; i++) {
          if (which >> i & 1) v.strides[i] = 0;
        }
        return v;
      };
      agree(text("repeated axes ", bits, " M ", M),
            {random({3, 4, M, 6}, DType::f64), random({3, 4, M, 7}, DType::f64, kPlain, -2, 2, 2),
             random({3, 4, 7, 6}, DType::f64, kPlain, -2, 2, 3)},
            1e-12, [&](Device& device, const std::vector<View>& v) {
              device.matmul(v[0], repeat(v[1], bits & 3), repeat(v[2], bits >> 2), 1, 0.5);
            });
    }
  }
}

TEST_CASE("kernels: matmul: repeated axes of operands that must be copied") {
  agree("stepped operands, repeated",
        {random({2, 3, 4, 5}, DType::f64), random({2, 3, 4, 6}, DType::f64, Layout::stepped, -2, 2, 2),
         random({2, 3, 6, 5}, DType::f64, Layout::stepped, -2, 2, 3)},
        1e-12, [](Device& device, std::vector<View> v) {
          v[1].strides[0] = 0;
          v[2].strides[1] = 0;
          device.matmul(v[0], v[1], v[2], 1, 0);
        });
}

TEST_CASE("kernels: matmul: rows that overlap") {  // a row of a starts one element after the row before
  agree("windows", {random({6, 3}, DType::f64), random({9}, DType::f64), random({4, 3}, DType::f64)}, 1e-12,
        [](Device& device, std::vector<View> v) {
          v[1].shape = {6, 4};
          v[1].strides = {1, 1};
          device.matmul(v[0], v[1], v[2], 1, 0);
        });
}

TEST_CASE("kernels: matmul: halves with f32 sums, every layout of every operand") {
  for (DType half : kHalves) {
    for (Layout lc : kLayouts) {
      for (Layout la : kInputLayouts) {
        for (Layout lb : kInputLayouts) check_halves({{2, 3}, 4, 2, 3}, half, lc, la, lb, 1, 0);
      }
    }
  }
}

TEST_CASE("kernels: matmul: halves with f32 sums, sizes and rows and columns") {
  for (DType half : kHalves) {
    for (int64_t M : {1, 7, 33}) {
      for (int64_t N : {1, 7, 33}) {
        for (int64_t K : {1, 7, 100}) {
          check_halves({{}, M, N, K}, half, kPlain, kPlain, kPlain, 1, 0);
          check_halves({{}, M, N, K}, half, kPlain, Layout::transposed, Layout::padded, -0.5, 1.5);
          check_halves({{3}, M, N, K}, half, Layout::padded, Layout::stepped, Layout::transposed, 1, 0);
          check_halves({{2, 3}, M, N, K}, half, Layout::transposed, Layout::padded, Layout::row, 2, 0.25);
        }
      }
    }
    for (double beta : {0.0, 0.25}) {
      check_halves({{}, 0, 4, 5}, half, kPlain, kPlain, kPlain, 1, beta);
      check_halves({{}, 4, 0, 5}, half, kPlain, kPlain, kPlain, 1, beta);
      check_halves({{2}, 4, 5, 0}, half, Layout::padded, kPlain, kPlain, 1, beta);
      check_halves({{0, 3}, 4, 5, 6}, half, kPlain, kPlain, kPlain, 1, beta);
    }
  }
}

TEST_CASE("kernels: matmul: views of a (B, T, 3, H, D) tensor") {
  const int64_t B = 2, T = 9, H = 3, D = 8;
  agree("scores", {random({B, H, T, T}, DType::f32), random({B, T, 3, H, D}, DType::f32)}, 3e-5,
        [&](Device& device, const std::vector<View>& v) {
          const auto part = [&](int64_t i) {
            return View{v[1].as<float>() + i * H * D, {B, H, T, D}, {T * 3 * H * D, D, 3 * H * D, 1}, DType::f32};
          };
          View k = part(1);
          std::swap(k.shape[2], k.shape[3]);
          std::swap(k.strides[2], k.strides[3]);
          device.matmul(v[0], part(0), k, 0.3, 0);      // q k^T
          device.matmul(part(0), v[0], part(2), 1, 0);  // weights v, written into q's place
        });
}

TEST_CASE("kernels: matmul: empty sizes") {
  for (double beta : {0.0, 1.0, 0.25}) {
    check({{}, 0, 4, 5}, DType::f32, kPlain, kPlain, kPlain, 1, beta);
    check({{}, 4, 0, 5}, DType::f32, kPlain, kPlain, kPlain, 1, beta);
    check({{2}, 4, 5, 0}, DType::f64, Layout::padded, kPlain, kPlain, 1, beta);  // beta c
    check({{0, 3}, 4, 5, 6}, DType::f64, kPlain, kPlain, kPlain, 1, beta);
  }
}

TEST_CASE("kernels: matmul: a batch gives the same bits for any number of threads") {
  check({{40}, 33, 40, 20}, DType::f32, kPlain, kPlain, kPlain, 1, 0);
  check({{3, 5}, 64, 65, 30}, DType::f64, Layout::reversed, Layout::reversed, Layout::stepped, 1, 0);
}

TEST_CASE("kernels: matmul: large products, on one and on two threads") {
  for (const Sizes& n :
       std::vector<Sizes>{{{}, 200, 150, 170}, {{3}, 130, 120, 110}, {{}, 1, 300, 400}, {{}, 500, 1, 300}}) {
    for (DType dtype : {DType::f32, DType::f64}) {
      const std::vector<Array> arrays = {Array(with(n.lead, n.M, n.N), dtype), random(with(n.lead, n.M, n.K), dtype),
                                         random(with(n.lead, n.K, n.N), dtype, kPlain, -2, 2, 3)};
      const Run run = [](Device& device, const std::vector<View>& v) { device.matmul(v[0], v[1], v[2], 1, 0); };
      const std::vector<Array> expected = results(reference_device(), arrays, run);
      const int before = omp_get_max_threads();
      for (int threads : {1, 2}) {
        omp_set_num_threads(threads);
        const std::vector<Array> got = results(device("cpu"), arrays, run);
        size_t wrong = 0;
        for (size_t i = 0; i < got[0].size(); i++)
          wrong += !near(got[0].get(i), expected[0].get(i), 10 * tolerance(dtype));
        CHECK(wrong == 0);
      }
      omp_set_num_threads(before);
    }
  }
}

TEST_CASE("blas: the self-check passes, and threads are set for OpenMP and BLAS alike") {
  CHECK_NOTHROW(check_blas());
  CHECK(!blas_description().empty());
  const int before = threads();
  CHECK(set_threads(1).empty());
  CHECK(threads() == 1);
  CHECK(set_threads(0).size() <= 1);  // a warning if this BLAS does not share OpenMP's threads
  CHECK(threads() == before);
  const std::vector<std::string> warnings = set_threads(omp_get_num_procs() + 1);
  REQUIRE(!warnings.empty());
  CHECK(warnings[0].find("cores") != std::string::npos);
  set_threads(before);
}

TEST_CASE("blas: sizes beyond BLAS's counting are refused, not wrapped") {
  const float a = 1, b = 1;
  float c = 0;
  CHECK_THROWS_AS(gemm(false, false, int64_t{1} << 32, 1, 1, 1.0f, &a, 1, &b, 1, 0.0f, &c, 1), ShapeError);
}
