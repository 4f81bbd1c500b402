// The one table of differentiable ops, which drives test_ops.cpp: forward and gradients on every device, against
// differences, with strided, broadcast, odd-sized and empty inputs. Add an op: add a row.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autograd/ops.h"

namespace heed::tests {

enum class Domain {
  any,       // normal
  positive,  // 0.5 to 2
  apart      // no two elements of all inputs are near each other, none is near 0: away from the kinks of relu, max, ...
};

struct Input {
  Shape shape;
  Domain domain = Domain::any;
};

// Stands for n in the shapes of a row, as does N + 2 for n + 2.
constexpr int64_t N = int64_t{1} << 40;

struct OpRow {
  std::string name;           // as declared in autograd/ops.h
  std::string variant;        // what is particular about this row
  std::vector<Input> inputs;  // their shapes may contain N
  std::function<Variable(const std::vector<Variable>& x)> apply;
  int64_t largest = 1025;       // n at most
  bool empty = true;            // is n = 0 allowed?
  double f32_tolerance = 3e-5;  // of the largest element

  std::vector<Input> at(int64_t n) const;
};

const std::vector<OpRow>& op_table();

// The same numbers for every dtype and device: all are f32 values.
Tensor make_input(const Input& input, size_t position, DType dtype, Device& device);
std::vector<Tensor> make_inputs(const OpRow& row, int64_t n, DType dtype, Device& device);

// While in scope, tensors are made on this device.
struct OnDevice {
  explicit OnDevice(Device& device) : before_(default_device()) { set_default_device(device); }
  ~OnDevice() { set_default_device(before_); }

 private:
  Device& before_;
};

}  // namespace heed::tests
