// Optimizers: how parameters move against their gradients. Formulas and defaults are PyTorch's.
#pragma once
#include <map>
#include <memory>

#include "autograd/variable.h"

namespace heed::train {

// Parameters that share a weight decay.
struct ParameterGroup {
  std::vector<Variable> parameters;
  double weight_decay = 0;
};

// Two groups: matrices decay, vectors (biases, norms) do not.
std::vector<ParameterGroup> decay_groups(const std::vector<Variable>& parameters, double weight_decay);

// Base of all: walks over the parameters that have a gradient; others are left alone, moments included. UsageError for no parameters,
// for one that is no leaf or is an expanded view, and for settings outside of what the formulas allow.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // grad_scale: one number by which all gradients are multiplied first (clip_factor); undefined: 1.
  void step(const Tensor& grad_scale = {});
  void zero_grad();

  double lr() const { return lr_; }
  void set_lr(double lr);
  virtual const char* name() const = 0;

  // The moments and the step counts by "parameter path/moment", to be saved and restored; a parameter that has no name, or that of an
  // earlier one, is told by its place: "#2", "w#2". load_state lists what is missing or misshapen
  // in one Error, and then has changed nothing.
  std::map<std::string, Tensor> state() const;
  void load_state(const std::map<std::string, Tensor>& state);

 protected:
  struct Slot {  // one parameter and what the optimizer remembers of it
    Variable parameter;
    double weight_decay;
    int64_t steps = 0;
    std::vector<Tensor> moments;  // one for each moment_names()
  };
  // moment_names: what is remembered of each parameter, a tensor of its shape that starts at 0.
  Optimizer(const std::vector<ParameterGroup>& groups, double lr, std::vector<std::string> moment_names);
  virtual void update(Slot& slot, const Gradient& gradient, const Tensor& grad_scale) = 0;

 private:
  std::vector<std::string> paths() const;  // one for each slot, all different

  std::vector<Slot> slots_;
  std::vector<std::string> moment_names_;
  double lr_ = 0;
};

struct SGDOptions {
  double momentum = 0, dampening = 0;
  bool nesterov = false;
};
// g += weight_decay p;  b = momentum b + (1 - dampening) g  (b = g at the first step);  p -= lr b, or with Nesterov p -= lr (g + momentum b)
class SGD final : public Optimizer {
 public:
  SGD(const std::vector<ParameterGroup>& groups, double lr, SGDOptions options = {});
  const char* name() const override { return "sgd"; }

 private:
  void update(Slot& slot, const Gradient& gradient, const Tensor& grad_scale) override;
  SGDOptions options_;
};

struct AdamSettings {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool decoupled = false;  // AdamW
};
// Adam (Kingma & Ba 2014) and, decoupled, AdamW (Loshchilov & Hutter 2017): one fused pass over each parameter. The gradient of an
// embedding may stay Rows; rows that were not read get gradient 0, exactly as if it were dense.
class Adam final : public Optimizer {
 public:
  Adam(const std::vector<ParameterGroup>& groups, double lr, AdamSettings settings = {});
  const char* name() const override { return settings_.decoupled ? "adamw" : "adam"; }

 private:
  void update(Slot& slot, const Gradient& gradient, const Tensor& grad_scale) override;
  AdamSettings settings_;
};

struct RMSpropOptions {
  double alpha = 0.99, eps = 1e-8, momentum = 0;
  bool centered = false;
};
// v = alpha v + (1 - alpha) g^2;  p -= lr g / (sqrt(v) + eps); centered: v - mean(g)^2 in place of v (Graves 2013); Tieleman & Hinton 2012
class RMSprop final : public Optimizer {
 public:
  RMSprop(const std::vector<ParameterGroup>& groups, double lr, RMSpropOptions options = {});
  const char* name() const override { return "rmsprop"; }

 private:
  void update(Slot& slot, const Gradient& gradient, const Tensor& grad_scale) override;
  RMSpropOptions options_;
};

// "sgd", "adam", "adamw" or "rmsprop"; UsageError naming them otherwise.
std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const std::vector<Variable>& parameters, double lr, double weight_decay,
                                          double momentum);

// ---- clipping (Pascanu et al. 2013)
// The norm of all gradients together, as if they were one vector: rank 0, f64, on their device, for which nothing waits here.
Tensor grad_norm(const std::vector<Variable>& parameters);
// For optimizer.step: min(1, max_norm / (norm + 1e-6)), NaN if the norm is NaN. UsageError unless max_norm is 0 or more.
Tensor clip_factor(const Tensor& norm, double max_norm);
// Multiplies every gradient by clip_factor and returns the norm before. NumericError naming
// the parameter if a gradient is not finite; gradients are untouched then, and no step should be taken.
double clip_grad_norm(const std::vector<Variable>& parameters, double max_norm);

}  // namespace heed::train
