// Backprop: the backward pass, as an object that can be stepped.
//
//   Backprop pass(loss);
//   while (pass.step()) inspect(pass.current(), pass.gradient());
//
// is loss.backward(). Order: of the nodes that have received a gradient, the one recorded last is next (a worklist by
// descending sequence number). Every user of a node's output has a higher number, so its gradient is complete when its
// turn comes.
#pragma once
#include "autograd/variable.h"

namespace heed {

class Backprop {
 public:
  // seed: dL/dloss, of loss's shape; undefined: 1, for a loss of one element (ShapeError otherwise).
  // UsageError if the loss requires no gradient, or if another pass is under way on its node.
  explicit Backprop(const Variable& loss, const Tensor& seed = {}, bool retain_graph = false, Site at = Site::here());
  ~Backprop();  // an unfinished pass forgets what it has not delivered
  Backprop(const Backprop&) = delete;

  bool step();  // runs the next node's backward; false if none is left
  void run() {
    while (step()) {}
  }

  const Node* next() const;                              // the node that the next step() will run, or null
  const Node& current() const { return *current_; }      // the node that the last step() ran
  Tensor gradient() const { return gradient_.dense(); }  // what it received

 private:
  friend class Node;
  void start(const Variable& loss, const Tensor& seed);
  void deliver(Node& from, int input, const Gradient& gradient);
  Node& queue(const std::shared_ptr<Node>& node, const Node* user);

  std::vector<std::shared_ptr<Node>> worklist_;  // a heap: the highest sequence number first
  std::shared_ptr<Node> current_;
  Gradient gradient_;
  bool retain_graph_;
};

}  // namespace heed
