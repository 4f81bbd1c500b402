// Joining, cutting and choosing by index.
#include <algorithm>

#include "tensor/checks.h"
#include "tensor/host_memory.h"

namespace heed {

Tensor cat(const std::vector<Tensor>& parts, int axis) {
  if (parts.empty()) throw UsageError("cat: needs at least one tensor");
  const Tensor& first = parts[0];
  const int a = normalize_axis("cat", axis, first.rank());
  Shape shape = first.shape();
  shape[a] = 0;
  for (size_t i = 0; i < parts.size(); i++) {
    Shape other = parts[i].shape(), expected = first.shape();
    const int64_t size = parts[i].rank() == first.rank() ? other[a] : 0;
    if (parts[i].rank() == first.rank()) other[a] = expected[a] = 0;
    if (!(other == expected)) {
      throw ShapeError(text("cat: part ", i, " ", parts[i].shape(), " does not match part 0 ", first.shape(), " outside axis ", axis));
    }
    if (parts[i].dtype() != first.dtype() || &parts[i].device() != &first.device()) checks::same_kind("cat", first, parts[i]);
    shape[a] += size;
  }
  Tensor y(shape, first.dtype(), first.device());
  int64_t at = 0;
  for (const Tensor& part : parts) {
    const int64_t size = part.shape()[a];
    y.device().copy(y.slice(a, at, at + size).view(), part.view());
    at += size;
  }
  return y;
}

Tensor stack(const std::vector<Tensor>& parts, int axis) {
  if (parts.empty()) throw UsageError("stack: needs at least one tensor");
  std::vector<Tensor> rows;
  for (const Tensor& part : parts) {
    if (!(part.shape() == parts[0].shape())) throw ShapeError(text("stack: shapes differ: ", parts[0].shape(), " and ", part.shape()));
    rows.push_back(part.unsqueeze(axis));
  }
  return cat(rows, axis);
}

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int axis) {
  int64_t at = 0;
  std::vector<Tensor> parts;
  const int64_t whole = x.size(axis);
  for (int64_t size : sizes) {
    if (size < 0 || size > whole - at) break;
    parts.push_back(x.slice(axis, at, at + size));
    at += size;
  }
  if (parts.size() != sizes.size() || at != whole) {
    throw ShapeError(text("split: the sizes must add up to ", whole, ", the size of axis ", axis, " of ", operand(0, "x", x.shape())));
  }
  return parts;
}

std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int axis) {
  const int64_t whole = x.size(axis);
  require_host_memory("chunk", static_cast<size_t>(std::max<int64_t>(chunks, 0)) * sizeof(Tensor), x.shape());
  if (chunks < 1 || whole % chunks != 0) {
    throw ShapeError(text("chunk: axis ", axis, " of ", operand(0, "x", x.shape()), " does not divide into ", chunks, " equal parts"));
  }
  return split(x, std::vector<int64_t>(static_cast<size_t>(chunks), whole / chunks), axis);
}

namespace {

void check_gather(const char* op, const Tensor& x, int axis, const Tensor& index) {
  checks::is_index(op, index, x);
  bool fits = index.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); i++) fits = i == axis || index.shape()[i] <= x.shape()[i];
  if (!fits) {
    throw ShapeError(text(op, ": the index ", index.shape(), " must have the rank of ", operand(0, "x", x.shape()), " and fit into it outside axis ", axis));
  }
  checks::index_values(op, index, x.shape()[axis], "index");
}

// The part of x (or y) that an index of this shape reaches: smaller along the other axes.
Tensor reachable(const Tensor& x, int axis, const Shape& index) {
  Tensor part = x;
  for (int i = 0; i < x.rank(); i++) {
    if (i != axis) part = part.slice(i, 0, index[i]);
  }
  return part;
}

// An index of any rank, laid out along `axis` of a tensor and repeated along the others.
Tensor spread_index(const Tensor& index, const Shape& shape, int axis) {
  const Tensor flat = index.reshape({index.numel()});
  Shape along = Shape::filled(shape.rank(), 1);
  along[axis] = index.numel();
  Shape full = shape;
  full[axis] = index.numel();
  return flat.reshape(along).expand(full);
}

Shape replace_axis(const Shape& shape, int axis, const Shape& with) {
  Shape out;
  for (int i = 0; i < axis; i++) out.push_back(shape[i]);
  for (int64_t size : with) out.push_back(size);
  for (int i = axis + 1; i < shape.rank(); i++) out.push_back(shape[i]);
  return out;
}

}  // namespace

