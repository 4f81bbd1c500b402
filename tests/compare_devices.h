// Runs a kernel on the reference device, on `cpu` with one, two and three threads, and on the devices that run the CUDA
// kernels, and compares all that it wrote.
#pragma once
#include <doctest/doctest.h>
#include <omp.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tensor/device.h"
#include "tensor/error.h"
#include "tensor/reference.h"
#include "tests/tested_devices.h"

namespace heed::compare {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// How the elements of a view lie in memory.
enum class Layout {
  contiguous,
  transposed,  // the last two axes are swapped in memory
  reversed,    // all axes are in the opposite order
  stepped,     // every third element of a longer last axis, from the second on
  padded,      // rows with unused elements behind them
  row,         // one row, repeated along the other axes
  column,      // one element a row, repeated along the last axis
  scalar       // one element, repeated
};
inline const std::vector<Layout> kLayouts = {Layout::contiguous, Layout::transposed, Layout::reversed, Layout::stepped,
                                             Layout::padded};
inline const std::vector<Layout> kInputLayouts = {Layout::contiguous, Layout::transposed, Layout::reversed,
                                                  Layout::stepped,    Layout::padded,     Layout::row,
                                                  Layout::column,     Layout::scalar};

// A view and all the memory around it. Copies have memory of their own.
class Array {
 public:
  Array() = default;  // an absent operand
  Array(const Shape& shape, DType dtype, Layout layout = Layout::contiguous) : shape_(shape), dtype_(dtype) {
    const int rank = shape.rank();
    Shape memory = shape;
    if (layout == Layout::transposed && rank > 1) std::swap(memory[rank - 1], memory[rank - 2]);
    if (layout == Layout::reversed) {
      for (int i = 0; i < rank; i++) memory[i] = shape[rank - 1 - i];
    }
    if (layout == Layout::stepped && rank > 0) memory[rank - 1] = 3 * memory[rank - 1] + 2;
    if (layout == Layout::padded && rank > 0) memory[rank - 1] += 5;
    std::vector<int> repeated;  // axes along which one element stands for all
    for (int i = 0; i < rank; i++) {
      const bool last = i == rank - 1;
      const bool repeats =
          (layout == Layout::row && !last) || (layout == Layout::column && last) || layout == Layout::scalar;
      if (repeats && memory[i] > 0) memory[i] = 1, repeated.push_back(i);
    }
    strides_ = contiguous_strides(memory);
    if (layout == Layout::transposed && rank > 1) std::swap(strides_[rank - 1], strides_[rank - 2]);
    if (layout == Layout::reversed) {
      for (int i = 0; i < rank / 2; i++) std::swap(strides_[i], strides_[rank - 1 - i]);
    }
    if (layout == Layout::stepped && rank > 0) strides_[rank - 1] = 3, offset_ = shape.numel() > 0 ? 1 : 0;
    for (int i : repeated) {
      if (shape[i] > 1) strides_[i] = 0;
    }
    bytes_.resize(static_cast<size_t>(memory.numel()) * size_of(dtype));
  }

  View view() {
    if (bytes_.empty()) return {nullptr, shape_, strides_, dtype_};
    return {bytes_.data() + static_cast<size_t>(offset_) * size_of(dtype_), shape_, strides_, dtype_};
  }
  DType dtype() const { return dtype_; }
  size_t size() const { return bytes_.size() / size_of(dtype_); }  // with what lies around the view
  const std::vector<char>& bytes() const { return bytes_; }
  char* data() { return bytes_.data(); }
  double get(size_t i) const {
    double value = 0;
    with_any(dtype_, [&](auto t) {
      decltype(t) element;
      std::memcpy(&element, bytes_.data() + i * sizeof element, sizeof element);
      value = convert<double>(element);
    });
    return value;
  }
  void set(size_t i, double value) {
    with_any(dtype_, [&](auto t) {
      const auto element = convert<decltype(t)>(value);
      std::memcpy(bytes_.data() + i * sizeof element, &element, sizeof element);
    });
  }
  Array& fill(const std::function<double()>& next) {
    for (size_t i = 0; i < size(); i++) set(i, next());
    return *this;
  }

