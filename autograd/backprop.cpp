#include "autograd/backprop.h"

#include <algorithm>

namespace heed {

namespace {

bool earlier(const std::shared_ptr<Node>& a, const std::shared_ptr<Node>& b) { return a->sequence() < b->sequence(); }

}  // namespace

Backprop::Backprop(const Variable& loss, const Tensor& seed, bool retain_graph, Site at) : retain_graph_(retain_graph) {
  placed(
      at, [&] { start(loss, seed); }, loss);
}

void Backprop::start(const Variable& loss, const Tensor& seed) {
  const Tensor& value = loss.value();
  if (!loss.requires_grad()) {
    throw UsageError(text("backward: the ", operand(0, "loss", value.shape()),
                          " does not depend on any variable that requires a gradient"));
  }
  if (!seed.defined() && value.numel() != 1) {
    throw ShapeError(text("backward: the ", operand(0, "loss", value.shape()), " has ", value.numel(),
                          " elements; reduce it to one, or pass dL/dloss"));
  }
  if (seed.defined() && !(seed.shape() == value.shape())) {
    throw ShapeError(text("backward: the seed ", seed.shape(), " must have the loss's shape ", value.shape()));
  }
  if (seed.defined() && seed.dtype() != value.dtype()) {
    throw DTypeError(text("backward: the seed is ", name_of(seed.dtype()), ", the loss ", name_of(value.dtype())));
  }
  if (seed.defined() && &seed.device() != &value.device()) {
    throw DeviceError(text("backward: the seed is on ", seed.device().name(), ", the loss on ", value.device().name()));
  }
  const Gradient first(seed.defined() ? seed : ones_like(value));
  queue(loss.node_handle(), nullptr).incoming_ = first;  // nothing may be thrown behind it: no destructor would tidy up
}

Backprop::~Backprop() {
  for (const std::shared_ptr<Node>& node : worklist_) {
    node->incoming_ = Gradient();
    node->pass_ = nullptr;
  }
}

const Node* Backprop::next() const { return worklist_.empty() ? nullptr : worklist_.front().get(); }

// Puts the node into the worklist, once.
Node& Backprop::queue(const std::shared_ptr<Node>& node, const Node* user) {
  if (node->pass_ == this) return *node;
  if (node->pass_) {
    throw UsageError("backward: another pass over " + node->describe() + " is under way; finish or drop it first");
  }
  if (node->freed_) {
    throw UsageError("backward: the tape behind " + (user ? user->describe() : std::string("the loss")) +
                     " was freed by an earlier backward, which went through " + node->describe() +
                     "; run the forward pass again, or pass retain_graph to the earlier one");
  }
  worklist_.push_back(node);
  node->pass_ = this;
  std::push_heap(worklist_.begin(), worklist_.end(), earlier);
  return *node;
}

void Backprop::deliver(Node& from, int input, const Gradient& gradient) {
  queue(from.inputs_[static_cast<size_t>(input)], &from).incoming_.add(gradient);
}

bool Backprop::step() {
  if (worklist_.empty()) return false;
  std::pop_heap(worklist_.begin(), worklist_.end(), earlier);
  current_ = std::move(worklist_.back());
  worklist_.pop_back();
  Node& node = *current_;
  gradient_ = std::move(node.incoming_);
  node.incoming_ = Gradient();
  const struct Turn {  // however it ends: a hook may throw anything
    Node& node;
    ~Turn() { node.pass_ = nullptr; }
  } turn{node};
  try {
    if (node.extras_) {
      for (const Node::GradientHook& hook : node.extras_->gradient_hooks) {
        const Tensor other = hook(gradient_.dense());
        if (!other.defined()) continue;
        if (!(other.shape() == node.shape_) || other.dtype() != node.dtype_) {
          throw ShapeError(text("hook: returned a gradient ", name_of(other.dtype()), " ", other.shape(), " for ",
                                name_of(node.dtype_), " ", node.describe()));
        }
        if (&other.device() != &gradient_.device()) {
          throw DeviceError(text("hook: returned a gradient on ", other.device().name(), " for one on ",
                                 gradient_.device().name(), " of ", node.describe()));
        }
        gradient_ = Gradient(other);
      }
      for (const Node::NodeHook& hook : node.extras_->node_hooks) hook(node, gradient_.dense());
      if (node.extras_->retains_grad) node.extras_->grad.add(gradient_.own(0));
    }
    node.receive(gradient_);
  } catch (Error& error) {
    error.add_place(node.site_, node.module_);
    throw;
  }
  if (!retain_graph_ && !node.is_leaf()) {
    node.free_saved();
    node.inputs_.clear();  // nodes further back that nobody else holds go with their turn
  }
  return true;
}

}  // namespace heed
