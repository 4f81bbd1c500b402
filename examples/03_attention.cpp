// Scaled dot-product attention, one step at a time, with the numbers of the first article.
//
//   attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V        (Vaswani et al. 2017, equation 1)
//
// Two queries look at two keys; each takes a weighted mean of the two values.
//
// Output:
//   scores   Q K^T                  [[0.5 1.5]
//                                    [1.  3. ]]
//   weights  softmax(scores / 1)    [[0.2689 0.7311]
//                                    [0.1192 0.8808]]
//   output   weights V              [[17.3106]
//                                    [18.808 ]]
//   d sum(output) / dQ              [[1.9661]
//                                    [1.0499]]
//   causal: query 0 sees key 0 only [[1.     0.    ]
//                                    [0.1192 0.8808]]
#include <iostream>

#include "autograd/ops.h"

using namespace heed;

void show(const char* title, const Tensor& x) {
  std::string rows = x.to_string();
  for (size_t at = 0; (at = rows.find('\n', at)) != std::string::npos; at++) rows.insert(at + 1, 32, ' ');
  std::cout << std::left << title << std::string(32 - std::string(title).size(), ' ') << rows << '\n';
}

int main() {
  Variable Q(tensor({{1}, {2}}), true, "Q"), K(tensor({{0.5}, {1.5}}), true, "K"), V(tensor({{10}, {20}}), true, "V");  // (2, 1) each
  const double d_k = 1;

  Variable scores = matmul(Q, transpose(K, 0, 1));  // (2, 2): row i holds what query i makes of each key
  show("scores   Q K^T", scores.value());

  Variable weights = softmax(scores / std::sqrt(d_k));  // each row sums to 1
  show("weights  softmax(scores / 1)", weights.value());

  Variable output = matmul(weights, V);  // (2, 1)
  show("output   weights V", output.value());

  sum(output).backward();
  show("d sum(output) / dQ", Q.grad());

  // A causal mask hides what lies ahead: a hidden score becomes -inf, its weight exp(-inf) = 0.
  const Tensor ahead = triu(ones({2, 2}), 1);
  show("causal: query 0 sees key 0 only", softmax(masked_fill(scores, ahead, -INFINITY)).value());
}
