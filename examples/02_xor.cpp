// XOR, the smallest problem that needs a hidden layer: output 1 if exactly one of two inputs is 1.
//
// No straight line separates {(0,1), (1,0)} from {(0,0), (1,1)}, so a single linear layer cannot do it. Two layers can: the first
// bends the plane, the second draws the line. A training step is always the same five lines: forward, loss, zero the old
// gradients, backward, and a small move of every parameter against its gradient.
//
// Output:
//   step    0   loss 0.9641
//   step  200   loss 0.0267
//   step  400   loss 0.0109
//   step  600   loss 0.0065
//   step  800   loss 0.0046
//   step 1000   loss 0.0035
//   0 xor 0 = 0.001
//   0 xor 1 = 0.996
//   1 xor 0 = 0.996
//   1 xor 1 = 0.005
#include <cstdio>

#include "autograd/ops.h"

using namespace heed;

int main() {
  const Tensor inputs = tensor({{0, 0}, {0, 1}, {1, 0}, {1, 1}});  // (4, 2)
  const Tensor targets = tensor({{0}, {1}, {1}, {0}});             // (4, 1)

  Random random(1);
  Variable w1(randn({8, 2}, random), true, "w1"), b1(zeros({8}), true, "b1");  // 2 -> 8
  Variable w2(randn({1, 8}, random), true, "w2"), b2(zeros({1}), true, "b2");  // 8 -> 1
  const Variable x(inputs);

  for (int step = 0; step <= 1000; step++) {
    Variable hidden = tanh(linear(x, w1, b1));    // (4, 8)
    Variable logits = linear(hidden, w2, b2);     // (4, 1)
    Variable loss = binary_cross_entropy_with_logits(logits, targets);

    for (Variable p : {w1, b1, w2, b2}) p.zero_grad();
    loss.backward();
    for (Variable p : {w1, b1, w2, b2}) {
      Tensor value = p.value();
      value.add_(p.grad() * -0.5);  // gradient descent with learning rate 0.5
    }
    if (step % 200 == 0) std::printf("step %4d   loss %.4f\n", step, loss.item());
  }

  NoGrad scope;
  const Tensor probability = sigmoid(linear(tanh(linear(x, w1, b1)), w2, b2)).value();
  for (int64_t i = 0; i < 4; i++) {
    std::printf("%g xor %g = %.3f\n", inputs.at({i, 0}), inputs.at({i, 1}), probability.at({i, 0}));
  }
}
