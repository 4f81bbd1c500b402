// Golden numbers made with PyTorch: see tests/golden/extract.py.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "autograd/ops.h"

namespace heed::nn {
class Module;
}

namespace heed::tests {

// outputs = op(inputs); with L = sum_i <upstream_i, outputs_i>, grads[x] = dL/dx. Floats are f64, booleans 0 or 1 in
// f64, integers i32.
struct GoldenCase {
  std::string name;
  std::map<std::string, Tensor> inputs, grads;  // a module's parameters are inputs named "p.fc.weight"
  std::vector<Tensor> outputs, upstream;
};

// From tests/golden/SET.json and SET.safetensors, on the default device; the default dtype must be f64 in what is
// computed with it.
GoldenCase golden_case(const std::string& set, const std::string& name);

// The largest |a - b| / max(1, |b|); infinity if the shapes differ or anything is NaN.
double difference(const Tensor& a, const Tensor& b);

// Inputs other than parameters, as variables that want a gradient where the case has one.
using GoldenInputs = std::map<std::string, Variable>;

// Loads the case's parameters into the module (strictly: every name and shape must fit), runs `forward`, sends the
// upstream gradients back and returns the largest difference among the outputs and all gradients. `module` may be null.
double golden_difference(const GoldenCase& golden, nn::Module* module,
                         const std::function<std::vector<Variable>(GoldenInputs&)>& forward);

// f64 and this device as defaults while in scope.
struct InDoubles {
  explicit InDoubles(const char* device_name);
  ~InDoubles();

 private:
  Device& device_;
  DType dtype_;
};

}  // namespace heed::tests
