// Why scores are divided by sqrt(d_k).
//
// The product of two random vectors of width d_k has variance d_k. Unscaled, softmax soon puts nearly all weight on one
// key, and where it is that sure of itself its gradient vanishes: nothing more is learned. Divided by sqrt(d_k), scores
// have variance 1 at every width. (The second article asks for it "beyond d_k = 64"; the table shows it at 16.)
//
// One query looks at 16 random keys; mean of the largest weight and median of |d output / d query|, over 200 draws.
//
// Output:
//           unscaled                 / sqrt(d_k)
//    d_k    weight   gradient        weight   gradient
//      4     0.42    4.7e-01          0.23    2.4e-01
//     16     0.68    8.8e-01          0.24    2.6e-01
//     64     0.86    2.8e-01          0.26    2.7e-01
//    256     0.92    1.0e-01          0.24    2.7e-01
//   1024     0.96    1.4e-04          0.25    2.7e-01
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "autograd/ops.h"

using namespace heed;

namespace {

struct Result {
  double largest_weight, gradient;
};

Result attend(int64_t d_k, double scale, uint64_t seed) {
  Random random(seed);
  Variable q(randn({1, d_k}, random), true);
  const Tensor keys = randn({16, d_k}, random), values = randn({16, 1}, random);
  const Variable weights = softmax(matmul(q, Variable(keys.transpose(0, 1))) * scale);  // (1, 16)
  matmul(weights, Variable(values)).backward(ones({1, 1}));
  return {max(weights.value()).item(), std::sqrt(sum_of_squares(q.grad()))};
}

Result average(int64_t d_k, double scale) {
  std::vector<double> gradients;
  double largest = 0;
  for (uint64_t seed = 0; seed < 200; seed++) {
    const Result one = attend(d_k, scale, seed);
    largest += one.largest_weight / 200;
    gradients.push_back(one.gradient);
  }
  std::nth_element(gradients.begin(), gradients.begin() + 100, gradients.end());
  return {largest, gradients[100]};
}

}  // namespace

int main() {
  std::printf("        unscaled                 / sqrt(d_k)\n");
  std::printf(" d_k    weight   gradient        weight   gradient\n");
  for (const int64_t d_k : {4, 16, 64, 256, 1024}) {
    const Result plain = average(d_k, 1), scaled = average(d_k, 1 / std::sqrt(static_cast<double>(d_k)));
    std::printf("%4lld     %.2f    %.1e          %.2f    %.1e\n", static_cast<long long>(d_k), plain.largest_weight,
                plain.gradient, scaled.largest_weight, scaled.gradient);
  }
}
