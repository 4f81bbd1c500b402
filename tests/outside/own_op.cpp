// A program outside the tree: it defines its own op, its own module and its own training loop, on an installed heed.
//
//   g++ own_op.cpp $(pkg-config --cflags --libs heed) -o own_op && ./own_op
#include <cmath>
#include <cstdio>

#include "autograd/gradcheck.h"
#include "autograd/ops.h"
#include "nn/linear.h"
#include "train/optimizer.h"

using namespace heed;

// An op of one's own: y = log(1 + exp(x)), dx = dy sigmoid(x).
struct Softplus final : Node {
  static constexpr Text text{"softplus", "y = log(1 + exp(x))", "dx = dy / (1 + exp(-x))"};
  Saved x{this};
  Tensor forward(const Tensor& input) { return log(exp(x = input) + 1); }
  void backward(const Tensor& dy) override { give(0, dy * sigmoid(x.get())); }
};
Variable softplus(const Variable& x, Site at = Site::here()) { return record<Softplus>(at, x); }

// A module of one's own: 1 -> 16 -> 1.
class Curve final : public nn::Module {
 public:
  nn::Linear hidden, out;
  explicit Curve(Random& random) : hidden(1, 16, random), out(16, 1, random) {
    child("hidden", hidden);
    child("out", out);
  }
  Variable forward(const Variable& x) {
    Scope in(*this);
    return out.forward(softplus(hidden.forward(x)));
  }
};

int main() {
  const GradcheckResult check = gradcheck([](const std::vector<Variable>& in) { return softplus(in[0]); }, {from_vector<double>({-2, 0.5, 3}, {3}, DType::f64)});
  std::printf("gradcheck of softplus: %s\n", check ? "passed" : check.report.c_str());

  Random random(1);
  Curve model(random);
  train::Adam optimizer({{model.variables()}}, 0.02);
  const Variable x((arange(64) / 16.0 - 2.0).reshape({64, 1}));
  const Variable y(sin(x.value()));
  double loss_value = 0;
  for (int step = 0; step < 1500; step++) {  // a training loop of one's own
    Variable loss = mse(model.forward(x), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    loss_value = loss.item();
  }
  std::printf("loss after 1500 steps is below 0.001: %s\n", loss_value < 0.001 ? "yes" : "no");
  return check && loss_value < 0.001 ? 0 : 1;
}
