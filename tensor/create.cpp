// Creation of tensors from numbers, from nothing and from random streams.
#include "tensor/host_memory.h"
#include "tensor/tensor.h"

namespace heed {

namespace {

template <class T>
Tensor upload(const std::vector<T>& values, const Shape& shape, DType dtype) {
  if (checked_numel("from_vector", shape) != static_cast<int64_t>(values.size())) {
    throw ShapeError(text("from_vector: ", values.size(), " values do not fill shape ", shape));
  }
  Tensor x(shape, dtype_of<T>());
  if (!values.empty()) x.device().upload(x.view().data, values.data(), values.size() * sizeof(T));
  return x.to(dtype);
}

}  // namespace

template <class T>
Tensor from_vector(const std::vector<T>& values, const Shape& shape, DType dtype) {
  return upload(values, shape, dtype);
}
template Tensor from_vector(const std::vector<float>&, const Shape&, DType);
template Tensor from_vector(const std::vector<double>&, const Shape&, DType);
template Tensor from_vector(const std::vector<int32_t>&, const Shape&, DType);

namespace {

// Appends the numbers in row-major order and returns the shape.
Shape flatten(const Entries& entries, std::vector<double>& flat) {
  if (!entries.nested) {
    flat.push_back(entries.number);
    return {};
  }
  Shape inner;
  for (size_t i = 0; i < entries.parts.size(); i++) {
    const Shape part = flatten(entries.parts[i], flat);
    if (i > 0 && !(part == inner)) throw ShapeError(text("tensor: parts of one level have shapes ", inner, " and ", part));
    inner = part;
  }
  inner.insert(0, static_cast<int64_t>(entries.parts.size()));
  return inner;
}

}  // namespace

Tensor tensor(const Entries& entries) {
  std::vector<double> flat;
  const Shape shape = flatten(entries, flat);
  return upload(flat, shape, default_dtype());
}

Tensor indices(const std::vector<int32_t>& values) { return indices(values, {static_cast<int64_t>(values.size())}); }
Tensor indices(const std::vector<int32_t>& values, const Shape& shape) { return upload(values, shape, DType::i32); }

Tensor full(const Shape& shape, double value, DType dtype) {
  Tensor x(shape, dtype);
  x.device().fill(x.view(), value);
  return x;
}

Tensor zeros(const Shape& shape, DType dtype) { return full(shape, 0, dtype); }
Tensor ones(const Shape& shape, DType dtype) { return full(shape, 1, dtype); }

namespace {

Tensor full_like(const Tensor& x, double value) {
  Tensor y(x.shape(), x.dtype(), x.device());
  y.device().fill(y.view(), value);
  return y;
}

}  // namespace

Tensor zeros_like(const Tensor& x) { return full_like(x, 0); }
Tensor ones_like(const Tensor& x) { return full_like(x, 1); }

Tensor arange(int64_t n, DType dtype) {
  if (n < 0) throw ShapeError(text("arange: n is ", n, ", it must be at least 0"));
  std::vector<double> values = host_numbers("arange", {n});
  for (int64_t i = 0; i < n; i++) values[static_cast<size_t>(i)] = static_cast<double>(i);
  return upload(values, {n}, dtype);
}

Tensor eye(int64_t n, DType dtype) {
  Tensor x = zeros({n, n}, dtype);
  for (int64_t i = 0; i < n; i++) x.set({i, i}, 1);
  return x;
}

Tensor rand(const Shape& shape, Random& random, DType dtype) {
  Tensor x(shape, computes(dtype) ? dtype : DType::f32);
  // One key for each tensor, drawn from the stream: two words.
  const uint64_t high = random.bits(), low = random.bits();
  x.device().uniform(x.view(), high << 32 | low);
  return x.to(dtype);
}

Tensor randn(const Shape& shape, Random& random, DType dtype) {
  // Made on the host, so that the C library's logarithm and cosine decide the bits and not a device's.
  std::vector<double> values = host_numbers("randn", shape);
  for (double& value : values) value = random.normal();
  return upload(values, shape, dtype);
}

Tensor bernoulli(const Shape& shape, double p, Random& random, DType dtype) {
  if (!(p >= 0 && p <= 1)) throw NumericError(text("bernoulli: p is ", p, ", it must be between 0 and 1"));
  const Tensor u = rand(shape, random, DType::f32);
  Tensor y(shape, DType::f32);
  y.device().binary(Binary::lt, y.view(), u.view(), full({}, p, DType::f32).expand(shape).view());
  return y.to(dtype);
}

}  // namespace heed
