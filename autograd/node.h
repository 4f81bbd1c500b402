// Node: one op applied once. The tape is made of nodes; each knows where it came from and how to send a gradient back.
//
// An op is a struct that derives from Node and holds its formula, its forward and its backward (see
// autograd/ops_*.cpp):
//
//   struct Tanh final : Node {
//     static constexpr Text text{"tanh", "y = tanh(x)", "dx = dy (1 - y^2)"};
//     Saved y{this};
//     Tensor forward(const Tensor& x) { return y = heed::tanh(x); }
//     void backward(const Tensor& dy) override { give(0, heed::unary_grad(Unary::tanh, dy, {}, y)); }
//   };
//   Variable tanh(const Variable& x, Site at) { return record<Tanh>(at, x); }
//
// Ownership: a Variable owns the node that made it, a node owns its inputs' nodes. A node saves Tensors, never
// Variables, so there can be no cycle: dropping the last Variable frees the whole tape, by a loop and not by recursion.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "autograd/gradient.h"

namespace heed {

class Backprop;
class Node;

struct Text {
  const char* op;       // "softmax"
  const char* formula;  // "y_i = exp(x_i - max x) / sum_j exp(x_j - max x)"
  const char* rule;     // "dx_i = y_i (dy_i - sum_j dy_j y_j)"
};

// A tensor that a node keeps for its backward. Reading it fails if it was freed, or overwritten since it was saved.
class Saved {
 public:
  explicit Saved(Node* owner);  // the owner frees it when its turn in the backward pass is over
  Saved(const Saved&) = delete;
  const Tensor& operator=(const Tensor& value);
  operator const Tensor&() const { return get(); }
  const Tensor& get() const;  // UsageError naming the op, its place and the writer's

 private:
  friend class Node;
  Node* owner_;
  Saved* next_;  // the owner's list
  Tensor value_;
  uint64_t version_ = 0;
};

class Node {
 public:
  using GradientHook = std::function<Tensor(const Tensor& dy)>;  // may return another gradient, or {} to keep it
  using NodeHook = std::function<void(const Node& node, const Tensor& dy)>;  // sees it just before backward

  Node() = default;
  Node(const Node&) = delete;
  virtual ~Node();

  // Receives dL/dy, the whole of it, and calls give(i, dL/dx_i) for every input i that needs it.
  virtual void backward(const Tensor& dy) = 0;

  const Text& about() const { return *text_; }
  const char* op() const { return text_->op; }
  uint64_t sequence() const { return sequence_; }  // counts up over the program: inputs have smaller ones
  Site site() const { return site_; }              // the user's line
  const char* module() const { return module_; }   // "encoder.0.attention", or "" outside of modules
  const Shape& shape() const { return shape_; }    // of the output
  DType dtype() const { return dtype_; }
  const std::string& name() const;  // of the variable it made, or ""
  int input_count() const { return static_cast<int>(inputs_.size()); }
  Node* input(int i) const { return inputs_[static_cast<size_t>(i)].get(); }  // null: a constant
  bool freed() const { return freed_; }

  void add_hook(NodeHook hook);
  std::string describe() const;  // softmax "weights" (2, 8, 4, 4) at file:line, in module

 protected:
  bool needs(int i) const { return i < input_count() && inputs_[static_cast<size_t>(i)]; }
  // Adds dx to the gradient of input i; dx may still have the broadcast shape, the engine sums it.
  void give(int i, const Tensor& dx);
  void give(int i, const Rows& rows);
  void give_slice(int i, const Tensor& dx, int axis, int64_t start);  // dx belongs to a part of input i

 private:
  friend class Backprop;
  friend class Saved;
  friend class Variable;
  friend struct Recorder;
  friend struct Leaf;

  struct Extras {  // what few nodes have
    std::string name;
    bool retains_grad = false;
    Gradient grad;  // of a leaf, or if retains_grad
    std::vector<GradientHook> gradient_hooks;
    std::vector<NodeHook> node_hooks;
  };
  Extras& extras();
  virtual void receive(const Gradient& dy) { backward(dy.dense()); }
  virtual bool is_leaf() const { return false; }
  void free_saved();
  Backprop& giving(int i, const Shape& dx, DType dtype) const;
  Node& target(int i) const { return *inputs_[static_cast<size_t>(i)]; }

  const Text* text_ = nullptr;
  const char* module_ = "";
  Site site_;
  uint64_t sequence_ = 0;
  std::vector<std::shared_ptr<Node>> inputs_;
  Saved* saved_ = nullptr;
  std::unique_ptr<Extras> extras_;
  Shape shape_;
  DType dtype_ = DType::f32;
  bool freed_ = false;

  Backprop* pass_ = nullptr;  // the pass that has this node in its worklist, or runs it
  Gradient incoming_;         // the sum of what arrived in that pass
};

}  // namespace heed
