// Tensors, their views, the functions on them and the errors these give. The kernels behind are in the tests of the
// devices.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>

#include "tensor/ops.h"
#include "tests/message_of.h"

using namespace heed;
using heed::tests::message_of;

namespace {

using Values = std::vector<double>;
using Ints = std::vector<int32_t>;

Values list(const Tensor& x) { return x.to_vector<double>(); }
Ints ints(const Tensor& x) { return x.to_vector<int32_t>(); }
Tensor f64(const Entries& entries) { return tensor(entries).to(DType::f64); }
Tensor normal(const Shape& shape, uint64_t seed = 1) {
  Random random(seed);
  return randn(shape, random, DType::f64);
}

double largest_difference(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape())) return INFINITY;
  const Values x = list(a), y = list(b);
  double largest = 0;
  for (size_t i = 0; i < x.size(); i++) {
    if (!(std::fabs(x[i] - y[i]) <= largest)) largest = std::fabs(x[i] - y[i]);
  }
  return largest;
}

// Calls fn with every index of the shape, in row-major order.
void for_each_index(const Shape& shape, const std::function<void(const std::vector<int64_t>&)>& fn) {
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
  for (int64_t n = 0; n < shape.numel(); n++) {
    int64_t rest = n;
    for (int i = shape.rank() - 1; i >= 0; i--) {
      index[static_cast<size_t>(i)] = rest % shape[i];
      rest /= shape[i];
    }
    fn(index);
  }
}

int64_t row_major(const Shape& shape, const std::vector<int64_t>& index) {
  int64_t n = 0;
  for (int i = 0; i < shape.rank(); i++) n = n * shape[i] + index[static_cast<size_t>(i)];
  return n;
}

}  // namespace

// ---- creation

TEST_CASE("tensor: creation") {
  CHECK(tensor(2.5).shape() == Shape{});
  CHECK(tensor({1, 2, 3}).shape() == Shape{3});
  CHECK(tensor({{1, 2, 3}, {4, 5, 6}}).shape() == Shape{2, 3});
  CHECK(tensor({{{1}, {2}}}).shape() == Shape{1, 2, 1});
  CHECK_THROWS_AS(tensor({{1, 2}, {3}}), ShapeError);
  CHECK(list(arange(4)) == Values{0, 1, 2, 3});
  CHECK_THROWS_AS(arange(-1), ShapeError);
  CHECK(list(eye(2)) == Values{1, 0, 0, 1});
  CHECK(list(full({2}, 7)) == Values{7, 7});
  CHECK(ints(indices({3, -1})) == Ints{3, -1});
  CHECK(zeros({0, 5}).numel() == 0);
  CHECK_THROWS_AS(from_vector(Values{1, 2, 3}, {2, 2}), ShapeError);
  CHECK_THROWS_AS(zeros({-1}), ShapeError);
  CHECK_THROWS_AS(zeros({int64_t{1} << 40, int64_t{1} << 40}), ShapeError);
  CHECK_THROWS_AS(zeros({1, 1, 1, 1, 1, 1, 1, 1, 1}), ShapeError);
  CHECK_THROWS_AS(zeros({int64_t{1} << 45}), DeviceError);
}

