// Backpropagation on five numbers, for someone who has never seen it.
//
//   x = 2, w = -3, b = 10        (an input, a weight, a bias)
//   u = x * w                    = -6
//   v = u + b                    =  4
//   y = tanh(v / 4)              =  0.7616
//
// How much does y change if w changes a little? Backwards, from y, each step asks only "how much does my output change if my
// input does?" and multiplies that with what came from behind it: the chain rule.
//
//   dy/dv = (1 - y^2) / 4        tanh' is 1 - tanh^2, and v is divided by 4
//   dy/du = dy/dv                a sum hands the gradient on to both its terms
//   dy/db = dy/dv
//   dy/dw = dy/du * x            a product hands each factor the gradient times the other factor
//   dy/dx = dy/du * w
//
// Output:
//   y     = 0.7616
//   dy/dw = 0.2100   by hand 0.2100   by moving w a little 0.2100
//   dy/dx = -0.3150   by hand -0.3150
//   dy/db = 0.1050   by hand 0.1050
//   the steps of the backward pass, last op first:
//     tanh     receives 1
//     div      receives 0.42
//     add      receives 0.105
//     mul      receives 0.105
//     leaf   b receives 0.105
//     leaf   w receives 0.21
//     leaf   x receives -0.315
#include <cmath>
#include <cstdio>

#include "autograd/backprop.h"
#include "autograd/ops.h"

using namespace heed;

double y_at(double w) { return std::tanh((2 * w + 10) / 4); }

int main() {
  set_default_dtype(DType::f64);
  Variable x(tensor(2.0), true, "x"), w(tensor(-3.0), true, "w"), b(tensor(10.0), true, "b");

  Variable u = x * w;
  Variable v = u + b;
  Variable y = tanh(v / 4);
  y.backward();

  const double dv = (1 - y.item() * y.item()) / 4, h = 1e-5;
  std::printf("y     = %.4f\n", y.item());
  std::printf("dy/dw = %.4f   by hand %.4f   by moving w a little %.4f\n", w.grad().item(), dv * 2, (y_at(-3 + h) - y_at(-3 - h)) / (2 * h));
  std::printf("dy/dx = %.4f   by hand %.4f\n", x.grad().item(), dv * -3);
  std::printf("dy/db = %.4f   by hand %.4f\n", b.grad().item(), dv);

  // The same pass again, one step at a time. (The tape was used up by backward(), so the forward pass is done again.)
  y = tanh((x * w + b) / 4);
  std::printf("the steps of the backward pass, last op first:\n");
  for (Backprop pass(y); pass.step();) {
    const Node& node = pass.current();
    std::printf("  %-6s %-1s receives %.4g\n", node.op(), node.name().c_str(), pass.gradient().item());
  }
}
