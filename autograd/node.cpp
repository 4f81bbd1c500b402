#include "autograd/node.h"

#include "autograd/backprop.h"
#include "autograd/leaf.h"

namespace heed {

Saved::Saved(Node* owner) : owner_(owner), next_(owner->saved_) { owner->saved_ = this; }

const Tensor& Saved::operator=(const Tensor& value) {
  value_ = value;
  version_ = value.defined() ? value.version() : 0;
  return value_;
}

const Tensor& Saved::get() const {
  if (owner_->freed_) {
    throw UsageError(text("backward: what ", owner_->describe(), " saved was freed by an earlier backward; pass retain_graph to keep it"));
  }
  if (value_.defined() && value_.version() != version_) {
    const Storage::Writer writer = value_.last_writer();
    throw UsageError(text("backward: a tensor that ", owner_->describe(), " needs was overwritten by ", writer.op, " at ", writer.site.file,
                          ":", writer.site.line, "; write to a copy, or after backward"));
  }
  return value_;
}

Node::~Node() {
  // Freeing the inputs here would free their inputs within, and so on: a chain of a million nodes would overflow the stack.
  // Instead the nodes that nobody else owns go onto a list that the outermost destructor works off.
  thread_local std::vector<std::shared_ptr<Node>> pending;
  thread_local bool draining = false;
  for (std::shared_ptr<Node>& input : inputs_) {
    if (input && input.use_count() == 1) pending.push_back(std::move(input));
  }
  if (draining) return;
  draining = true;
  while (!pending.empty()) {
    const std::shared_ptr<Node> node = std::move(pending.back());
    pending.pop_back();
  }
  draining = false;
}

Node::Extras& Node::extras() {
  if (!extras_) extras_ = std::make_unique<Extras>();
  return *extras_;
}

const std::string& Node::name() const {
  static const std::string none;
  return extras_ ? extras_->name : none;
}

void Node::add_hook(NodeHook hook) { extras().node_hooks.push_back(std::move(hook)); }

std::string Node::describe() const {
  std::string out = op();
  if (!name().empty()) out += " \"" + name() + "\"";
  out += heed::text(" ", shape_, " at ", site_.file, ":", site_.line);
  if (*module_) out += std::string(", in ") + module_;
  return out;
}

void Node::free_saved() {
  for (Saved* saved = saved_; saved; saved = saved->next_) saved->value_ = Tensor();
  freed_ = true;
}

void Node::give(int i, const Tensor& dx) { if (needs(i)) pass_->deliver(*this, i, Gradient(sum_to(dx, target(i).shape_))); }
void Node::give(int i, const Rows& rows) { if (needs(i)) pass_->deliver(*this, i, Gradient(rows, target(i).shape_)); }

void Node::give_slice(int i, const Tensor& dx, int axis, int64_t start) {
  if (!needs(i)) return;
  pass_->queue(inputs_[static_cast<size_t>(i)], this).incoming_.add_slice(dx, target(i).shape_, axis, start);
}

void Leaf::receive(const Gradient& dy) {
  Gradient& grad = extras().grad;
  if (grad.defined()) {
    grad.add(dy);
  } else if (dy.is_rows()) {
    grad = dy;
  } else {
    // A leaf's gradient is its own: optimizers write to it. The pass itself holds one reference, `dy` another here.
    const Tensor dense = dy.dense();
    grad = Gradient(dense.contiguous() && dense.storage_owners() <= 2 ? dense : dense.contiguous_copy());
  }
}

}  // namespace heed
