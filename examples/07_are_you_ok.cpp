// "Are you OK ?": the third article's walk through multi-head attention, with the shape of everything on the way.
//
// 4 words of width 512, 8 heads of width 512 / 8 = 64. Each head works out its own 4 x 4 table of who looks at whom; their
// outputs, side by side, are as wide as the input again, so that it can be added to them.
//
// Output:
//   the words, embedded                                 (1, 4, 512)
//   + positions: x                                      (1, 4, 512)
//   q, k, v: three linear layers                        (1, 4, 512)
//   q, k, v cut into heads                              (1, 8, 4, 64)
//   k transposed                                        (1, 8, 64, 4)
//   scores: q k^T / sqrt(64), word by word              (1, 8, 4, 4)
//   weights: softmax, each row sums to 1                (1, 8, 4, 4)
//   weights v: of each head                             (1, 8, 4, 64)
//   the heads side by side                              (1, 4, 512)
//   one more linear layer                               (1, 4, 512)
//   Add & Norm: layer_norm(x + that)                    (1, 4, 512)
//   the module MultiHeadSelfAttention gives the same: yes
#include <cmath>
#include <cstdio>
#include <iostream>

#include "nn/attention.h"
#include "nn/embedding.h"
#include "nn/positions.h"

using namespace heed;

void show(const char* what, const Variable& x) {
  std::cout << std::left;
  std::cout.width(52);
  std::cout << what << x.shape() << '\n';
}

int main() {
  const int64_t d_model = 512, heads = 8;
  const double d_k = static_cast<double>(d_model / heads);
  Random random(1);
  nn::Embedding embedding(4, d_model, random);  // a vocabulary of these four words
  nn::SinusoidalPositions positions(16, d_model);
  nn::MultiHeadSelfAttention attention(d_model, heads, random);

  const Tensor words = indices({0, 1, 2, 3}, {1, 4});  // Are you OK ?
  const Variable embedded = embedding.forward(words);
  show("the words, embedded", embedded);
  const Variable x = positions.forward(embedded);
  show("+ positions: x", x);

  const Variable q = attention.w_q.forward(x), k = attention.w_k.forward(x), v = attention.w_v.forward(x);
  show("q, k, v: three linear layers", q);
  const Variable qs = nn::split_heads(q, heads), ks = nn::split_heads(k, heads), vs = nn::split_heads(v, heads);
  show("q, k, v cut into heads", qs);
  show("k transposed", transpose(ks, -2, -1));
  const Variable scores = matmul(qs, transpose(ks, -2, -1)) / std::sqrt(d_k);
  show("scores: q k^T / sqrt(64), word by word", scores);
  const Variable weights = softmax(scores);
  show("weights: softmax, each row sums to 1", weights);
  const Variable mixed = matmul(weights, vs);
  show("weights v: of each head", mixed);
  const Variable joined = nn::join_heads(mixed);
  show("the heads side by side", joined);
  const Variable projected = attention.w_o.forward(joined);
  show("one more linear layer", projected);
  const Variable output = attention.layer_norm.forward(x + projected);
  show("Add & Norm: layer_norm(x + that)", output);

  const Variable module = attention.forward(x).output;
  const double difference = max(abs(sub(module.value(), output.value()))).item();
  std::printf("the module MultiHeadSelfAttention gives the same: %s\n", difference < 1e-5 ? "yes" : "no");
}
