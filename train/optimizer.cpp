#include "train/optimizer.h"

#include <cmath>
#include <limits>
#include <set>

namespace heed::train {

std::vector<ParameterGroup> decay_groups(const std::vector<Variable>& parameters, double weight_decay) {
  std::vector<ParameterGroup> groups(2);
  groups[0].weight_decay = weight_decay;
  for (const Variable& p : parameters) groups[p.rank() >= 2 ? 0 : 1].parameters.push_back(p);
  return groups;
}

// ---- what all optimizers share

namespace {

constexpr double kUnbounded = std::numeric_limits<double>::max();
constexpr double kBelowOne = 1 - std::numeric_limits<double>::epsilon();

void require_setting(const char* what, double value, double least, double most) {
  if (value >= least && value <= most) return;
  throw UsageError(text("optimizer: ", what, " is ", value, ", it must be ",
                        most == kUnbounded ? text("finite and at least ", least) : text("between ", least, " and ", most)));
}

}  // namespace

Optimizer::Optimizer(const std::vector<ParameterGroup>& groups, double lr, std::vector<std::string> moment_names)
    : moment_names_(std::move(moment_names)) {
  set_lr(lr);
  for (const ParameterGroup& group : groups) {
    require_setting("weight_decay", group.weight_decay, 0, kUnbounded);
    for (const Variable& p : group.parameters) {
      if (!p.is_leaf() || p.value().repeats()) {
        throw UsageError(text("optimizer: the parameter \"", p.name(), "\" ", p.shape(), p.is_leaf() ? " is an expanded view, several of its elements are one" : " is the result of an op; only leaves can be moved"));
      }
      Slot slot{p, group.weight_decay, 0, {}};
      for (size_t i = 0; i < moment_names_.size(); i++) slot.moments.push_back(zeros_like(p.value()));
      slots_.push_back(slot);
    }
  }
  if (slots_.empty()) throw UsageError("optimizer: there are no parameters; was a module's child() forgotten?");
}

void Optimizer::set_lr(double lr) {
  require_setting("lr", lr, 0, kUnbounded);
  lr_ = lr;
}

void Optimizer::step(const Tensor& grad_scale) {
  if (grad_scale.defined() && grad_scale.numel() != 1) {
    throw UsageError(text("optimizer: grad_scale is ", grad_scale.shape(), ", it must be one number"));
  }
  Tensor scale;  // in the parameters' dtype
  for (Slot& slot : slots_) {
    const Gradient& gradient = slot.parameter.gradient();
    if (!gradient.defined()) continue;
    const Tensor& p = slot.parameter.value();
    if (grad_scale.defined() && (!scale.defined() || scale.dtype() != p.dtype() || &scale.device() != &p.device())) {
      scale = grad_scale.reshape({}).to(p.device()).to(p.dtype());
    }
    slot.steps++;
    update(slot, gradient, scale);
  }
}

void Optimizer::zero_grad() {
  for (Slot& slot : slots_) slot.parameter.zero_grad();
}

std::vector<std::string> Optimizer::paths() const {
  std::vector<std::string> out;
  std::set<std::string> taken;
  for (const Slot& slot : slots_) {
    std::string path = slot.parameter.name();
    if (path.empty() || taken.count(path)) path += text("#", out.size());
    taken.insert(path);
    out.push_back(path);
  }
  return out;
}

std::map<std::string, Tensor> Optimizer::state() const {
  std::map<std::string, Tensor> out;
  const std::vector<std::string> paths = this->paths();
  for (size_t n = 0; n < slots_.size(); n++) {
    const Slot& slot = slots_[n];
    out[paths[n] + "/steps"] = indices({static_cast<int32_t>(slot.steps)});
    for (size_t i = 0; i < moment_names_.size(); i++) out[paths[n] + "/" + moment_names_[i]] = slot.moments[i];
  }
  return out;
}

void Optimizer::load_state(const std::map<std::string, Tensor>& state) {
  std::string faults;
  for (const auto& [name, expected] : this->state()) {
    const auto found = state.find(name);
    if (found == state.end()) {
      faults += "\n  missing: " + name;
    } else if (!(found->second.shape() == expected.shape())) {
      faults += text("\n  ", name, " is ", found->second.shape(), ", expected ", expected.shape());
    }
  }
  if (!faults.empty()) throw FileError(std::string(name()) + ": the saved state does not fit these parameters:" + faults);
  const std::vector<std::string> paths = this->paths();
  for (size_t n = 0; n < slots_.size(); n++) {
    Slot& slot = slots_[n];
    slot.steps = static_cast<int64_t>(state.at(paths[n] + "/steps").item());
    for (size_t i = 0; i < moment_names_.size(); i++) slot.moments[i].copy_(state.at(paths[n] + "/" + moment_names_[i]));
  }
}

// ---- SGD

namespace {

Tensor scaled(const Gradient& gradient, const Tensor& scale) { return scale.defined() ? gradient.dense() * scale : gradient.dense(); }

}  // namespace

SGD::SGD(const std::vector<ParameterGroup>& groups, double lr, SGDOptions options)
    : Optimizer(groups, lr, options.momentum != 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{}), options_(options) {
  require_setting("momentum", options.momentum, 0, kUnbounded);
  require_setting("dampening", options.dampening, -kUnbounded, kUnbounded);
  if (options.nesterov && (options.momentum <= 0 || options.dampening != 0)) {
    throw UsageError("sgd: Nesterov needs a momentum above 0 and no dampening");
  }
}

void SGD::update(Slot& slot, const Gradient& gradient, const Tensor& grad_scale) {
  Tensor p = slot.parameter.value(), g = scaled(gradient, grad_scale);
  if (slot.weight_decay != 0) g = g + p * slot.weight_decay;
  if (options_.momentum != 0) {
    Tensor& b = slot.moments[0];
    if (slot.steps == 1) {
      b.copy_(g);
    } else {
      b.affine_(options_.momentum, 0).add_(g * (1 - options_.dampening));
    }
    g = options_.nesterov ? g + b * options_.momentum : b;
  }
  p.add_(g * -lr());
}

// ---- Adam

Adam::Adam(const std::vector<ParameterGroup>& groups, double lr, AdamSettings settings)
    : Optimizer(groups, lr, {"exp_avg", "exp_avg_sq"}), settings_(settings) {
  // At 1 the correction of the moments divides by 0.
  require_setting("beta1", settings.beta1, 0, kBelowOne);
  require_setting("beta2", settings.beta2, 0, kBelowOne);
  require_setting("eps", settings.eps, 0, kUnbounded);
}

namespace {

// Which row of a row-sparse gradient belongs to each row of the table, -1: none.
Tensor row_numbers(const char* op, const Tensor& ids, int64_t table_rows) {
  std::vector<int32_t> rows(static_cast<size_t>(table_rows), -1);
  int32_t number = 0;
  for (int32_t id : ids.to_vector<int32_t>()) {
    if (id < 0 || id >= table_rows) throw IndexError(text(op, ": row ", id, " of a gradient is outside its table's ", table_rows));
    rows[static_cast<size_t>(id)] = number++;
  }
  return indices(rows).to(ids.device());
}

}  // namespace

void Adam::update(Slot& slot, const Gradient& gradient, const Tensor& grad_scale) {
  Tensor p = slot.parameter.value(), dense = p.to_contiguous(), g, rows;
  if (gradient.is_rows()) {
    const Rows unique = coalesce(gradient.rows());
    g = unique.values;
    rows = row_numbers(name(), unique.indices, p.size(0));
  } else {
    g = gradient.dense().to_contiguous();
  }
  const AdamOptions options{lr(),      settings_.beta1,     settings_.beta2, settings_.eps, slot.weight_decay, settings_.decoupled,
                            slot.steps, grad_scale.view()};
  p.device().adam(dense.view(), slot.moments[0].view(), slot.moments[1].view(), g.view(), rows.view(), options);
  if (p.contiguous()) {
    p.wrote(name(), Site::here());
  } else {
    p.copy_(dense);
  }
}

// ---- RMSprop

RMSprop::RMSprop(const std::vector<ParameterGroup>& groups, double lr, RMSpropOptions options)
    : Optimizer(groups, lr, {"square_avg", "grad_avg", "momentum"}), options_(options) {
  require_setting("alpha", options.alpha, 0, 1);
  require_setting("eps", options.eps, 0, kUnbounded);
  require_setting("momentum", options.momentum, 0, kUnbounded);
}

void RMSprop::update(Slot& slot, const Gradient& gradient, const Tensor& grad_scale) {
  Tensor p = slot.parameter.value(), g = scaled(gradient, grad_scale);
  if (slot.weight_decay != 0) g = g + p * slot.weight_decay;
  Tensor &v = slot.moments[0], &mean = slot.moments[1], &b = slot.moments[2];
  v.affine_(options_.alpha, 0).add_(g * g * (1 - options_.alpha));
  Tensor second = v;
  if (options_.centered) {
    mean.affine_(options_.alpha, 0).add_(g * (1 - options_.alpha));
    second = v - mean * mean;
  }
  Tensor direction = g / (sqrt(second) + options_.eps);
  if (options_.momentum != 0) direction = b.affine_(options_.momentum, 0).add_(direction);
  p.add_(direction * -lr());
}

std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const std::vector<Variable>& parameters, double lr, double weight_decay,
                                          double momentum) {
  const std::vector<ParameterGroup> groups = decay_groups(parameters, weight_decay);
  if (name == "sgd") return std::make_unique<SGD>(groups, lr, SGDOptions{.momentum = momentum});
  if (name == "adam") return std::make_unique<Adam>(groups, lr);
  if (name == "adamw") return std::make_unique<Adam>(groups, lr, AdamSettings{.decoupled = true});
  if (name == "rmsprop") return std::make_unique<RMSprop>(groups, lr, RMSpropOptions{.momentum = momentum});
  throw UsageError("optimizer: there is no \"" + name + "\"; heed has sgd, adam, adamw, rmsprop");
}

