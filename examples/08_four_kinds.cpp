// The third article's four kinds of attention on the same four words: they differ in where keys and values come from, and in
// the matrix M that is added to the scores before the softmax, 0 where a key may be seen, -inf where not.
//
//   softmax(q k^T / sqrt(d) + M) v
//
// (The article puts -inf "above the diagonal" and 0 "below": the diagonal itself is 0, every word sees itself.)
//
// Output:
//   self-attention: queries, keys and values from x
//     M    0    0    0    0   weights  67  12   3  18
//     M    0    0    0    0   weights  14  65  13   8
//     M    0    0    0    0   weights   1   3  89   7
//     M    0    0    0    0   weights   7   3  11  79
//   multi-head attention: the same in two halves of the width
//     M    0    0    0    0   weights  28  16  31  26 |  75  11   1  12
//     M    0    0    0    0   weights  12  44  25  18 |  25  58  10   7
//     M    0    0    0    0   weights   3   4  73  20 |   2  12  78   8
//     M    0    0    0    0   weights   5   5  35  55 |  24   6   6  64
//   masked attention: no word sees a later one
//     M    0 -inf -inf -inf   weights 100   0   0   0
//     M    0    0 -inf -inf   weights  18  82   0   0
//     M    0    0    0 -inf   weights   1   3  96   0
//     M    0    0    0    0   weights   7   3  11  79
//   cross-attention: keys and values from the encoder
//     M    0    0    0   weights  41  31  29
//     M    0    0    0   weights  54  21  25
//     M    0    0    0   weights   1  90   8
//     M    0    0    0   weights   5  57  37
#include <cstdio>
#include <string>

#include "nn/scaled_dot_product.h"
#include "nn/self_attention.h"

using namespace heed;

// One line a query: its row of M, and its weights in percent for every head.
void show(const char* title, const Tensor& M, const nn::AttentionOutput& result) {
  const Tensor weights = result.weights.value();  // (1, H, T, S)
  std::printf("%s\n", title);
  for (int64_t i = 0; i < weights.size(2); i++) {
    std::printf("  M");
    for (int64_t j = 0; j < weights.size(3); j++) std::printf("%5s", M.at({i, j}) == 0 ? "0" : "-inf");
    for (int64_t h = 0; h < weights.size(1); h++) {
      std::printf(h == 0 ? "   weights" : " |");
      for (int64_t j = 0; j < weights.size(3); j++) std::printf("%4.0f", 100 * weights.at({0, h, i, j}));
    }
    std::printf("\n");
  }
}

int main() {
  Random random(3);
  const int64_t T = 4, S = 3, width = 8;
  const Variable x(randn({1, T, width}, random));       // the decoder's words
  const Variable memory(randn({1, S, width}, random));  // what an encoder made of three others
  const Tensor all = zeros({T, T}), ahead = masked_fill(all, triu(ones({T, T}), 1), -INFINITY);

  const auto heads = [](const Variable& sequence, int64_t count) { return nn::split_heads(sequence, count); };
  const Variable x1 = heads(x, 1), x2 = heads(x, 2), memory1 = heads(memory, 1);

  show("self-attention: queries, keys and values from x", all, nn::scaled_dot_product_attention(x1, x1, x1));
  show("multi-head attention: the same in two halves of the width", all, nn::scaled_dot_product_attention(x2, x2, x2));
  show("masked attention: no word sees a later one", ahead,
       nn::scaled_dot_product_attention(x1, x1, x1, nn::Mask::additive(ahead)));
  show("cross-attention: keys and values from the encoder", zeros({T, S}),
       nn::scaled_dot_product_attention(x1, memory1, memory1));
}
