#include "autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heed {

namespace {

using Function = std::function<Variable(const std::vector<Variable>&)>;
using Values = std::vector<double>;

constexpr size_t kRows = 64;

// What is compared: w . f(x), for a w that is 1 at one output element, or random. Its gradient is a row of the
// Jacobian, or a random sum of all rows.
struct Direction {
  std::string name;
  Values weights;                 // one for each output element
  std::vector<Values> gradients;  // by backpropagation: one for each input
};

class Check {
 public:
  Check(const Function& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options)
      : f_(f), options_(options) {
    for (const Tensor& input : inputs) {
      if (input.dtype() != DType::f64)
        throw DTypeError(text("gradcheck: input ", inputs_.size(), " is ", name_of(input.dtype()), ", it must be f64"));
      inputs_.emplace_back(input.contiguous_copy(), true);
      arrived_.push_back(input.numel() == 0);
    }
  }

  GradcheckResult run() {
    const Variable y = f_(inputs_);
    if (!y.requires_grad()) return fail("the output does not depend on the inputs through the tape");
    if (y.dtype() != DType::f64) return fail("the output is not f64");
    if (!repeats(y))
      return fail("two calls with the same inputs gave different outputs; call set_dropout_stream within the function");
    choose_directions(y.numel());
    for (Direction& direction : directions_) backpropagate(y, direction);
    for (size_t i = 0; i < inputs_.size(); i++) {
      if (!arrived_[i]) return fail(text("no gradient of its shape arrived at input ", i, " ", inputs_[i].shape()));
    }
    for (size_t i = 0; i < inputs_.size(); i++) compare_input(i);
    if (!moved_) complain(text("no input moves the output ", y.shape()));
    if (moved_ && all_zero_) complain("every gradient is 0, although an input moves the output");
    result_.passed = result_.report.empty();
    return result_;
  }

 private:
  GradcheckResult fail(const std::string& why) {
    complain(why);
    return result_;
  }
  void complain(const std::string& why) { result_.report += (result_.report.empty() ? "gradcheck: " : "; ") + why; }

  bool repeats(const Variable& y) const {
    const NoGrad off_the_tape;
    const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    const Values first = y.value().to_vector<double>(), second = f_(inputs_).value().to_vector<double>();
    return std::equal(first.begin(), first.end(), second.begin(), second.end(), same);
  }

  void choose_directions(int64_t outputs) {
    Random random(options_.seed);
    const size_t n = static_cast<size_t>(outputs);
    std::vector<size_t> rows(n);
    std::iota(rows.begin(), rows.end(), size_t{0});
    if (n > kRows) random.shuffle(rows);
    for (size_t r = 0; r < std::min(n, kRows); r++) {
      directions_.push_back({text("of output element ", rows[r]), Values(n), {}});
      directions_.back().weights[rows[r]] = 1;
    }
    directions_.push_back({"with a random upstream gradient", Values(n), {}});
    for (double& weight : directions_.back().weights) weight = random.normal();
  }

  void backpropagate(const Variable& y, Direction& direction) {
    for (Variable& x : inputs_) x.zero_grad();
    y.backward(from_vector(direction.weights, y.shape(), DType::f64).to(y.value().device()), true);
    for (size_t i = 0; i < inputs_.size(); i++) {
      const Tensor grad = inputs_[i].grad();
      const bool fits = grad.defined() && grad.shape() == inputs_[i].shape();
      if (fits) arrived_[i] = true;
      direction.gradients.push_back(fits ? grad.to_vector<double>() : Values(static_cast<size_t>(inputs_[i].numel())));
    }
  }

  // Moves every element of input i up and down.
  void compare_input(size_t i) {
    const NoGrad off_the_tape;
    const Values x = inputs_[i].value().to_vector<double>();
    Tensor flat = inputs_[i].value().reshape({inputs_[i].numel()});  // a view
    for (size_t k = 0; k < x.size(); k++) {
      const int64_t at = static_cast<int64_t>(k);
      const double h = options_.step * std::max(1.0, std::fabs(x[k])), high = x[k] + h, low = x[k] - h;
      flat.set({at}, high);
      Values slope = f_(inputs_).value().to_vector<double>();
      flat.set({at}, low);
      const Values below = f_(inputs_).value().to_vector<double>();
      flat.set({at}, x[k]);
      for (size_t j = 0; j < slope.size(); j++) slope[j] = (slope[j] - below[j]) / (high - low);
      for (const Direction& direction : directions_) {
        compare(direction, i, k, std::inner_product(slope.begin(), slope.end(), direction.weights.begin(), 0.0));
      }
    }
  }

  void compare(const Direction& direction, size_t i, size_t k, double numeric) {
    const double analytic = direction.gradients[i][k];
    const double error = std::fabs(analytic - numeric) / std::max({1.0, std::fabs(analytic), std::fabs(numeric)});
    if (!(numeric == 0)) moved_ = true;
    if (!(analytic == 0)) all_zero_ = false;
    if (!(error <= result_.largest_error) && !std::isnan(result_.largest_error)) result_.largest_error = error;
    if (error <= options_.tolerance || wrong_++ > 0) return;  // NaN does not return; the first wrong element is shown
    complain(text("the gradient of input ", i, " ", inputs_[i].shape(), " at element ", k, ", ", direction.name,
                  ", is ", analytic, " by backpropagation and ", numeric, " by differences"));
  }

  const Function& f_;
  const GradcheckOptions& options_;
  std::vector<Variable> inputs_;
  std::vector<bool> arrived_;
  std::vector<Direction> directions_;
  bool moved_ = false, all_zero_ = true;
  int64_t wrong_ = 0;
  GradcheckResult result_;
};

}  // namespace

GradcheckResult gradcheck(const std::function<Variable(const std::vector<Variable>&)>& f,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  return Check(f, inputs, options).run();
}

}  // namespace heed
