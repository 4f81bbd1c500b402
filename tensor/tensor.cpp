#include "tensor/tensor.h"

#include "tensor/checks.h"
#include "tensor/host_memory.h"

namespace heed {

namespace {

thread_local Device* chosen_device = nullptr;
thread_local DType chosen_dtype = DType::f32;

// Calls fn with every element of a host view, in row-major order.
template <class T, class Fn>
void for_each(const View& v, Fn&& fn) {
  const int64_t n = v.numel();
  for (int64_t i = 0; i < n; i++) fn(v.as<T>()[offset_of(v, i)]);
}

}  // namespace

Device& default_device() { return chosen_device ? *chosen_device : *(chosen_device = &heed::device("cpu")); }
DType default_dtype() { return chosen_dtype; }
void set_default_device(Device& device) { chosen_device = &device; }

void set_default_dtype(DType dtype) {
  if (!computes(dtype)) throw DTypeError(text("set_default_dtype: ", name_of(dtype), " only stores; f32 and f64 compute"));
  chosen_dtype = dtype;
}

Tensor::Tensor(const Shape& shape, DType dtype, Device& device)
    : storage_(std::make_shared<Storage>(device, static_cast<size_t>(checked_numel("tensor", shape)) * size_of(dtype))),
      shape_(shape),
      strides_(contiguous_strides(shape)),
      dtype_(dtype) {}

int64_t Tensor::size(int axis) const { return shape_[normalize_axis("size", axis, rank())]; }

Storage& Tensor::storage() const {
  if (!storage_) throw UsageError("tensor: it is undefined");
  return *storage_;
}

void Tensor::wrote(const char* op, Site at) {
  storage().version++;
  storage().writer = {op, at};
}

// ---- elements on the host

double Tensor::item() const {
  if (!defined()) throw UsageError("item: the tensor is undefined");
  if (numel() != 1) throw ShapeError(text("item: needs one element, the tensor is ", shape_));
  return to_vector<double>()[0];
}

Tensor Tensor::element(const char* op, std::initializer_list<int64_t> index) const {
  if (static_cast<int>(index.size()) != rank()) {
    throw IndexError(text(op, ": ", index.size(), " indices for a tensor of shape ", shape_));
  }
  int64_t offset = offset_;
  int axis = 0;
  for (int64_t i : index) {
    const int64_t n = shape_[axis], from_start = i < 0 ? i + n : i;
    if (from_start < 0 || from_start >= n) throw IndexError(text(op, ": index ", i, " is outside axis ", axis, " of ", operand(0, "x", shape_)));
    offset += from_start * strides_[axis++];
  }
  return with({}, {}, offset);
}

double Tensor::at(std::initializer_list<int64_t> index) const { return element("at", index).item(); }

void Tensor::set(std::initializer_list<int64_t> index, double value, Site at) {
  checks::writable("set", *this);
  element("set", index).fill_(value, at);
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  if (!defined()) throw UsageError("to_vector: the tensor is undefined");
  require_host_memory("to_vector", static_cast<size_t>(numel()) * sizeof(T), shape_);
  std::vector<T> out;
  out.reserve(static_cast<size_t>(numel()));
  if (device().on_host()) {
    device().synchronize();
    with_any(dtype_, [&](auto t) { for_each<decltype(t)>(view(), [&](auto value) { out.push_back(convert<T>(value)); }); });
  } else {
    const Tensor x = to_contiguous();
    std::vector<std::byte> raw(static_cast<size_t>(numel()) * size_of(dtype_));
    if (!raw.empty()) device().download(raw.data(), x.view().data, raw.size());
    with_any(dtype_, [&](auto t) {
      const auto* from = reinterpret_cast<const decltype(t)*>(raw.data());
      for (int64_t i = 0; i < numel(); i++) out.push_back(convert<T>(from[i]));
    });
  }
  return out;
}

template std::vector<float> Tensor::to_vector() const;
template std::vector<double> Tensor::to_vector() const;
template std::vector<int32_t> Tensor::to_vector() const;
template std::vector<f16> Tensor::to_vector() const;
template std::vector<bf16> Tensor::to_vector() const;

template <class T>
const T* Tensor::data() const {
  if (!defined()) throw UsageError("data: the tensor is undefined");
  if (!device().on_host()) throw DeviceError("data: the tensor lives on " + device().name() + "; use to_vector()");
  if (!contiguous()) throw ShapeError(text("data: the tensor of shape ", shape_, " is not contiguous; use to_contiguous()"));
  if (dtype_ != dtype_of<T>()) throw DTypeError(text("data: the tensor is ", name_of(dtype_), ", asked for ", name_of(dtype_of<T>())));
  device().synchronize();
  return static_cast<const T*>(data_pointer());
}

template <class T>
T* Tensor::mutable_data(Site at) {
  const T* pointer = data<T>();
  wrote("mutable_data", at);
  return const_cast<T*>(pointer);
}

template const float* Tensor::data() const;
template const double* Tensor::data() const;
template const int32_t* Tensor::data() const;
template const f16* Tensor::data() const;
template const bf16* Tensor::data() const;
template float* Tensor::mutable_data(Site);
template double* Tensor::mutable_data(Site);
template int32_t* Tensor::mutable_data(Site);
template f16* Tensor::mutable_data(Site);
template bf16* Tensor::mutable_data(Site);

// ---- copies

Tensor Tensor::contiguous_copy() const {
  Tensor y(shape_, dtype_, device());
  device().copy(y.view(), view());
  return y;
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return *this;
  Tensor y(shape_, dtype, device());
  device().copy(y.view(), view());
  return y;
}

Tensor Tensor::to(Device& target) const {
  if (&target == &device()) return *this;
  const Tensor x = to_contiguous();
  Tensor y(shape_, dtype_, target);
  const size_t bytes = static_cast<size_t>(numel()) * size_of(dtype_);
  if (bytes == 0) return y;
  if (device().on_host()) {
    device().synchronize();
    target.upload(y.view().data, x.view().data, bytes);
  } else {
    require_host_memory("to", bytes, shape_);
    std::vector<std::byte> host(bytes);
    device().download(host.data(), x.view().data, bytes);
    target.upload(y.view().data, host.data(), bytes);
  }
  return y;
}

// ---- writes in place

Tensor& Tensor::fill_(double value, Site at) {
  View once = view();  // of an expanded view each element, as the devices want it
  for (int i = 0; i < rank(); i++) {
    if (once.strides[i] == 0 && once.shape[i] > 1) once.shape[i] = 1;
  }
  device().fill(once, value);
  wrote("fill_", at);
  return *this;
}

Tensor& Tensor::copy_(const Tensor& from, Site at) {
  checks::writable("copy_", *this);
  const Tensor x = from.to(device()).expand(shape_);
  device().copy(view(), x.shares_storage_with(*this) ? x.contiguous_copy().view() : x.view());
  wrote("copy_", at);
  return *this;
}

namespace {

// An operand of an in-place write: same dtype, broadcast to the target, and not an overlapping other view of it.
Tensor in_place_operand(const char* op, const Tensor& target, const Tensor& b) {
  if (!b.defined()) throw UsageError(text(op, ": the operand is undefined"));
  if (!computes(target.dtype()) || b.dtype() != target.dtype()) {
    throw DTypeError(text(op, ": dtypes ", name_of(target.dtype()), " and ", name_of(b.dtype()), " must be the same float type"));
  }
  checks::same_device(op, target, b);
  checks::writable(op, target);
  if (!broadcastable_to(b.shape(), target.shape())) {
    throw ShapeError(text(op, ": an operand of shape ", b.shape(), " does not broadcast to the target ", target.shape()));
  }
  const bool same_view = b.view().data == target.view().data && b.shape() == target.shape() && b.strides() == target.strides();
  return b.shares_storage_with(target) && !same_view ? b.contiguous_copy().expand(target.shape()) : b.expand(target.shape());
}

}  // namespace

Tensor& Tensor::add_(const Tensor& b, Site at) {
  device().binary(Binary::add, view(), view(), in_place_operand("add_", *this, b).view());
  wrote("add_", at);
  return *this;
}

Tensor& Tensor::mul_(const Tensor& b, Site at) {
  device().binary(Binary::mul, view(), view(), in_place_operand("mul_", *this, b).view());
  wrote("mul_", at);
  return *this;
}

Tensor& Tensor::affine_(double factor, double term, Site at) {
  if (!computes(dtype_)) throw DTypeError(text("affine_: the tensor is ", name_of(dtype_), "; f32 and f64 compute"));
  checks::writable("affine_", *this);
  device().unary(Unary::affine, view(), view(), factor, term);
  wrote("affine_", at);
  return *this;
}

}  // namespace heed
