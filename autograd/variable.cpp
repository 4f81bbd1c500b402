#include "autograd/variable.h"

#include <atomic>

#include "autograd/backprop.h"
#include "autograd/leaf.h"

namespace heed {

namespace {

thread_local bool records = true;
thread_local const char* module_path = "";

struct DropoutStream {
  uint64_t seed = 0, step = 0, call = 0;
  int64_t first_sample = 0;
};
thread_local DropoutStream dropout_stream;

}  // namespace

// ---- recording

bool recording() { return records; }
NoGrad::NoGrad() : before_(records) { records = false; }
NoGrad::~NoGrad() { records = before_; }

ModuleScope::ModuleScope(const char* path) : before_(module_path) { module_path = path; }
ModuleScope::~ModuleScope() { module_path = before_; }
const char* current_module() { return module_path; }

void set_dropout_stream(uint64_t seed, uint64_t step, int64_t first_sample) {
  dropout_stream = {seed, step, 0, first_sample};
}

Dropout next_dropout(double p) {
  DropoutStream& s = dropout_stream;
  return {p, mix_key(mix_key(s.seed, s.step), s.call++), s.first_sample};
}

void Recorder::enter(Node& node, const Text& text, Site at) {
  static std::atomic<uint64_t> count{0};
  node.text_ = &text;
  node.site_ = at;
  node.module_ = module_path;
  node.sequence_ = ++count;
}

Variable Recorder::constant(const Tensor& y) {
  Variable v;
  v.state_ = std::make_shared<Variable::State>();
  v.state_->value = y;
  return v;
}

Variable Recorder::finish(std::shared_ptr<Node> node, const Tensor& y) {
  node->shape_ = y.shape();
  node->dtype_ = y.dtype();
  Variable v = constant(y);
  v.state_->node = std::move(node);
  return v;
}

const Tensor& Recorder::undefined_tensor() {
  static const Tensor undefined;
  return undefined;
}

std::vector<Tensor> Recorder::value(const std::vector<Variable>& xs) {
  std::vector<Tensor> out;
  for (const Variable& x : xs) out.push_back(x.value());
  return out;
}

bool Recorder::any_needs_grad(const std::vector<Variable>& xs) {
  for (const Variable& x : xs) {
    if (x.requires_grad()) return true;
  }
  return false;
}

// ---- Variable

Variable::Variable(const Tensor& value, bool requires_grad, const std::string& name, Site at)
    : state_(std::make_shared<State>()) {
  state_->value = value;
  state_->name = name;
  if (!requires_grad) return;
  if (!value.defined() || !computes(value.dtype())) {
    throw DTypeError("variable: only f32 and f64 tensors have gradients" +
                     (name.empty() ? "" : "; asked for \"" + name + "\""));
  }
  auto leaf = std::make_shared<Leaf>();
  Recorder::enter(*leaf, Leaf::text, at);
  state_->node = Recorder::finish(leaf, value).state_->node;
  if (!name.empty()) leaf->extras().name = name;
}

const Tensor& Variable::value() const {
  if (!state_) throw UsageError("variable: it is undefined");
  return state_->value;
}

const std::string& Variable::name() const {
  static const std::string none;
  return state_ ? state_->name : none;
}

Variable& Variable::named(const std::string& name) {
  value();
  state_->name = name;
  if (state_->node) state_->node->extras().name = name;
  return *this;
}

const std::shared_ptr<Node>& Variable::node_handle() const {
  value();
  return state_->node;
}

void Variable::backward(const Tensor& seed, bool retain_graph, Site at) const {
  Backprop(*this, seed, retain_graph, at).run();
}

const Gradient& Variable::gradient() const {
  static const Gradient none;
  value();
  return state_->node && state_->node->extras_ ? state_->node->extras_->grad : none;
}

Tensor Variable::grad() const { return gradient().dense(); }

void Variable::set_gradient(const Gradient& gradient) {
  if (!requires_grad()) throw UsageError("set_gradient: the variable \"" + name() + "\" requires no gradient");
  if (gradient.defined()) {
    const Tensor& x = value();
    if (!(gradient.shape() == x.shape()) || gradient.dtype() != x.dtype() || &gradient.device() != &x.device()) {
      throw ShapeError(text("set_gradient: \"", name(), "\" is ", name_of(x.dtype()), " ", x.shape(), " on ",
                            x.device().name(), ", the gradient ", name_of(gradient.dtype()), " ", gradient.shape(),
                            " on ", gradient.device().name()));
    }
    for (const int32_t row :
         gradient.is_rows() ? gradient.rows().indices.to_vector<int32_t>() : std::vector<int32_t>()) {
      if (row >= 0 && row < x.size(0)) continue;
      throw IndexError(text("set_gradient: row ", row, " of the gradient is outside \"", name(), "\" ", x.shape()));
    }
  }
  state_->node->extras().grad = gradient;
}

void Variable::scale_gradient(double factor) {
  if (requires_grad()) state_->node->extras().grad.scale(factor);
}

void Variable::zero_grad() {
  if (requires_grad() && state_->node->extras_) state_->node->extras_->grad = Gradient();
}

void Variable::retain_grad() {
  if (!requires_grad()) throw UsageError("retain_grad: the variable \"" + name() + "\" requires no gradient");
  if (!is_leaf()) state_->node->extras().retains_grad = true;
}

void Variable::add_hook(Node::GradientHook hook) {
  if (!hook) throw UsageError("add_hook: the hook for the variable \"" + name() + "\" is an empty function");
  if (!requires_grad()) throw UsageError("add_hook: the variable \"" + name() + "\" requires no gradient");
  state_->node->extras().gradient_hooks.push_back(std::move(hook));
}

Variable Variable::detach() const { return Variable(value(), false, name()); }

void Variable::set_value(const Tensor& value) {
  const Tensor& old = this->value();
  if (!is_leaf())
    throw UsageError("set_value: the variable \"" + name() + "\" is the result of " + state_->node->describe() +
                     "; only leaves can be set");
  if (!value.defined()) throw UsageError("set_value: the new value of \"" + name() + "\" is undefined");
  if (!(value.shape() == old.shape()) || value.dtype() != old.dtype() || &value.device() != &old.device()) {
    throw ShapeError(text("set_value: \"", name(), "\" is ", name_of(old.dtype()), " ", old.shape(), " on ",
                          old.device().name(), ", the new value ", name_of(value.dtype()), " ", value.shape(), " on ",
                          value.device().name()));
  }
  state_->value = value;
}

}  // namespace heed