TEST_CASE("tensor: random numbers depend on the seed alone") {
  Random a(5), b(5);
  CHECK(list(rand({3, 7}, a)) == list(rand({3, 7}, b)));
  CHECK(list(randn({10}, a)) == list(randn({10}, b)));
  const Values u = list(rand({10'000}, a)), coins = list(bernoulli({10'000}, 0.3, a));
  CHECK(*std::min_element(u.begin(), u.end()) >= 0);
  CHECK(*std::max_element(u.begin(), u.end()) < 1);
  CHECK(mean(from_vector(u, {10'000})).item() == doctest::Approx(0.5).epsilon(0.03));
  CHECK(mean(from_vector(coins, {10'000})).item() == doctest::Approx(0.3).epsilon(0.06));
  CHECK_THROWS_AS(bernoulli({2}, 1.5, a), NumericError);
}

TEST_CASE("tensor: dtypes") {
  const Tensor x = f64({0.1, 65504, 1e-8, -2.5, 70000, NAN});
  CHECK(list(x.to(DType::f32))[0] == static_cast<double>(0.1f));
  const Values half = list(x.to(DType::f16));
  CHECK(half[0] == 0.0999755859375);
  CHECK(half[1] == 65504);
  CHECK(half[2] == 0);
  CHECK(half[3] == -2.5);
  CHECK(std::isinf(half[4]));
  CHECK(std::isnan(half[5]));
  CHECK(list(x.to(DType::bf16))[0] == 0.10009765625);
  CHECK(ints(f64({1.9, -1.9}).to(DType::i32)) == Ints{1, -1});
  CHECK((tensor({1}).to(DType::f16) + tensor({1}).to(DType::bf16)).dtype() == DType::f32);
  CHECK_THROWS_AS(add(f64({1}), tensor({1})), DTypeError);
  CHECK_THROWS_AS(exp(indices({1})), DTypeError);
  CHECK_THROWS_AS(set_default_dtype(DType::f16), DTypeError);
}

TEST_CASE("tensor: elements") {
  const Tensor x = f64({{1, 2}, {3, 4}});
  CHECK(x.at({1, 0}) == 3);
  CHECK(x.at({-1, -1}) == 4);
  CHECK(x.transpose(0, 1).at({1, 0}) == 2);
  CHECK(message_of<IndexError>([&] { x.at({0, -3}); }) == "at: index -3 is outside axis 1 of x (2, 2)");
  CHECK_THROWS_AS(x.at({0}), IndexError);
  CHECK(message_of<ShapeError>([&] { x.item(); }) == "item: needs one element, the tensor is (2, 2)");
  CHECK(x.slice(0, 0, 1).slice(1, 1, 2).item() == 2);
  CHECK(x.data<double>()[3] == 4);
  CHECK_THROWS_AS(x.data<float>(), DTypeError);
  CHECK_THROWS_AS(x.transpose(0, 1).data<double>(), ShapeError);
}

TEST_CASE("tensor: an undefined tensor gives an error, whatever is done with it") {
  const Tensor x;
  Tensor y;
  const std::vector<std::function<void()>> calls = {[&] { x.item(); },
                                                    [&] { x.to_vector<double>(); },
                                                    [&] { x.contiguous_copy(); },
                                                    [&] { x.to(DType::f64); },
                                                    [&] { x.to(default_device()); },
                                                    [&] { y.fill_(1); },
                                                    [&] { y.copy_(tensor(1)); },
                                                    [&] { y.add_(tensor(1)); },
                                                    [&] { tensor(1).add_(x); },
                                                    [&] { tensor(1).copy_(x); },
                                                    [&] { y.affine_(1, 1); },
                                                    [&] { y.set({}, 1); },
                                                    [&] { x.data<float>(); },
                                                    [&] { zeros_like(x); },
                                                    [&] { add(x, tensor(1)); },
                                                    [&] { exp(x); },
                                                    [&] { sum(x); },
                                                    [&] { matmul(x, x); },
                                                    [&] { softmax(x); },
                                                    [&] { cat({x}); },
                                                    [&] {
                                                      stack({x, x});
                                                    },
                                                    [&] { cat({}); },
                                                    [&] { gather(x, 0, indices({})); },
                                                    [&] { index_select(f64({1}), 0, x); },
                                                    [&] { one_hot(x, 2); },
                                                    [&] { tril(x); },
                                                    [&] { conv2d(x, x, {}, {}); },
                                                    [&] { unfold(x, {}); },
                                                    [&] { attention(x, x, x, {}); },
                                                    [&] { layer_norm(x, {}, {}); },
                                                    [&] { where(x, x, x); },
                                                    [&] { masked_fill(x, x, 0); },
                                                    [&] { x / 2; },
                                                    [&] { where(x, f64({1}), f64({1})); },
                                                    [&] { cross_entropy_rows(x, x, {}); },
                                                    [&] { embedding(f64({{1}}), x); },
                                                    [&] { dropout(x, {}); },
                                                    [&] { argmax(x); },
                                                    [&] { sum_of_squares(x); },
                                                    [&] { linear(f64({1}), x); },
                                                    [&] { linear(x, x, x); },
                                                    [&] { scatter_add(x, 0, x, x); }};
  for (size_t i = 0; i < calls.size(); i++) {
    INFO("call ", i);
    CHECK_THROWS_AS(calls[i](), Error);
  }
  CHECK(x.to_string() == "(undefined tensor)");
}

// ---- views

TEST_CASE("tensor: views share storage") {
  const Tensor x = arange(24, DType::f64).reshape({2, 3, 4});
  for (const Tensor& view :
       {x.reshape({6, 4}), x.reshape({4, -1}), x.flatten(), x.flatten(1), x.transpose(0, 2), x.permute({2, 0, 1}),
        x.slice(1, 1, 3), x.slice(-1, 0, 4, 2), x.select(0, 1), x.unsqueeze(1), x.select(0, 1).expand({5, 3, 4})}) {
    CHECK(view.shares_storage_with(x));
  }
  // Runs of axes that lie together in memory can be merged and cut without a copy.
  CHECK(x.transpose(0, 1).reshape({3, 2, 2, 2}).shares_storage_with(x));
  CHECK(x.permute({2, 0, 1}).reshape({4, 6}).shares_storage_with(x));
  CHECK_FALSE(x.transpose(0, 1).reshape({6, 4}).shares_storage_with(x));
  CHECK(list(x.transpose(0, 1).reshape({6, 4}).select(0, 1)) == Values{12, 13, 14, 15});
}

namespace {

// A view by its definition: for each of its elements, in row-major order, where that is in the base.
struct Model {
  Shape shape;
  std::vector<int64_t> where;

  int64_t at(const std::vector<int64_t>& index) const { return where[static_cast<size_t>(row_major(shape, index))]; }

  // A view whose element at `index` is this one's element at source(index).
  Model map(const Shape& to, const std::function<std::vector<int64_t>(const std::vector<int64_t>&)>& source) const {
    Model out{to, {}};
    for_each_index(to, [&](const std::vector<int64_t>& index) { out.where.push_back(at(source(index))); });
    return out;
  }
};

using Index = std::vector<int64_t>;

// Takes a random view of both.
void random_view(Random& random, Tensor& x, Model& model) {
  const int rank = x.rank();
  const int axis = rank ? static_cast<int>(random.below(static_cast<uint64_t>(rank))) : 0;
  const size_t a = static_cast<size_t>(axis);
  Shape to = x.shape();
  switch (random.below(8)) {
    case 0: {  // reshape: split an axis in two where that is possible, else merge all
      to = {x.numel()};
      if (rank > 0 && rank < 7 && x.size(axis) % 2 == 0) {
        to = x.shape();
        to[axis] = 2;
        to.insert(axis + 1, x.size(axis) / 2);
      }
      x = x.reshape(to);
      model.shape = to;
      return;
    }
    case 1:
      x = x.flatten(axis);
      model.shape = x.shape();
      CHECK(model.shape.numel() == static_cast<int64_t>(model.where.size()));
      return;
    case 2: {
      if (rank == 0) return;
      const int other = static_cast<int>(random.below(static_cast<uint64_t>(rank)));
      std::swap(to[axis], to[other]);
      x = x.transpose(axis - rank, other);
      model = model.map(to, [&](Index i) {
        std::swap(i[a], i[static_cast<size_t>(other)]);
        return i;
      });
      return;
    }
    case 3: {
      std::vector<int> axes(static_cast<size_t>(rank));
      for (int i = 0; i < rank; i++) axes[static_cast<size_t>(i)] = i;
      random.shuffle(axes);
      for (int i = 0; i < rank; i++) to[i] = x.size(axes[static_cast<size_t>(i)]);
      x = x.permute(axes);
      model = model.map(to, [&](const Index& i) {
        Index from(i.size());
        for (size_t k = 0; k < i.size(); k++) from[static_cast<size_t>(axes[k])] = i[k];
        return from;
      });
      return;
    }
    case 4: {
      if (rank == 0) return;
      const int64_t n = x.size(axis), start = static_cast<int64_t>(random.below(static_cast<uint64_t>(n + 1)));
      const int64_t end = start + static_cast<int64_t>(random.below(static_cast<uint64_t>(n - start + 1)));
      const int64_t step = 1 + static_cast<int64_t>(random.below(3));
      if (start == end && random.below(4) != 0) return;  // seldom empty
      to[axis] = (end - start + step - 1) / step;
      x = x.slice(axis, start, end, step);
      model = model.map(to, [&](Index i) {
        i[a] = start + i[a] * step;
        return i;
      });
      return;
    }
    case 5: {
      if (rank < 2 || x.size(axis) == 0) return;
      const int64_t index = static_cast<int64_t>(random.below(static_cast<uint64_t>(x.size(axis))));
      to.erase(axis);
      x = x.select(axis, index);
      model = model.map(to, [&](Index i) {
        i.insert(i.begin() + axis, index);
        return i;
      });
      return;
    }
    case 6: {
      if (rank > 5) return;
      x = x.unsqueeze(axis);
      to.insert(axis, 1);
      model.shape = to;
      if (random.below(2) == 0) {
        to[axis] = 3;
        x = x.expand(to);
        model = model.map(to, [&](Index i) {
          i[a] = 0;
          return i;
        });
      }
      return;
    }
    default:
      if (rank == 0 || x.size(axis) != 1) return;
      x = x.squeeze(axis);
      model.shape.erase(axis);
  }
}

}  // namespace

TEST_CASE("tensor: any chain of views reads, copies and writes the right elements") {
  Random random(3);
  for (int round = 0; round < 2000; round++) {
    Tensor base = arange(48, DType::f64).reshape({2, 3, 4, 2});
    Tensor x = base;
    Model model{x.shape(), {}};
    for (int64_t i = 0; i < 48; i++) model.where.push_back(i);
    const uint64_t steps = random.below(9);
    for (uint64_t i = 0; i < steps; i++) random_view(random, x, model);
    REQUIRE(x.shape() == model.shape);
    const Values expected(model.where.begin(), model.where.end());
    REQUIRE(list(x) == expected);
    REQUIRE(list(x.contiguous_copy()) == expected);
    REQUIRE(list(x.reshape({-1 * (x.numel() > 0)})) == expected);
    REQUIRE(list(affine(x, 1, 0)) == expected);
    REQUIRE(list(x.to(DType::f32)) == expected);

    // A write reaches the base's elements, those and no others.
    if (!x.shares_storage_with(base)) continue;
    Values written = list(base);
    for (int64_t i : model.where) written[static_cast<size_t>(i)] = -1;
    x.fill_(-1);
    REQUIRE(list(base) == written);
  }
}

TEST_CASE("tensor: shapes that do not fit say so") {
  const Tensor x = arange(6).reshape({2, 3});
  CHECK(message_of<ShapeError>([&] { x.reshape({4}); }) == "reshape: x (2, 3) has 6 elements, (4,) has 4");
  CHECK(message_of<ShapeError>([&] {
          x.reshape({4, -1});
        }) == "reshape: x (2, 3) has 6 elements, which no size in place of the -1 in (4, -1) matches");
  CHECK(message_of<ShapeError>([&] { x.reshape({-1, -1}); }) == "reshape: only one size may be -1, asked for (-1, -1)");
  CHECK_THROWS_AS(x.reshape({-2, -3}), ShapeError);
  CHECK_THROWS_AS(zeros({0, 3}).reshape({0, -1}), ShapeError);
  CHECK(zeros({0, 3}).reshape({-1, 3}).shape() == Shape{0, 3});
  CHECK(zeros({0, 3}).reshape({5, 0}).shape() == Shape{5, 0});
  CHECK(message_of<IndexError>([&] { x.transpose(0, 2); }) ==
        "transpose: axis 2 is outside a tensor of rank 2; valid are -2 to 1");
  CHECK_THROWS_AS(x.permute({0}), ShapeError);
  CHECK_THROWS_AS(x.permute({0, 0}), ShapeError);
  CHECK_THROWS_AS(x.permute({0, 2}), IndexError);
  CHECK(message_of<IndexError>([&] { x.slice(1, 2, 4); }) ==
        "slice: [2, 4) step 1 does not fit axis 1 of size 3 in x (2, 3)");
  CHECK_THROWS_AS(x.slice(1, 2, 1), IndexError);
  CHECK_THROWS_AS(x.slice(1, 0, 2, 0), IndexError);
  CHECK_THROWS_AS(x.slice(1, -4, 2), IndexError);
  CHECK(x.slice(1, -2, -1).shape() == Shape{2, 1});
  CHECK(message_of<IndexError>([&] { x.select(0, -3); }) == "select: index -3 is outside axis 0 of size 2");
  CHECK_THROWS_AS(x.expand({2, 4}), ShapeError);
  CHECK_THROWS_AS(x.expand({3}), ShapeError);
  CHECK_THROWS_AS(x.squeeze(0), ShapeError);
  CHECK(message_of<ShapeError>([&] { add(x, zeros({2})); }) ==
        "add: shapes do not broadcast: a (2, 3) and b (2,); counted from the last axis, sizes must be equal or 1, and "
        "3 meets 2");
}

// ---- writes in place

TEST_CASE("tensor: writes in place") {
  Tensor x = f64({{1, 2}, {3, 4}});
  const uint64_t version = x.version();
  x.add_(f64({10, 20}));
  CHECK(list(x) == Values{11, 22, 13, 24});
  CHECK(x.version() == version + 1);
  CHECK(std::string(x.last_writer().op) == "add_");
  CHECK(std::string(x.last_writer().site.file).find("test_tensor.cpp") != std::string::npos);
  x.add_(x.transpose(0, 1));  // itself, read another way
  CHECK(list(x) == Values{22, 35, 35, 48});
  x.mul_(x);
  CHECK(list(x) == Values{484, 1225, 1225, 2304});
  x.copy_(x.transpose(0, 1).select(0, 0));
  CHECK(list(x) == Values{484, 1225, 484, 1225});
  x.affine_(0, 3).set({0, 1}, 5);
  CHECK(list(x) == Values{3, 5, 3, 3});
  x.select(1, 0).copy_(tensor({7, 8}));  // from f32
  CHECK(list(x) == Values{7, 5, 8, 3});
  CHECK_THROWS_AS(x.add_(tensor({1, 2})), DTypeError);
  CHECK_THROWS_AS(x.add_(f64({1, 2, 3})), ShapeError);
  CHECK_THROWS_AS(x.copy_(f64({1, 2, 3})), ShapeError);
  CHECK(message_of<IndexError>([&] { x.set({0, 5}, 1); }) == "set: index 5 is outside axis 1 of x (2, 2)");
  CHECK_THROWS_AS(indices({1}).affine_(1, 1), DTypeError);
}

TEST_CASE("tensor: writes in place to elements that are one, or from another device, are refused") {
  const Tensor one = f64({1}), four = ones({4}, DType::f64), elsewhere = four.to(device("reference"));
  Tensor view = one.expand({4}), x = four.contiguous_copy();
  const std::vector<std::pair<std::function<void()>, std::string>> calls = {
      {[&] { view.add_(four); }, "add_"},
      {[&] { view.mul_(four); }, "mul_"},
      {[&] { view.copy_(four); }, "copy_"},
      {[&] { view.affine_(2, 0); }, "affine_"},
      {[&] { view.set({0}, 2); }, "set"},
      {[&] { x.add_(elsewhere); }, "add_: devices differ"},
      {[&] { x.mul_(elsewhere); }, "mul_: devices differ"}};
  for (const auto& [call, op] : calls) CHECK(message_of<Error>(call).starts_with(op));
  CHECK(list(one) == Values{1});
  CHECK(list(x) == list(four));
  view.fill_(7);  // one value for all
  CHECK(list(one) == Values{7});
  zeros({0, 1}, DType::f64).expand({0, 3}).add_(1.0 * zeros({0, 3}, DType::f64));
  x.slice(0, 0, 1).expand({1, 1}).add_(f64({{1}}));
  CHECK(list(x) == Values{2, 1, 1, 1});
}

TEST_CASE("tensor: numbers at the ends of int64 give the right answer or one sentence") {
  constexpr int64_t most = INT64_MAX, least = INT64_MIN;
  const Tensor x = arange(3), one = tensor({1}), image = ones({1, 1, 3, 3}), kernel = ones({1, 1, 2, 2}),
               matrix = f64({{1, 2}, {3, 4}});
  CHECK(list(x.slice(0, 0, 3, most)) == Values{0});
  CHECK(x.slice(0, 1, 1, most).shape() == Shape{0});
  CHECK(list(x.slice(0, 0, 3, most).unsqueeze(0).reshape({1})) == Values{0});
  CHECK(list(triu(matrix, least)) == list(matrix));
  CHECK(list(tril(matrix, most)) == list(matrix));
  CHECK(x.to_string(INT32_MAX) == "[0. 1. 2.]");
  CHECK(x.to_string(-1) == "[0. 1. 2.]");
  Random random(1);
  AttentionSettings wide;
  wide.window = most;
  CHECK(list(attention(image, image, image, wide).o) == list(attention(image, image, image, {}).o));
  const std::vector<std::pair<std::function<void()>, std::string>> calls = {
      {[&] { one.expand({-5}); }, "expand"},
      {[&] {
         one.expand({most, most});
       },
       "expand"},
      {[&] {
         one.expand({int64_t{1} << 62, 4});
       },
       "expand"},
      {[&] {
         zeros({0, most, most});
       },
       "tensor"},
      {[&] { x.slice(0, least, 2); }, "slice"},
      {[&] { x.select(0, least); }, "select"},
      {[&] { x.at({least}); }, "at"},
      {[&] {
         x.reshape({int64_t{1} << 32, int64_t{1} << 32, -1});
       },
       "reshape"},
      {[&] {
         split(x, {1, most, 2});
       },
       "split"},
      {[&] {
         chunk(zeros({0, 3}), most);
       },
       "chunk"},
      {[&] { chunk(x, least); }, "chunk"},
      {[&] { arange(int64_t{1} << 60); }, "arange"},
      {[&] { arange(int64_t{1} << 50); },
       "arange: out of memory: 9007199254740992 bytes for shape (1125899906842624,)"},
      {[&] { randn({int64_t{1} << 50}, random); }, "randn: out of memory"},
      {[&] { one_hot(indices({0}), int64_t{1} << 50); }, "one_hot"},
      {[&] { full({}, 1).expand({int64_t{1} << 50}).to_vector<double>(); }, "to_vector: out of memory"},
      {[&] { unfold(image, {.kernel_h = most, .kernel_w = most}); }, "unfold"},
      {[&] { unfold(image, {.kernel_h = INT32_MAX, .kernel_w = INT32_MAX, .pad_h = INT32_MAX, .pad_w = INT32_MAX}); },
       "unfold"},
      {[&] { conv2d(image, kernel, {}, {.stride_h = most}); }, "conv2d"},
      {[&] { conv2d(image, kernel, {}, {.pad_w = most}); }, "conv2d"},
      {[&] { conv2d(image, kernel, {}, {.dilation_h = int64_t{1} << 62}); }, "conv2d"},
      {[&] { random.below(0); }, "Random::below"}};
  for (const auto& [call, op] : calls) CHECK(message_of<Error>(call).substr(0, op.size()) == op);
}

// ---- functions

TEST_CASE("tensor: reductions over any axes") {
  const Tensor x = normal({2, 3, 4}).transpose(0, 2);  // (4, 3, 2), not contiguous
  const Values values = list(x);
  const std::vector<Axes> choices = {{}, {0}, {1}, {2}, {-1}, {0, 1}, {2, 0}, {1, 2}, {0, 1, 2}};
  for (const Axes& axes : choices) {
    Shape kept = axes.empty() ? Shape{1, 1, 1} : x.shape();
    for (int axis : axes) kept[normalize_axis("test", axis, 3)] = 1;
    const size_t groups = static_cast<size_t>(kept.numel());
    std::vector<Values> group(groups);
    size_t n = 0;
    for_each_index(x.shape(), [&](std::vector<int64_t> index) {
      for (size_t i = 0; i < 3; i++) index[i] = kept[static_cast<int>(i)] == 1 ? 0 : index[i];
      group[static_cast<size_t>(row_major(kept, index))].push_back(values[n++]);
    });
    const auto each = [&](const std::function<double(const Values&)>& fn) {
      Values out;
      for (const Values& g : group) out.push_back(fn(g));
      return from_vector(out, kept, DType::f64);
    };
    const auto total = [](const Values& g) {
      double s = 0;
      for (double v : g) s += v;
      return s;
    };
    const auto average = [&](const Values& g) { return total(g) / static_cast<double>(g.size()); };
    const auto squares = [&](const Values& g) {
      double s = 0;
      for (double v : g) s += (v - average(g)) * (v - average(g));
      return s;
    };
    CHECK(largest_difference(sum(x, axes, true), each(total)) < 1e-13);
    CHECK(largest_difference(mean(x, axes, true), each(average)) < 1e-13);
    CHECK(list(max(x, axes, true)) ==
          list(each([](const Values& g) { return *std::max_element(g.begin(), g.end()); })));
    CHECK(list(min(x, axes, true)) ==
          list(each([](const Values& g) { return *std::min_element(g.begin(), g.end()); })));
    CHECK(largest_difference(var(x, axes, true, false), each([&](const Values& g) {
                               return squares(g) / static_cast<double>(g.size());
                             })) < 1e-13);
    CHECK(largest_difference(var(x, axes, true), each([&](const Values& g) {
                               return squares(g) / static_cast<double>(g.size() - 1);
                             })) < 1e-13);
    CHECK(list(sum(x, axes)) == list(sum(x, axes, true)));
    CHECK(sum(x, axes).rank() == (axes.empty() ? 0 : 3 - static_cast<int>(axes.size())));
  }
  CHECK_THROWS_AS(sum(x, {0, -3}), ShapeError);
  CHECK_THROWS_AS(sum(x, {3}), IndexError);
  CHECK_THROWS_AS(sum(indices({1, 2})), DTypeError);
}

TEST_CASE("tensor: reductions of nothing") {
  const Tensor none = zeros({0, 3}, DType::f64);
  CHECK(sum(none).item() == 0);
  CHECK(list(sum(none, {0})) == Values{0, 0, 0});
  CHECK(sum(none, {1}).shape() == Shape{0});
  CHECK(std::isnan(mean(none).item()));
  CHECK(message_of<ShapeError>([&] { max(none); }) == "max: x (0, 3) has no elements to choose from");
  CHECK(max(none, {1}).shape() == Shape{0});
  CHECK_THROWS_AS(argmax(none, 0), ShapeError);
}

TEST_CASE("tensor: argmax") {
  const Tensor x = f64({{1, 5, 5}, {7, 2, NAN}});
  CHECK(ints(argmax(x, 1)) == Ints{1, 2});
  CHECK(ints(argmax(x, 0)) == Ints{1, 0, 1});
  CHECK(argmax(x, -1, true).shape() == Shape{2, 1});
  CHECK(argmax(x.slice(1, 0, 2)).item() == 2);
  CHECK(argmax(x, 1).dtype() == DType::i32);
}

TEST_CASE("tensor: sum_to is the adjoint of broadcasting; sum_of_squares does not overflow") {
  const Tensor x = normal({2, 3, 4});
  CHECK(largest_difference(sum_to(x, {3, 1}), sum(x, {0, 2}).reshape({3, 1})) < 1e-13);
  CHECK(largest_difference(sum_to(x, {}), sum(x)) < 1e-13);
  CHECK(sum_to(x, {2, 3, 4}).shares_storage_with(x));
  CHECK_THROWS_AS(sum_to(x, {2}), ShapeError);
  CHECK(sum_of_squares(full({4}, 1e30, DType::f32)) == doctest::Approx(4e60));
}

TEST_CASE("tensor: matrix products of every form agree with their definition") {
  const auto check = [](const Tensor& a, const Tensor& b, const Shape& lead) {
    const int64_t M = a.size(-2), K = a.size(-1), N = b.size(-1);
    Shape shape = lead;
    shape.push_back(M);
    shape.push_back(N);
    const auto broadcast = [&](const Tensor& x) {
      Shape full = lead;
      full.push_back(x.size(-2));
      full.push_back(x.size(-1));
      return list(x.expand(full));
    };
    const Values av = broadcast(a), bv = broadcast(b);
    Values expected;
    for (int64_t i = 0; i < lead.numel(); i++) {
      for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
          double s = 0;
          for (int64_t k = 0; k < K; k++)
            s += av[static_cast<size_t>((i * M + m) * K + k)] * bv[static_cast<size_t>((i * K + k) * N + n)];
          expected.push_back(s);
        }
      }
    }
    CHECK(largest_difference(matmul(a, b), from_vector(expected, shape, DType::f64)) < 1e-12);
  };
  check(normal({3, 4}), normal({4, 5}), {});
  check(normal({4, 3}).transpose(0, 1), normal({5, 4}).transpose(0, 1), {});
  check(normal({3, 8}).slice(1, 0, 8, 2), normal({4, 10}).slice(1, 1, 10, 3), {});
  check(normal({2, 3, 4}), normal({2, 4, 5}), {2});
  check(normal({2, 3, 4}), normal({4, 5}), {2});
  check(normal({3, 4}), normal({2, 4, 5}), {2});
  check(normal({2, 1, 3, 4}), normal({5, 4, 2}), {2, 5});
  check(normal({3, 2, 4}).permute({1, 0, 2}), normal({4, 2, 5}).permute({1, 0, 2}), {2});
  check(normal({4}).expand({3, 4}), normal({4, 1}).expand({4, 5}), {});
  check(zeros({3, 0}, DType::f64), zeros({0, 2}, DType::f64), {});
  check(zeros({0, 3}, DType::f64), normal({3, 2}), {});
  CHECK(matmul(f64({1, 2}), f64({3, 4})).item() == 11);
  CHECK(list(matmul(f64({{1, 2}, {3, 4}}), f64({1, 1}))) == Values{3, 7});
  CHECK(list(matmul(f64({1, 1}), f64({{1, 2}, {3, 4}}))) == Values{4, 6});
  CHECK(message_of<ShapeError>([] {
          matmul(zeros({2, 3, 4}), zeros({3, 4, 5}));
        }) ==
        "matmul: leading axes do not broadcast: a (2, 3, 4) and b (3, 4, 5); all but the last two must be equal or 1");
  CHECK_THROWS_AS(matmul(tensor(1), tensor({1})), ShapeError);
  CHECK_THROWS_AS(linear(zeros({2, 3}), zeros({4, 2})), ShapeError);
  CHECK_THROWS_AS(linear(zeros({2, 3}), zeros({4, 3}), zeros({3})), ShapeError);
}

TEST_CASE("tensor: products of halves are f32, and those of the same numbers in f64") {
  const auto check = [](const Tensor& y, const Tensor& expected) {
    CHECK(y.dtype() == DType::f32);
    CHECK(largest_difference(y, expected) < 1e-5);
  };
  const auto f64_of = [](const Tensor& x) { return x.to(DType::f64); };
  for (const DeviceInfo& info : devices()) {
    if (!info.absent_because.empty()) continue;
    Device& d = device(info.name);
    for (DType half : {DType::f16, DType::bf16}) {
      INFO(info.name << ", " << name_of(half));
      const Tensor x = normal({3, 9, 7}).to(half).to(d), w = normal({5, 7}, 2).to(half).to(d);
      const Tensor bias = normal({5}, 3).to(half).to(d), wide_x = f64_of(x), wide_w = f64_of(w);
      check(linear(x, w), linear(wide_x, wide_w));
      check(linear(x, w, bias), linear(wide_x, wide_w, f64_of(bias)));
      check(linear(x, w, bias.to(DType::f32)), linear(wide_x, wide_w, f64_of(bias)));
      check(matmul(x.transpose(1, 2), x), matmul(wide_x.transpose(1, 2), wide_x));
      check(matmul(x.select(0, 0), x.transpose(1, 2)), matmul(wide_x.select(0, 0), wide_x.transpose(1, 2)));
      check(matmul(x.slice(1, 1, 9, 2), w.slice(0, 1, 5, 3).transpose(0, 1)),
            matmul(wide_x.slice(1, 1, 9, 2), wide_w.slice(0, 1, 5, 3).transpose(0, 1)));
      check(matmul(x, w.select(0, 1)), matmul(wide_x, wide_w.select(0, 1)));
      const DType other = half == DType::f16 ? DType::bf16 : DType::f16;
      for (DType mixed : {DType::f32, other}) {
        const Tensor v = w.to(mixed);
        check(linear(x, v), linear(wide_x, f64_of(v)));
      }
    }
  }
}

TEST_CASE("tensor: convolution agrees with its definition") {
  const auto check = [](const Tensor& x, const Tensor& w, const Tensor& b, const ConvOptions& o, int64_t groups) {
    const int64_t B = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3), O = w.size(0), kh = w.size(2),
                  kw = w.size(3);
    const int64_t OH = (H + 2 * o.pad_h - o.dilation_h * (kh - 1) - 1) / o.stride_h + 1;
    const int64_t OW = (W + 2 * o.pad_w - o.dilation_w * (kw - 1) - 1) / o.stride_w + 1;
    Tensor expected = zeros({B, O, OH, OW}, DType::f64);
    for_each_index(expected.shape(), [&](const std::vector<int64_t>& i) {
      double s = b.defined() ? b.at({i[1]}) : 0;
      const int64_t group = i[1] / (O / groups);
      for_each_index({C / groups, kh, kw}, [&](const std::vector<int64_t>& k) {
        const int64_t h = i[2] * o.stride_h - o.pad_h + k[1] * o.dilation_h,
                      v = i[3] * o.stride_w - o.pad_w + k[2] * o.dilation_w;
        if (h < 0 || h >= H || v < 0 || v >= W) return;
        s += w.at({i[1], k[0], k[1], k[2]}) * x.at({i[0], group * (C / groups) + k[0], h, v});
      });
      expected.set({i[0], i[1], i[2], i[3]}, s);
    });
    CHECK(largest_difference(conv2d(x, w, b, o, groups), expected) < 1e-12);
  };
  const Tensor x = normal({2, 4, 6, 5});
  check(x, normal({3, 4, 3, 2}), normal({3}), {}, 1);
  check(x, normal({3, 4, 1, 1}), {}, {}, 1);
  check(x, normal({4, 2, 2, 3}), normal({4}), {.stride_h = 2, .pad_w = 1}, 2);
  check(x, normal({4, 1, 3, 3}), {}, {.stride_w = 2, .pad_h = 2, .pad_w = 1, .dilation_h = 2}, 4);
  check(x.transpose(2, 3), normal({2, 4, 2, 2}).transpose(0, 1).contiguous_copy().transpose(0, 1), {},
        {.stride_h = 2, .stride_w = 2}, 1);
  CHECK_THROWS_AS(conv2d(x, normal({3, 4, 7, 2}), {}, {}), ShapeError);
  CHECK_THROWS_AS(conv2d(x, normal({3, 3, 2, 2}), {}, {}), ShapeError);
  CHECK_THROWS_AS(conv2d(x, normal({3, 2, 2, 2}), {}, {}, 2), ShapeError);
  CHECK_THROWS_AS(conv2d(x, normal({3, 4, 2, 2}), normal({4}), {}), ShapeError);
  CHECK_THROWS_AS(conv2d(x, normal({3, 4, 2, 2}), {}, {.stride_h = 0}), ShapeError);

  // fold is the adjoint of unfold: <unfold(x), c> = <x, fold(c)>
  const ConvOptions o = {.kernel_h = 3, .kernel_w = 2, .stride_h = 2, .pad_h = 1, .pad_w = 1, .dilation_w = 2};
  const Tensor columns = unfold(x, o), c = normal(columns.shape(), 9);
  CHECK(sum(columns * c).item() == doctest::Approx(sum(x * fold(c, x.shape(), o)).item()).epsilon(1e-12));
  CHECK_THROWS_AS(fold(c, {2, 4, 7, 5}, o), ShapeError);
}

TEST_CASE("tensor: joining and cutting") {
  const Tensor a = f64({{1, 2}, {3, 4}}), b = f64({{5, 6}});
  CHECK(list(cat({a, b})) == Values{1, 2, 3, 4, 5, 6});
  CHECK(list(cat({a, a.transpose(0, 1)}, -1)) == Values{1, 2, 1, 3, 3, 4, 2, 4});
  CHECK(cat({zeros({0, 2}, DType::f64), b}).shape() == Shape{1, 2});
  CHECK(list(cat({indices({1}), indices({2, 3})})) == Values{1, 2, 3});
  CHECK(list(stack({a, a + 10.0}, 1)) == Values{1, 2, 11, 12, 3, 4, 13, 14});
  CHECK(stack({a, a}, -1).shape() == Shape{2, 2, 2});
  CHECK(message_of<ShapeError>([&] {
          cat({a, b}, 1);
        }) == "cat: part 1 (1, 2) does not match part 0 (2, 2) outside axis 1");
  CHECK_THROWS_AS(cat({a, b.to(DType::f32)}), DTypeError);
  CHECK_THROWS_AS(stack({a, b}), ShapeError);
  const std::vector<Tensor> parts = split(arange(6), {1, 0, 5});
  CHECK(list(parts[2]) == Values{1, 2, 3, 4, 5});
  CHECK(parts[1].numel() == 0);
  CHECK(list(chunk(a, 2, 1)[1]) == Values{2, 4});
  CHECK(chunk(a, 2)[0].shares_storage_with(a));
  CHECK_THROWS_AS(split(a, {1, 2}), ShapeError);
  CHECK_THROWS_AS(split(a, {3, -1}), ShapeError);
  CHECK_THROWS_AS(chunk(a, 3), ShapeError);
  CHECK_THROWS_AS(chunk(a, 0), ShapeError);
}

TEST_CASE("tensor: choosing by index") {
  const Tensor x = f64({{1, 2, 3}, {4, 5, 6}});
  CHECK(list(gather(x, 1, indices({2, 0, 0, 1}, {2, 2}))) == Values{3, 1, 4, 5});
  CHECK(list(gather(x, 0, indices({1, 0, 1}, {1, 3}))) == Values{4, 2, 6});
  CHECK(list(gather(x, -1, indices({2}, {1, 1}))) == Values{3});  // smaller than x along the other axes
  CHECK_THROWS_AS(gather(x, 1, indices({0, 0, 0}, {3, 1})), ShapeError);
  CHECK_THROWS_AS(gather(x, 1, indices({0})), ShapeError);
  CHECK(message_of<IndexError>([&] {
          gather(x, 1, indices({0, 1, 3, 0}, {2, 2}));
        }) == "gather: index 3 at position 2 of (2, 2) is outside [0, 3)");

  const Tensor picked = index_select(x, 1, indices({2, 0, 1, 2}, {2, 2}));
  CHECK(picked.shape() == Shape{2, 2, 2});
  CHECK(list(picked) == Values{3, 1, 2, 3, 6, 4, 5, 6});
  CHECK(list(index_select(x.transpose(0, 1), 0, indices({1, 1}))) == Values{2, 5, 2, 5});
  CHECK(ints(index_select(indices({7, 8, 9}), 0, indices({2, 0}))) == Ints{9, 7});
  CHECK_THROWS_AS(index_select(x, 1, tensor({0})), DTypeError);
  CHECK_THROWS_AS(index_select(x, 0, indices({2})), IndexError);
  CHECK(embedding(x, indices({1}, {1, 1})).shape() == Shape{1, 1, 3});

  CHECK(list(scatter_add(x, 1, indices({0, 0, 2, 1}, {2, 2}), f64({{10, 20}, {30, 40}}))) ==
        Values{31, 2, 3, 4, 45, 36});
  CHECK(list(x) == Values{1, 2, 3, 4, 5, 6});
  CHECK(list(index_add(x, 0, indices({1, 1}), f64({{1, 1, 1}, {2, 2, 2}}))) == Values{1, 2, 3, 7, 8, 9});
  CHECK_THROWS_AS(scatter_add(x, 1, indices({0, 0}, {1, 2}), f64({{1}})), ShapeError);
  CHECK_THROWS_AS(index_add(x, 0, indices({1}), f64({1, 1, 1})), ShapeError);
}

TEST_CASE("tensor: one_hot, triangles, where") {
  CHECK(list(one_hot(indices({2, 0}), 3)) == Values{0, 0, 1, 1, 0, 0});
  CHECK(one_hot(indices({}, {0, 2}), 3).shape() == Shape{0, 2, 3});
  CHECK_THROWS_AS(one_hot(indices({3}), 3), IndexError);
  CHECK_THROWS_AS(one_hot(indices({0}), 0), ShapeError);
  CHECK_THROWS_AS(one_hot(tensor({0}), 3), DTypeError);

  const Tensor x = f64({{1, 2, 3}, {4, 5, 6}});
  CHECK(list(tril(x)) == Values{1, 0, 0, 4, 5, 0});
  CHECK(list(tril(x, 1)) == Values{1, 2, 0, 4, 5, 6});
  CHECK(list(tril(x, -1)) == Values{0, 0, 0, 4, 0, 0});
  CHECK(list(triu(x)) == Values{1, 2, 3, 0, 5, 6});
  CHECK(list(triu(x, -1)) == Values{1, 2, 3, 4, 5, 6});
  CHECK(list(triu(x, 2)) == Values{0, 0, 3, 0, 0, 0});
  CHECK(list(tril(f64({{NAN, INFINITY}, {1, NAN}}), -1)) == Values{0, 0, 1, 0});
  CHECK_THROWS_AS(tril(f64({1})), ShapeError);

  CHECK(list(where(indices({1, 0, 2}), f64({1, 2, 3}), f64(-1))) == Values{1, -1, 3});
  CHECK(list(masked_fill(f64({1, NAN, 3}), tensor({0, 1, 0}), -2)) == Values{1, -2, 3});
  CHECK_THROWS_AS(masked_fill(f64({1, 2}), tensor({{1, 0}, {0, 1}}), 0), ShapeError);
  CHECK_THROWS_AS(where(tensor({1, 0}), f64({1, 2, 3}), f64(1)), ShapeError);
  CHECK_THROWS_AS(clamp(x, 2, 1), NumericError);
  CHECK_THROWS_AS(clamp(x, NAN, 1), NumericError);
}

TEST_CASE("tensor: an operand of another dtype, device or size is refused by name, by the gradients' functions too") {
  const Tensor u, x = normal({2, 3}), y = softmax(x), other = normal({3}), half = x.to(DType::f32),
                  far = x.to(device("reference"));
  const Tensor row = normal({2, 1}), n = normal({2}), target = indices({0, 2}), w = normal({3}), w32 = w.to(DType::f32);
  const Tensor q = normal({1, 1, 2, 3}), image = normal({1, 1, 3, 3}), kernel = normal({1, 1, 2, 2});
  const AttentionResult a = attention(q, q, q, {});
  const AttentionSettings window = {.window = -1}, keep = {.keep = ones({2, 2}, DType::f64).to(device("reference"))},
                          scale = {.scale = NAN}, length = {.lengths = indices({3})};
  const std::vector<std::pair<std::function<void()>, std::string>> calls = {
      {[&] { unary_grad(Unary::tanh, x, u, other); }, "unary_grad: y is (3,), it must be (2, 3)"},
      {[&] { unary_grad(Unary::tanh, x, u, u); }, "unary_grad: y is undefined"},
      {[&] { unary_grad(Unary::sin, x, u, x); }, "unary_grad: x is undefined"},
      {[&] { unary_grad(Unary::rsqrt, x, u, x); }, "unary_grad: x is undefined"},
      {[&] { unary_grad(Unary::tanh, u, u, u); }, "unary_grad: an operand is undefined"},
      {[&] { unary_grad(Unary::tanh, x, u, half); }, "unary_grad: y is f32, it must be f64"},
      {[&] { unary_grad(Unary::tanh, x, u, far); }, "unary_grad: y is on reference, it must be on cpu"},
      {[&] { unary_grad(Unary::tanh, target, u, target); }, "unary_grad: an operand is i32"},
      {[&] { softmax_grad(other, y); }, "softmax_grad: dy is (3,)"},
      {[&] { softmax_grad(x, u); }, "softmax_grad: an operand is undefined"},
      {[&] { softmax_grad(half, y); }, "softmax_grad: dy is f32"},
      {[&] { log_softmax_grad(far, y); }, "log_softmax_grad: dy is on reference"},
      {[&] { layer_norm_grad(other, x, u, row, row, true, true, true); }, "layer_norm_grad: dy is (3,)"},
      {[&] { layer_norm_grad(x, x, n, row, row, true, true, true); }, "layer_norm_grad: x (2, 3) needs weight"},
      {[&] { layer_norm_grad(x, x, w, u, row, true, true, true); }, "layer_norm_grad: mean is undefined"},
      {[&] { layer_norm_grad(x, x, w, row, n, true, true, true); }, "layer_norm_grad: rstd is (2,), it must be (2, 1)"},
      {[&] { layer_norm_grad(tensor(1), tensor(1), u, tensor(1), tensor(1), true, false, false); },
       "layer_norm_grad: x must"},
      {[&] { rms_norm_grad(other, x, u, row, true, true); }, "rms_norm_grad: dy is (3,)"},
      {[&] { rms_norm_grad(x, x, w32, row, true, true); },
       "rms_norm_grad: dtypes differ: a (2, 3) is f64 and weight (3,) is f32"},
      {[&] { rms_norm_grad(x, x, w, u, true, true); }, "rms_norm_grad: rrms is undefined"},
      {[&] { cross_entropy_grad(row, n, x, target, {}); }, "cross_entropy_grad: dloss is (2, 1), it must be (2,)"},
      {[&] { cross_entropy_grad(n, u, x, target, {}); }, "cross_entropy_grad: lse is undefined"},
      {[&] {
         cross_entropy_grad(n, n, x, indices({0, 3}), {});
       },
       "cross_entropy_grad: target 3 in row 1 is outside"},
      {[&] { cross_entropy_grad(n, n, x, indices({0}), {}); }, "cross_entropy_grad: logits (2, 3) and target (1,)"},
      {[&] { cross_entropy_rows(x, n, {}); }, "cross_entropy: the target is f64, it must be i32"},
      {[&] { cross_entropy_rows(x, target, {.class_weight = w32}); }, "cross_entropy: class_weight is f32"},
      {[&] { attention_grad(other, q, q, q, a, {}); }, "attention_grad: dout is (3,)"},
      {[&] {
         attention_grad(q, q, q, q, {u, a.lse}, {});
       },
       "attention_grad: the result's o is undefined"},
      {[&] {
         attention_grad(q, q, q, q, {q, n}, {});
       },
       "attention_grad: the result's lse is (2,)"},
      {[&] { attention_grad(q, x, x, x, a, {}); }, "attention_grad: q (2, 3), k (2, 3), v (2, 3) must be"},
      {[&] { attention_grad(q, q, q, q, a, window); }, "attention_grad: the window is -1"},
      {[&] { attention(tensor(1), tensor(1), tensor(1), {}); }, "attention: q (), k (), v () must be"},
      {[&] { attention(q, q, q, window); }, "attention: the window is -1, it must be positive, or 0 for none"},
      {[&] { attention(q, q, q, scale); }, "attention: the scale is nan"},
      {[&] { attention(q, q, q, keep); },
       "attention: devices differ: a (1, 1, 2, 3) is on cpu and the mask (2, 2) is on reference"},
      {[&] { attention(q, q, q, length); }, "attention: length 3 at position 0 of (1,) is outside [0, 3)"},
      {[&] { conv2d(image, kernel, tensor({1}), {}); }, "conv2d: dtypes differ"},
      {[&] { conv2d(image, kernel, f64({1}).to(device("reference")), {}); }, "conv2d: devices differ"},
      {[&] { layer_norm(x, u, u, NAN); }, "layer_norm: eps is nan"},
      {[&] { rms_norm(x, u, -1); }, "rms_norm: eps is -1"}};
  for (const auto& [call, start] : calls) CHECK(message_of<Error>(call).substr(0, start.size()) == start);
  // Strides of any kind are taken.
  const Tensor spread = normal({2, 2}).slice(1, 0, 1), spread_n = normal({4}).slice(0, 0, 4, 2);
  CHECK(list(rms_norm_grad(x, x, w, spread, true, true).dx) ==
        list(rms_norm_grad(x, x, w, spread.contiguous_copy(), true, true).dx));
  CHECK(list(cross_entropy_grad(n, spread_n, x, target, {})) ==
        list(cross_entropy_grad(n, spread_n.contiguous_copy(), x, target, {})));
  CHECK(list(attention(q, q, q, {.lengths = indices({1, 2}).slice(0, 0, 2, 2)}).o) ==
        list(attention(q, q, q, {.lengths = indices({1})}).o));
}

// ---- printing: the expected texts are NumPy's

TEST_CASE("tensor: prints like NumPy") {
  CHECK(f64({1, 2.5, -3}).to_string() == "[ 1.   2.5 -3. ]");
  CHECK(f64({{1, 2, 3}, {4, 5, 6}}).to_string() == "[[1. 2. 3.]\n [4. 5. 6.]]");
  CHECK(indices({1, -20, 300, 4}, {2, 2}).to_string() == "[[  1 -20]\n [300   4]]");
  CHECK(f64({1. / 3, 2. / 3, 10}).to(DType::f64).to_string().size() == 25);
  CHECK((f64({1, 2, 30}) / 3).to_string() == "[ 0.3333  0.6667 10.    ]");
  CHECK((f64({1, 1e5, 2e5}) / 1e5).to_string() == "[1.e-05 1.e+00 2.e+00]");
  CHECK(f64({1e9, 1}).to_string() == "[1.e+09 1.e+00]");
  CHECK(f64({NAN, INFINITY, -INFINITY, 1.5}).to_string() == "[ nan  inf -inf  1.5]");
  CHECK(arange(8).reshape({2, 2, 2}).to_string() == "[[[0. 1.]\n  [2. 3.]]\n\n [[4. 5.]\n  [6. 7.]]]");
  CHECK(arange(30).to_string() ==
        "[ 0.  1.  2.  3.  4.  5.  6.  7.  8.  9. 10. 11. 12. 13. 14. 15. 16. 17.\n 18. 19. 20. 21. 22. 23. 24. 25. "
        "26. 27. 28. 29.]");
  CHECK(arange(2000).to_string() == "[0.000e+00 1.000e+00 2.000e+00 ... 1.997e+03 1.998e+03 1.999e+03]");
  CHECK((arange(13, DType::f64) / 12).to_string() ==
        "[0.     0.0833 0.1667 0.25   0.3333 0.4167 0.5    0.5833 0.6667 0.75\n 0.8333 0.9167 1.    ]");
  CHECK(arange(1200).reshape({40, 30}).to_string() ==
        "[[0.000e+00 1.000e+00 2.000e+00 ... 2.700e+01 2.800e+01 2.900e+01]\n"
        " [3.000e+01 3.100e+01 3.200e+01 ... 5.700e+01 5.800e+01 5.900e+01]\n"
        " [6.000e+01 6.100e+01 6.200e+01 ... 8.700e+01 8.800e+01 8.900e+01]\n"
        " ...\n"
        " [1.110e+03 1.111e+03 1.112e+03 ... 1.137e+03 1.138e+03 1.139e+03]\n"
        " [1.140e+03 1.141e+03 1.142e+03 ... 1.167e+03 1.168e+03 1.169e+03]\n"
        " [1.170e+03 1.171e+03 1.172e+03 ... 1.197e+03 1.198e+03 1.199e+03]]");
  CHECK(f64(2.5).to_string() == "2.5");
  CHECK(f64(3).to_string() == "3.0");
  CHECK(zeros({0}).to_string() == "[]");
  CHECK(f64({-0.0, 0.0}).to_string() == "[-0.  0.]");
  CHECK((f64({1, 10012.3}) / 100).to_string() == "[1.0000e-02 1.0012e+02]");
  CHECK(f64({NAN, 1e-7}).to(DType::f64).to_string() == "[   nan 1.e-07]");
  CHECK((f64({1e30, -1.5e-20}) * 1e20).to_string() == "[ 1.0e+50 -1.5e+00]");
  CHECK(from_vector(Values{1e100, -1.5}, {2}, DType::f64).to_string() == "[ 1.0e+100 -1.5e+000]");
  CHECK(f64({{1.5}, {-22.25}}).to_string() == "[[  1.5 ]\n [-22.25]]");
  CHECK(from_vector(Values{123456.789}, {1}, DType::f64).to_string() == "[123456.789]");
  CHECK(from_vector(Values{123456789.123}, {1}, DType::f64).to_string() == "[1.2346e+08]");
  std::ostringstream out;
  out << arange(3);
  CHECK(out.str() == "[0. 1. 2.]");
}