 private:
  std::vector<char> bytes_;
  Shape shape_;
  Strides strides_;
  int64_t offset_ = 0;
  DType dtype_ = DType::f32;
};

// Random elements: between low and high, or (indices) whole numbers from low to high - 1.
inline Array random(const Shape& shape, DType dtype, Layout layout = Layout::contiguous, double low = -2,
                    double high = 2, uint64_t seed = 1) {
  Random source(seed);
  return Array(shape, dtype, layout).fill([&] {
    const double value = source.uniform(low, high);
    return dtype == DType::i32 ? std::floor(value) : value;
  });
}

inline bool near(double a, double b, double tolerance) {
  if (std::isnan(b)) return std::isnan(a);
  if (std::isinf(b)) return a == b;
  return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));  // false if a is NaN
}

using Run = std::function<void(Device&, const std::vector<View>&)>;

// A copy, in the device's memory, of the host's bytes.
class DeviceCopy {
 public:
  DeviceCopy(Device& device, char* host, size_t bytes) : device_(device), host_(host), bytes_(bytes) {
    block_ = static_cast<char*>(device.memory().take(bytes));
    if (bytes > 0) device.upload(block_, host, bytes);
  }
  ~DeviceCopy() { device_.memory().give(block_, bytes_); }
  DeviceCopy(const DeviceCopy&) = delete;
  DeviceCopy& operator=(const DeviceCopy&) = delete;

  View view(View v) const {  // of what v sees on the host
    if (v.data) v.data = block_ + (v.as<char>() - host_);
    return v;
  }
  void fetch() const {
    if (bytes_ > 0) device_.download(host_, block_, bytes_);
  }

 private:
  Device& device_;
  char *host_, *block_;
  size_t bytes_;
};

inline std::vector<Array> results(Device& device, std::vector<Array> arrays, const Run& run) {
  std::vector<View> views;
  if (device.on_host()) {
    for (Array& array : arrays) views.push_back(array.view());
    run(device, views);
    device.synchronize();
    return arrays;
  }
  std::vector<std::unique_ptr<DeviceCopy>> copies;
  for (Array& array : arrays) {
    copies.push_back(std::make_unique<DeviceCopy>(device, array.data(), array.bytes().size()));
    views.push_back(copies.back()->view(array.view()));
  }
  run(device, views);
  for (const auto& copy : copies) copy->fetch();
  return arrays;
}

// The devices that run the CUDA kernels: the emulator, and a GPU where there is one.
inline std::vector<Device*> gpu_devices() {
  std::vector<Device*> out;
  for (Device* device : tests::tested_devices()) {
    if (!device->on_host()) out.push_back(device);
  }
  return out;
}

// Every element, those around the views included.
inline void check_near(const Device& device, const std::vector<Array>& got, const std::vector<Array>& expected,
                       double tolerance) {
  for (size_t k = 0; k < got.size(); k++) {
    size_t wrong = 0, first = 0;
    for (size_t i = 0; i < got[k].size(); i++) {
      if (!near(got[k].get(i), expected[k].get(i), tolerance) && wrong++ == 0) first = i;
    }
    if (wrong > 0) {
      FAIL_CHECK(device.name() << ", operand " << k << ": " << wrong << " of " << got[k].size()
                               << " elements differ, first at " << first << ": " << got[k].get(first) << ", expected "
                               << expected[k].get(first));
    }
  }
}

// On every device the results must be near the reference's; those of `cpu` must not depend on the threads at all.
inline void agree(const std::string& what, const std::vector<Array>& arrays, double tolerance, const Run& run) {
  INFO(what);
  const std::vector<Array> expected = results(reference_device(), arrays, run);
  for (Device* tested : tests::tested_devices()) {
    if (tested == &reference_device()) continue;
    const int threads = omp_get_max_threads();
    if (tested->on_host()) omp_set_num_threads(1);
    const std::vector<Array> got = results(*tested, arrays, run);
    check_near(*tested, got, expected, tolerance);
    for (int n = 2; n <= 3 && tested->on_host(); n++) {
      omp_set_num_threads(n);
      const std::vector<Array> again = results(*tested, arrays, run);
      for (size_t k = 0; k < arrays.size(); k++)
        CHECK_MESSAGE(again[k].bytes() == got[k].bytes(), n << " threads, operand " << k);
    }
    omp_set_num_threads(threads);
  }
}

}  // namespace heed::compare
