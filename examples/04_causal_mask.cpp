// A causal mask, as the first article uses it: 10 tokens of width 512, one head of width 64, the lower triangle visible.
//
// A decoder must not look at words that it has yet to say. Hidden scores become -inf, so their weights are exactly 0, and
// whatever stands at a later position cannot change an earlier output.
//
// Output:
//   x (1, 10, 512) -> output (1, 10, 64)
//   the weights of each token, in percent:
//   token 0  100    .    .    .    .    .    .    .    .    .
//   token 1   66   34    .    .    .    .    .    .    .    .
//   token 2   35   23   43    .    .    .    .    .    .    .
//   token 3   40   18   22   21    .    .    .    .    .    .
//   token 4   18   18   17   14   32    .    .    .    .    .
//   token 5   29   13   10   14   15   19    .    .    .    .
//   token 6    8   15   21   18   17    9   11    .    .    .
//   token 7    9   22   12   17    7   10   11   12    .    .
//   token 8   10    9    7   18   14    7   15   11    9    .
//   token 9   12    9   10   12    7    8    9    9   14    8
//   token 9 changed: output 0 stays
//   token 9 changed: output 8 stays
//   token 9 changed: output 9 changes
#include <cstdio>

#include "nn/attention.h"

using namespace heed;

int main() {
  Random random(1);
  const int64_t T = 10, d_model = 512, d_k = 64;
  Tensor x = randn({1, T, d_model}, random);
  nn::SingleHeadAttention attention(d_model, d_k, random);
  attention.keep_weights(true);

  const Variable output = attention.forward(Variable(x), nn::Mask::causal());  // (1, T, d_k)
  std::printf("x (%lld, %lld, %lld) -> output (%lld, %lld, %lld)\n", 1LL, (long long)T, (long long)d_model,
              (long long)output.size(0), (long long)output.size(1), (long long)output.size(2));

  std::printf("the weights of each token, in percent:\n");
  const Tensor weights = attention.weights();  // (1, 1, T, T)
  for (int64_t i = 0; i < T; i++) {
    std::printf("token %lld", (long long)i);
    for (int64_t j = 0; j < T; j++) {
      const double w = weights.at({0, 0, i, j});
      j <= i ? std::printf("%5.0f", 100 * w) : std::printf("%5s", w == 0 ? "." : "?");
    }
    std::printf("\n");
  }

  // Another last token: every output but the last stays the same, to the bit.
  Tensor other = x.contiguous_copy();
  other.slice(1, T - 1, T).affine_(-3, 1);
  const Variable changed = attention.forward(Variable(other), nn::Mask::causal());
  const Tensor moved = max(abs(sub(changed.value(), output.value())), {0, 2});  // (T,)
  for (const int64_t i : {int64_t{0}, T - 2, T - 1}) {
    std::printf("token 9 changed: output %lld %s\n", (long long)i, moved.at({i}) == 0 ? "stays" : "changes");
  }
}
