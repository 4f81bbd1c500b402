// Module: named parameters, and the modules it is made of.
//
//   class Classifier : public Module {
//    public:
//     Linear hidden, fc;
//     explicit Classifier(Random& random) : hidden(4, 8, random), fc(8, 2, random) {
//       child("hidden", hidden);
//       child("fc", fc);
//     }
//     Variable forward(const Variable& x) {
//       Scope in(*this);  // what is recorded here, and every error, says which module it was
//       return fc.forward(relu(hidden.forward(x)));
//     }
//   };
//
// Parameters have dotted paths, as in PyTorch: "hidden.weight", "encoder.layers.0.norm1.bias". The top module has the
// empty path.
#pragma once
#include <map>

#include "autograd/ops.h"

namespace heed::nn {

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;  // parents keep the addresses of their children
  Module& operator=(const Module&) = delete;

  struct Parameter {
    std::string path;  // from this module on: "fc.weight"
    Variable variable;
  };
  std::vector<Parameter> parameters() const;  // this module's own first, then those of its children, as declared
  std::vector<Variable> variables() const;    // the same without the paths, for optimizers
  int64_t parameter_count() const;            // numbers that are learned
  void zero_grad();
  std::string summary() const;  // a table: path, shape and count of every parameter, and the total

  void train(bool on = true);  // dropout and the like are active; so it starts
  void eval() { train(false); }
  bool training() const { return training_; }

  // Parameters and buffers by path. The tensors are not copied: training goes on writing to them.
  std::map<std::string, Tensor> state() const;
  // Copies the values in. An Error lists all that is missing, unexpected, misshapen or of another dtype, and nothing
  // has changed then. Not strict: missing and unexpected paths are passed over.
  void load_state(const std::map<std::string, Tensor>& state, bool strict = true);

  const char* path() const { return path_; }  // "encoder.layers.0"; the string is never freed

 protected:
  // At the head of a forward: nodes and errors then carry this module's path.
  struct Scope : ModuleScope {
    explicit Scope(const Module& module) : ModuleScope(module.path()) {}
  };
  // What the constructor of a module calls. UsageError if the name is taken, or if the child has a parent.
  Variable parameter(const std::string& name, const Tensor& value, Site at = Site::here());
  Variable buffer(const std::string& name, const Tensor& value);  // part of the state, but has no gradient
  void child(const std::string& name, Module& module);            // an empty name: the child's paths are this module's

 private:
  struct Child {
    std::string name;
    Module* module;
  };
  void set_path(const std::string& path);
  void collect(const std::string& prefix, std::vector<Parameter> Module::*list, std::vector<Parameter>& out) const;
  void require_free(const std::string& name) const;

  std::vector<Parameter> parameters_, buffers_;  // their own names in place of paths
  std::vector<Child> children_;
  const char* path_ = "";
  bool adopted_ = false;
  bool training_ = true;
};

// A module with one input and one output: what Sequential chains.
class Layer : public Module {
 public:
  virtual Variable forward(const Variable& x, Site at = Site::here()) = 0;
};

// The error, completed with the user's line and the module at work: throw located(ShapeError(...), at).
template <class E>
E located(E error, Site at) {
  error.add_place(at, current_module());
  return error;
}

// UsageError unless value > 0, as in: Linear: the input width is 0, it must be positive.
void require_positive(const char* module, const char* what, int64_t value);
// UsageError unless 0 <= p < 1.
void require_dropout(const char* module, double p);

}  // namespace heed::nn