Tensor gather(const Tensor& x, int axis, const Tensor& index) {
  const int a = normalize_axis("gather", axis, x.rank());
  check_gather("gather", x, a, index);
  Tensor y(index.shape(), x.dtype(), x.device());
  x.device().gather(y.view(), reachable(x, a, index.shape()).view(), index.view(), a);
  return y;
}

namespace {

Tensor select_slices(const char* op, const char* what, const Tensor& x, int axis, const Tensor& index) {
  checks::is_index(op, index, x);
  checks::index_values(op, index, x.shape()[axis], what);
  const Tensor spread = spread_index(index, x.shape(), axis);
  Tensor y(spread.shape(), x.dtype(), x.device());
  x.device().gather(y.view(), x.view(), spread.view(), axis);
  return y.reshape(replace_axis(x.shape(), axis, index.shape()));
}

}  // namespace

Tensor index_select(const Tensor& x, int axis, const Tensor& index) {
  return select_slices("index_select", "index", x, normalize_axis("index_select", axis, x.rank()), index);
}

Tensor embedding(const Tensor& weight, const Tensor& ids) {
  if (weight.rank() != 2) throw ShapeError(text("embedding: ", operand(0, "weight", weight.shape()), " must be (vocabulary, dimensions)"));
  return select_slices("embedding", "id", weight, 0, ids);
}

Tensor scatter_add(const Tensor& input, int axis, const Tensor& index, const Tensor& values) {
  const Tensor x = checks::floats("scatter_add", input), v = checks::floats("scatter_add", values);
  checks::same_kind("scatter_add", x, v);
  const int a = normalize_axis("scatter_add", axis, x.rank());
  check_gather("scatter_add", x, a, index);
  if (!(v.shape() == index.shape())) throw ShapeError(text("scatter_add: the index ", index.shape(), " and ", operand(1, "values", v.shape()), " must have the same shape"));
  Tensor y = x.contiguous_copy();
  y.device().scatter_add(reachable(y, a, index.shape()).view(), v.view(), index.view(), a);
  return y;
}

Tensor index_add(const Tensor& input, int axis, const Tensor& index, const Tensor& values) {
  const Tensor x = checks::floats("index_add", input), v = checks::floats("index_add", values);
  checks::same_kind("index_add", x, v);
  checks::is_index("index_add", index, x);
  const int a = normalize_axis("index_add", axis, x.rank());
  checks::index_values("index_add", index, x.shape()[a], "index");
  if (!(v.shape() == replace_axis(x.shape(), a, index.shape()))) {
    throw ShapeError(text("index_add: ", operand(1, "values", v.shape()), " must be ", replace_axis(x.shape(), a, index.shape())));
  }
  const Tensor spread = spread_index(index, x.shape(), a);
  Tensor y = x.contiguous_copy();
  y.device().scatter_add(y.view(), v.reshape(spread.shape()).view(), spread.view(), a);
  return y;
}

Tensor one_hot(const Tensor& index, int64_t classes, DType dtype) {
  if (index.dtype() != DType::i32) throw DTypeError(text("one_hot: the index is ", name_of(index.dtype()), ", it must be i32"));
  if (classes < 1 || classes > INT32_MAX) throw ShapeError(text("one_hot: asked for ", classes, " classes; there are 1 to ", INT32_MAX));
  checks::index_values("one_hot", index, classes, "index");
  const int64_t n = index.numel();
  Shape shape = index.shape();
  shape.push_back(classes);
  Tensor rows({n, classes}, computes(dtype) ? dtype : DType::f32, index.device()), one({}, rows.dtype(), rows.device());
  rows.fill_(0), one.fill_(1);
  rows.device().scatter_add(rows.view(), one.expand({n, 1}).view(), index.reshape({n, 1}).view(), 1);
  return rows.reshape(shape).to(dtype);
}

namespace {

// 1 where column - row <= diagonal in the last two axes.
Tensor lower_triangle(const char* op, const Tensor& x, double diagonal) {
  if (x.rank() < 2) throw ShapeError(text(op, ": ", operand(0, "x", x.shape()), " must have at least two axes"));
  const Tensor rows = arange(x.size(-2), DType::f64).unsqueeze(1), columns = arange(x.size(-1), DType::f64);
  return le(columns, affine(rows, 1, diagonal)).to(x.device());
}

}  // namespace

Tensor tril(const Tensor& x, int64_t diagonal) {
  const Tensor zero = zeros({}, x.dtype()).to(x.device());
  return where(lower_triangle("tril", x, static_cast<double>(diagonal)), x, zero);
}

Tensor triu(const Tensor& x, int64_t diagonal) {
  const Tensor zero = zeros({}, x.dtype()).to(x.device());
  return where(lower_triangle("triu", x, static_cast<double>(diagonal) - 1), zero, x);
}

}  // namespace heed
