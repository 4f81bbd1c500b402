// Tensor: numbers in a shape, on a device. A cheap value: copies and views share storage, nothing is copied until asked.
//
//   Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});   // (2, 3)
//   Tensor y = matmul(x, x.transpose(0, 1));     // (2, 2); the transpose is a view
//
// No graph and no gradients here: see autograd/variable.h. The functions that compute are in tensor/ops.h.
#pragma once
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "tensor/device.h"
#include "tensor/error.h"

namespace heed {

// The memory behind one or more tensors. `version` counts the writes that users could see, so that a saved value which
// was overwritten can be told (autograd/node.h), and `writer` remembers the last of them.
struct Storage {
  struct Writer {
    const char* op = "";
    Site site;
  };
  Storage(Device& device, size_t bytes) : device(device), bytes(bytes), data(device.memory().take(bytes)) {}
  ~Storage() { device.memory().give(data, bytes); }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  Device& device;
  size_t bytes;
  void* data;
  uint64_t version = 0;
  Writer writer;
};

// The device and the dtype of tensors that are created without naming one; per thread. At first: cpu, f32.
Device& default_device();
DType default_dtype();
void set_default_device(Device& device);
void set_default_dtype(DType dtype);

class Tensor {
 public:
  Tensor() = default;  // undefined: no storage, defined() is false
  // Uninitialised elements.
  explicit Tensor(const Shape& shape, DType dtype = default_dtype(), Device& device = default_device());

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  const Strides& strides() const { return strides_; }
  int rank() const { return shape_.rank(); }
  int64_t size(int axis) const;  // negative axes count from the end
  int64_t numel() const { return shape_.numel(); }
  DType dtype() const { return dtype_; }
  Device& device() const { return storage().device; }
  bool contiguous() const { return is_contiguous(shape_, strides_); }
  bool repeats() const { return has_repeats(shape_, strides_); }

  // ---- elements on the host (they are fetched from a device that is not)
  double item() const;                                      // the only element; ShapeError if there are more
  double at(std::initializer_list<int64_t> index) const;    // slow; for tests and printing
  template <class T> std::vector<T> to_vector() const;      // row-major, converted to T
  std::string to_string(int precision = 4) const;           // like NumPy prints; precision: 0 to 100

  // ---- views: no element is copied
  Tensor reshape(const Shape& shape) const;  // one size may be -1; copies if the strides do not allow a view
  Tensor flatten(int first_axis = 0) const;  // merges the axes from first_axis on
  Tensor transpose(int axis0, int axis1) const;
  Tensor permute(const std::vector<int>& axes) const;
  Tensor slice(int axis, int64_t start, int64_t end, int64_t step = 1) const;  // [start, end), negatives count from the end
  Tensor select(int axis, int64_t index) const;                                // the axis is gone
  Tensor expand(const Shape& shape) const;                                     // repeats axes of size 1 (stride 0)
  Tensor unsqueeze(int axis) const;
  Tensor squeeze(int axis) const;

  // ---- copies
  Tensor contiguous_copy() const;  // always a new storage
  Tensor to_contiguous() const { return contiguous() ? *this : contiguous_copy(); }
  Tensor to(DType dtype) const;    // itself if it has the dtype
  Tensor to(Device& device) const;

  // ---- writes in place; they bump the storage's version. All but fill_ refuse an expanded view, whose elements are not apart.
  Tensor& fill_(double value, Site at = Site::here());
  Tensor& copy_(const Tensor& from, Site at = Site::here());  // broadcasts, converts the dtype
  Tensor& add_(const Tensor& b, Site at = Site::here());
  Tensor& mul_(const Tensor& b, Site at = Site::here());
  Tensor& affine_(double factor, double term, Site at = Site::here());  // x = factor x + term
  void set(std::initializer_list<int64_t> index, double value, Site at = Site::here());

  // ---- for kernels and the engine
  View view() const { return {data_pointer(), shape_, strides_, dtype_}; }
  template <class T> const T* data() const;      // host devices, contiguous, dtype T; DeviceError, ShapeError, DTypeError
  template <class T> T* mutable_data(Site at = Site::here());
  void wrote(const char* op, Site at);           // records a write by hand
  uint64_t version() const { return storage().version; }
  const Storage::Writer& last_writer() const { return storage().writer; }
  bool shares_storage_with(const Tensor& other) const { return storage_ && storage_ == other.storage_; }
  long storage_owners() const { return storage_.use_count(); }
  bool owns_storage() const { return storage_owners() == 1; }  // no other tensor sees a write to this one

 private:
  void* data_pointer() const { return storage_ ? static_cast<char*>(storage_->data) + offset_ * static_cast<int64_t>(size_of(dtype_)) : nullptr; }
  Tensor with(const Shape& shape, const Strides& strides, int64_t offset) const;
  Tensor element(const char* op, std::initializer_list<int64_t> index) const;  // a view of rank 0
  Storage& storage() const;  // UsageError if undefined

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  Strides strides_;
  int64_t offset_ = 0;  // in elements
  DType dtype_ = DType::f32;
};

std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

// ---- creation
// Numbers as one writes them: tensor(2.5) has rank 0, tensor({1, 2}) is (2,), tensor({{1}, {2}}) is (2, 1), and so on. ShapeError if parts
// of one level differ in shape.
struct Entries {
  Entries(double number) : number(number) {}
  Entries(std::initializer_list<Entries> parts) : parts(parts), nested(true) {}
  double number = 0;
  std::vector<Entries> parts;
  bool nested = false;
};
Tensor tensor(const Entries& entries);
template <class T> Tensor from_vector(const std::vector<T>& values, const Shape& shape, DType dtype = default_dtype());
Tensor indices(const std::vector<int32_t>& values);                      // i32, (n,)
Tensor indices(const std::vector<int32_t>& values, const Shape& shape);  // i32
Tensor zeros(const Shape& shape, DType dtype = default_dtype());
Tensor ones(const Shape& shape, DType dtype = default_dtype());
Tensor full(const Shape& shape, double value, DType dtype = default_dtype());
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
Tensor arange(int64_t n, DType dtype = default_dtype());                 // 0, 1, ..., n - 1
Tensor eye(int64_t n, DType dtype = default_dtype());
// Random tensors: the same numbers on every device. Each call takes the next numbers of `random`.
Tensor rand(const Shape& shape, Random& random, DType dtype = default_dtype());   // uniform in [0, 1)
Tensor randn(const Shape& shape, Random& random, DType dtype = default_dtype());  // normal, mean 0, variance 1
Tensor bernoulli(const Shape& shape, double p, Random& random, DType dtype = default_dtype());  // 1 with probability p, else 0

}  // namespace heed