// ---- clipping

namespace {

Tensor values_of(const Gradient& gradient) { return gradient.is_rows() ? coalesce(gradient.rows()).values : gradient.dense(); }

}  // namespace

Tensor grad_norm(const std::vector<Variable>& parameters) {
  std::vector<Tensor> squares;
  for (const Variable& p : parameters) {
    if (p.gradient().defined()) squares.push_back(squared_norm(values_of(p.gradient())));
  }
  return squares.empty() ? zeros({}, DType::f64) : sqrt(sum(stack(squares)));
}

Tensor clip_factor(const Tensor& norm, double max_norm) {
  if (!(max_norm >= 0)) throw UsageError(text("clip_grad_norm: max_norm is ", max_norm, ", it must not be negative"));
  return clamp(affine(norm, 0, max_norm) / affine(norm, 1, 1e-6), 0, 1);
}

double clip_grad_norm(const std::vector<Variable>& parameters, double max_norm) {
  const Tensor total = grad_norm(parameters), factor = clip_factor(total, max_norm);
  const double norm = total.item();
  if (!std::isfinite(norm)) {
    for (const Variable& p : parameters) {
      if (p.gradient().defined() && !std::isfinite(sum_of_squares(values_of(p.gradient())))) {
        throw NumericError("clip_grad_norm: the gradient of \"" + p.name() + "\" holds NaN or infinity; no step should be taken with it");
      }
    }
    throw NumericError("clip_grad_norm: the norm of all gradients overflows");
  }
  if (norm > max_norm) {
    for (Variable p : parameters) p.scale_gradient(factor.item());
  }
  return norm;
}

}  // namespace heed::train
