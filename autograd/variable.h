// Variable: a tensor that remembers how it was made, so that a gradient can find its way back.
//
//   Variable w(tensor({{0.5, -1.0}}), true, "w");      // a leaf that wants a gradient
//   Variable loss = mean(square(matmul(w, x) - y));    // every op leaves a node on the tape
//   loss.backward();                                   // fills w.grad()
//
// A Variable is a handle: copies are the same variable. First derivatives only: gradients are Tensors, not Variables.
#pragma once
#include "autograd/node.h"

namespace heed {

class Variable {
 public:
  Variable() = default;  // undefined
  // A leaf. With requires_grad, backward() accumulates its gradient in grad(); DTypeError for i32.
  explicit Variable(const Tensor& value, bool requires_grad = false, const std::string& name = "",
                    Site at = Site::here());

  bool defined() const { return state_ != nullptr; }
  const Tensor& value() const;  // UsageError if undefined
  const Shape& shape() const { return value().shape(); }
  int rank() const { return shape().rank(); }
  int64_t size(int axis) const { return value().size(axis); }
  int64_t numel() const { return value().numel(); }
  DType dtype() const { return value().dtype(); }
  double item() const { return value().item(); }

  bool requires_grad() const { return state_ && state_->node; }
  bool is_leaf() const { return !requires_grad() || state_->node->is_leaf(); }
  const std::string& name() const;
  Variable& named(const std::string& name);  // for messages, the stepper and graphs
  Node* node() const {
    return state_ ? state_->node.get() : nullptr;
  }  // what made it; a leaf has one too if it requires grad

  const std::shared_ptr<Node>& node_handle() const;  // UsageError if undefined

  // ---- gradients
  // Sends `seed` (dL/dthis; 1 if this has one element) back over the tape. Leaves add what arrives to their gradient.
  // The tape is freed as the pass goes, unless retain_graph.
  void backward(const Tensor& seed = {}, bool retain_graph = false, Site at = Site::here()) const;
  Tensor grad() const;                          // dense; undefined if nothing arrived yet
  const Gradient& gradient() const;             // may be Rows
  void set_gradient(const Gradient& gradient);  // an Error unless it is one of this variable
  void scale_gradient(double factor);
  void zero_grad();
  void retain_grad();                      // keep grad() of a variable that is not a leaf
  void add_hook(Node::GradientHook hook);  // called with the whole gradient when it is known; may replace it
  Variable detach() const;                 // the same value, off the tape
  void set_value(const Tensor& value);     // of a leaf: same shape, dtype and device; the old tensor is left alone

 private:
  struct State {
    Tensor value;
    std::shared_ptr<Node> node;
    std::string name;
  };
  friend struct Recorder;
  std::shared_ptr<State> state_;
};

// ---- recording

bool recording();  // does this thread record ops? true unless a NoGrad is in scope
struct NoGrad {
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;

 private:
  bool before_;
};

// While in scope, nodes are recorded as made in the module with this dotted path (a string that outlives the tape).
struct ModuleScope {
  explicit ModuleScope(const char* path);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;

 private:
  const char* before_;
};
const char* current_module();

// Seeds dropout; counts its calls within a training step. See random.h's Dropout.
void set_dropout_stream(uint64_t seed, uint64_t step, int64_t first_sample = 0);
Dropout next_dropout(double p);

// How a public function applies an op: runs Op::forward on the values of its Variables (other arguments are passed on
// as they are) and, if one of them requires a gradient, leaves the node on the tape. An Error on the way is given names
// and place.
struct Recorder {
  static void connect(Node& node, const Variable& x) { node.inputs_.push_back(x.state_ ? x.state_->node : nullptr); }
  static void connect(Node& node, const std::vector<Variable>& xs) {
    for (const Variable& x : xs) connect(node, x);
  }
  template <class Other>
  static void connect(Node&, const Other&) {}

  static const Tensor& value(const Variable& x) { return x.defined() ? x.value() : undefined_tensor(); }
  static std::vector<Tensor> value(const std::vector<Variable>& xs);
  template <class Other>
  static const Other& value(const Other& other) {
    return other;
  }

  static void name(std::vector<std::string>& names, const Variable& x) { names.push_back(x.defined() ? x.name() : ""); }
  static void name(std::vector<std::string>& names, const std::vector<Variable>& xs) {
    for (const Variable& x : xs) name(names, x);
  }
  template <class Other>
  static void name(std::vector<std::string>&, const Other&) {}

  static bool any_needs_grad(const Variable& x) { return x.requires_grad(); }
  static bool any_needs_grad(const std::vector<Variable>& xs);
  template <class Other>
  static bool any_needs_grad(const Other&) {
    return false;
  }

  static void enter(Node& node, const Text& text, Site at);
  static Variable finish(std::shared_ptr<Node> node, const Tensor& y);
  static Variable constant(const Tensor& y);
  static const Tensor& undefined_tensor();
};

// Runs fn. An Error on the way is given the names of the Variables among the arguments, and the place.
template <class Fn, class... Args>
auto placed(Site at, Fn&& fn, const Args&... args) {
  try {
    return fn();
  } catch (Error& error) {
    std::vector<std::string> names;
    (Recorder::name(names, args), ...);
    error.name_operands(names);
    error.add_place(at, current_module());
    throw;
  }
}

template <class Op, class... Args>
Variable record(Site at, const Args&... args) {
  const bool keep = recording() && (Recorder::any_needs_grad(args) || ...);
  auto node = std::make_shared<Op>();
  Recorder::enter(*node, Op::text, at);
  (Recorder::connect(*node, args), ...);
  const Tensor y = placed(
      at, [&] { return Tensor(node->forward(Recorder::value(args)...)); }, args...);
  return keep ? Recorder::finish(std::move(node), y) : Recorder::constant(y);
}

}  // namespace heed
