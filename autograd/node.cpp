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
    throw UsageError(text("backward: what ", owner_->describe(),
                          " saved was freed by an earlier backward; pass retain_graph to keep it"));
  }
  if (value_.defined() && value_.version() != version_) {
    const Storage::Writer writer = value_.last_writer();
    throw UsageError(text("backward: a tensor that ", owner_->describe(), " needs was overwritten by ", writer.op,
                          " at ", writer.site.file, ":", writer.site.line, "; write to a copy, or after backward"));
  }
  return value_;
}

Node::~Node() {
  // Freeing the inputs here would free their inputs within, and so on: a chain of a million nodes would overflow the
  // stack. Instead the nodes that nobody else owns go onto a list that the outermost destructor works off.
  thread_local std::vector<std::shared_ptr<Node>>* pending = nullptr;
  std::vector<std::shared_ptr<Node>> list;
  const bool outermost = !pending;
  if (outermost) pending = &list;
  try {
    for (std::shared_ptr<Node>& input : inputs_) {
      if (input && input.use_count() == 1) pending->push_back(std::move(input));
    }
  } catch (const std::bad_alloc&) {}  // no room in the list: they are freed within, after all
  if (!outermost) return;
  while (!list.empty()) {
    const std::shared_ptr<Node> node = std::move(list.back());
    list.pop_back();
  }
  pending = nullptr;
}

Node::Extras& Node::extras() {
  if (!extras_) extras_ = std::make_unique<Extras>();
  return *extras_;
}

const std::string& Node::name() const {
  static const std::string none;
  return extras_ ? extras_->name : none;
}

void Node::add_hook(NodeHook hook) {
  if (!hook) throw UsageError("add_hook: the hook for " + describe() + " is an empty function");
  extras().node_hooks.push_back(std::move(hook));
}

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

// The pass that runs this node; checks what backward hands it.
Backprop& Node::giving(int i, const Shape& dx, DType dtype) const {
  if (!pass_)
    throw UsageError(std::string("give: the backward of ") + describe() +
                     " was called outside of a pass; use Backprop");
  const Node& x = target(i);
  if (!broadcastable_to(x.shape_, dx)) {
    throw ShapeError(
        heed::text(op(), ": its backward gave input ", i, " of shape ", x.shape_, " a gradient of shape ", dx));
  }
  if (dtype != x.dtype_) {
    throw DTypeError(heed::text(op(), ": its backward gave input ", i, ", which is ", name_of(x.dtype_),
                                ", a gradient in ", name_of(dtype)));
  }
  return *pass_;
}

void Node::give(int i, const Tensor& dx) {
  if (needs(i)) giving(i, dx.shape(), dx.dtype()).deliver(*this, i, Gradient(sum_to(dx, target(i).shape_)));
}

void Node::give(int i, const Rows& rows) {
  if (needs(i)) giving(i, target(i).shape_, rows.values.dtype()).deliver(*this, i, Gradient(rows, target(i).shape_));
}

void Node::give_slice(int i, const Tensor& dx, int axis, int64_t start) {
  if (!needs(i)) return;
  const Shape& shape = target(i).shape_;
  giving(i, shape, dx.dtype()).queue(inputs_[static_cast<size_t>(i)], this).incoming_.add_slice(dx, shape, axis, start);
}

void Leaf::receive(const Gradient& dy) {
  Gradient& grad = extras().grad;
  if (grad.defined()) {
    grad.add(dy);
  } else {
    grad = dy.own();  // optimizers write to it
  }
}

}  // namespace heed
