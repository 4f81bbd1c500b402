// Creation of tensors from numbers, from nothing and from random streams.
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

Tensor tensor(double value) { return upload(std::vector<double>{value}, {}, default_dtype()); }

Tensor tensor(std::initializer_list<double> values) {
  return upload(std::vector<double>(values), {static_cast<int64_t>(values.size())}, default_dtype());
}

namespace {

template <class Rows>
void require_equal_lengths(const Rows& rows) {
  for (const auto& row : rows) {
    if (row.size() != rows.begin()->size()) {
      throw ShapeError(text("tensor: rows of different lengths: ", rows.begin()->size(), " and ", row.size()));
    }
  }
}

}  // namespace

Tensor tensor(std::initializer_list<std::initializer_list<double>> values) {
  require_equal_lengths(values);
  std::vector<double> flat;
  for (const auto& row : values) flat.insert(flat.end(), row);
  const int64_t rows = static_cast<int64_t>(values.size());
  return upload(flat, {rows, rows ? static_cast<int64_t>(values.begin()->size()) : 0}, default_dtype());
}

Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<double>>> values) {
  require_equal_lengths(values);
  std::vector<Tensor> parts;
  std::vector<double> flat;
  Shape inner;
  for (const auto& matrix : values) {
    const Tensor part = tensor(matrix);
    if (!parts.empty() && !(part.shape() == inner)) {
      throw ShapeError(text("tensor: matrices of different shapes: ", inner, " and ", part.shape()));
    }
    inner = part.shape();
    parts.push_back(part);
    for (const auto& row : matrix) flat.insert(flat.end(), row);
  }
  if (parts.empty()) return Tensor({0, 0, 0});
  return upload(flat, {static_cast<int64_t>(parts.size()), inner[0], inner[1]}, default_dtype());
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
  std::vector<double> values(static_cast<size_t>(n));
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
  std::vector<double> values(static_cast<size_t>(checked_numel("randn", shape)));
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
