#include "tests/op_table.h"

#include <algorithm>
#include <numeric>

namespace heed::tests {

namespace {

using X = const std::vector<Variable>&;

// ---- constants that ops take, made on the default device

Tensor pattern(const Shape& shape, DType dtype) {  // 0 and 1, irregular
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); i++) values[i] = i * 5 % 7 % 3 == 0;
  return from_vector(values, shape, dtype);
}

Tensor pattern_like(const Variable& x) { return pattern(x.shape(), x.dtype()); }

Tensor index(const Shape& shape, int64_t below) {  // with repetitions
  std::vector<int32_t> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); i++)
    values[i] = static_cast<int32_t>((i * 5 + i / 3) % static_cast<size_t>(below));
  return indices(values, shape);
}

Tensor targets(int64_t rows, int64_t classes, bool ignore_some = false) {
  std::vector<int32_t> values(static_cast<size_t>(rows));
  for (size_t i = 0; i < values.size(); i++) {
    values[i] = ignore_some && i % 3 == 1 ? -100 : static_cast<int32_t>(i * 2 % static_cast<size_t>(classes));
  }
  return indices(values);
}

// ---- rows

std::vector<OpRow> rows;

OpRow& row(const char* name, const char* variant, const std::vector<Input>& inputs, std::function<Variable(X)> apply) {
  rows.push_back({name, variant, inputs, std::move(apply)});
  return rows.back();
}

using BinaryOp = Variable (*)(const Variable&, const Variable&, Site);

void binary(const char* name, BinaryOp op, Domain a, Domain b) {
  const auto apply = [op](X x) { return op(x[0], x[1], Site::here()); };
  row(name, "equal shapes", {{{N, 3}, a}, {{N, 3}, b}}, apply);
  row(name, "b is broadcast", {{{2, N, 3}, a}, {{3}, b}}, apply);
  row(name, "both are broadcast", {{{N, 1, 2}, a}, {{3, 1}, b}}, apply);
  row(name, "a is a scalar", {{{}, a}, {{N}, b}}, apply);
  row(name, "scalars", {{{}, a}, {{}, b}}, apply);
}

void unary(const char* name, Domain domain, std::function<Variable(const Variable&)> op) {
  row(name, "", {{{N, 3}, domain}}, [op](X x) { return op(x[0]); });
}

void arithmetic() {
  binary("add", add, Domain::any, Domain::any);
  binary("sub", sub, Domain::any, Domain::any);
  binary("mul", mul, Domain::any, Domain::any);
  binary("div", div, Domain::any, Domain::positive);
  binary("pow", pow, Domain::positive, Domain::any);
  binary("maximum", maximum, Domain::apart, Domain::apart);
  binary("minimum", minimum, Domain::apart, Domain::apart);

  const std::vector<Input> two = {{{N, 3}}, {{N, 3}, Domain::positive}};
  row("operator+", "", two, [](X x) { return x[0] + x[1]; });
  row("operator-", "", two, [](X x) { return x[0] - x[1]; });
  row("operator*", "", two, [](X x) { return x[0] * x[1]; });
  row("operator/", "", two, [](X x) { return x[0] / x[1]; });
  row("operator-", "of one operand", {{{N, 3}}}, [](X x) { return -x[0]; });
  row("operator+", "with a number", {{{N, 3}}}, [](X x) { return 2 + (x[0] + 0.5); });
  row("operator-", "with a number", {{{N, 3}}}, [](X x) { return 2 - (x[0] - 0.5); });
  row("operator*", "with a number", {{{N, 3}}}, [](X x) { return 2 * (x[0] * 0.3); });
  row("operator/", "with a number", {{{N, 3}, Domain::positive}}, [](X x) { return 2 / (x[0] / 3); });

  row("where", "", {{{N, 3}}, {{N, 3}}}, [](X x) { return where(pattern_like(x[0]), x[0], x[1]); });
  row("where", "all are broadcast", {{{N, 1, 1}}, {{2, 1}}},
      [](X x) { return where(pattern({4}, DType::f32), x[0], x[1]); });
  row("masked_fill", "mask is broadcast", {{{N, 3}}},
      [](X x) { return masked_fill(x[0], pattern({3}, x[0].dtype()), -2); });
}

void elementwise() {
  unary("affine", Domain::any, [](const Variable& x) { return affine(x, -1.5, 0.25); });
  unary("neg", Domain::any, [](const Variable& x) { return neg(x); });
  unary("reciprocal", Domain::positive, [](const Variable& x) { return reciprocal(x); });
  unary("exp", Domain::any, [](const Variable& x) { return exp(x); });
  unary("log", Domain::positive, [](const Variable& x) { return log(x); });
  unary("sqrt", Domain::positive, [](const Variable& x) { return sqrt(x); });
  unary("rsqrt", Domain::positive, [](const Variable& x) { return rsqrt(x); });
  unary("square", Domain::any, [](const Variable& x) { return square(x); });
  row("pow", "to the third", {{{N, 3}}}, [](X x) { return pow(x[0], 3); });
  row("pow", "to a negative number", {{{N, 3}, Domain::positive}}, [](X x) { return pow(x[0], -1.7); });
  unary("sin", Domain::any, [](const Variable& x) { return sin(x); });
  unary("cos", Domain::any, [](const Variable& x) { return cos(x); });
  unary("tanh", Domain::any, [](const Variable& x) { return tanh(x); });
  unary("sigmoid", Domain::any, [](const Variable& x) { return sigmoid(x); });
  unary("relu", Domain::apart, [](const Variable& x) { return relu(x); });
  unary("gelu", Domain::any, [](const Variable& x) { return gelu(x); });
  unary("gelu_tanh", Domain::any, [](const Variable& x) { return gelu_tanh(x); });
  unary("silu", Domain::any, [](const Variable& x) { return silu(x); });
  unary("erf", Domain::any, [](const Variable& x) { return erf(x); });
  unary("abs", Domain::apart, [](const Variable& x) { return abs(x); });
  unary("clamp", Domain::apart, [](const Variable& x) { return clamp(x, -0.7123, 0.9127); });

  const auto dropped = [](X x) {
    set_dropout_stream(3, 1, 5);
    return dropout(x[0], 0.4);
  };
  row("dropout", "", {{{N, 5}}}, dropped);
  row("dropout", "four axes", {{{2, 2, N, 5}}}, dropped);
}

using Reducer = std::function<Variable(const Variable&, const Axes&, bool)>;

void reduction(const char* name, Domain domain, const Reducer& op, bool of_nothing) {
  row(name, "of all", {{{N, 4}, domain}}, [op](X x) { return op(x[0], {}, false); }).empty = of_nothing;
  row(name, "of all, keepdim", {{{2, N, 4}, domain}}, [op](X x) { return op(x[0], {}, true); }).empty = of_nothing;
  row(name, "of rows", {{{N, 4}, domain}}, [op](X x) { return op(x[0], {-1}, false); });
  row(name, "of the middle axis", {{{N, 3, 2}, domain}}, [op](X x) { return op(x[0], {1}, false); });
  row(name, "of the outer axes", {{{2, N, 4}, domain}}, [op](X x) { return op(x[0], {2, 0}, true); });
  row(name, "of columns", {{{N + 1, 3}, domain}, {{3}}}, [op](X x) { return op(x[0], {0}, false) * x[1]; });
}

void reductions() {
  reduction(
      "sum", Domain::any, [](const Variable& x, const Axes& axes, bool keep) { return sum(x, axes, keep); }, true);
  reduction(
      "mean", Domain::any, [](const Variable& x, const Axes& axes, bool keep) { return mean(x, axes, keep); }, false);
  reduction(
      "max", Domain::apart, [](const Variable& x, const Axes& axes, bool keep) { return max(x, axes, keep); }, false);
  reduction(
      "min", Domain::apart, [](const Variable& x, const Axes& axes, bool keep) { return min(x, axes, keep); }, false);
  reduction(
      "var", Domain::any, [](const Variable& x, const Axes& axes, bool keep) { return var(x, axes, keep, false); },
      false);
  row("var", "unbiased", {{{N, 4}}}, [](X x) { return var(x[0], {1}); });
  row("sum", "of a scalar", {{{}}}, [](X x) { return sum(x[0]); });
}

void products() {
  const auto product = [](X x) { return matmul(x[0], x[1]); };
  row("matmul", "rows", {{{N, 4}}, {{4, 3}}}, product);
  row("matmul", "inner size", {{{3, N}}, {{N, 2}}}, product);
  row("matmul", "columns", {{{3, 4}}, {{4, N}}}, product);
  row("matmul", "square", {{{N, N}}, {{N, N}}}, product).largest = 130;
  row("matmul", "batched", {{{2, N, 3}}, {{2, 3, 4}}}, product);
  row("matmul", "broadcast batches", {{{2, 1, N, 3}}, {{4, 3, 2}}}, product);
  row("matmul", "one b for many a", {{{2, N, 3}}, {{3, 4}}}, product);
  row("matmul", "one a for many b", {{{N, 3}}, {{4, 3, 2}}}, product);
  row("matmul", "a vector and a matrix", {{{3}}, {{3, N}}}, product);
  row("matmul", "a matrix and a vector", {{{N, 3}}, {{3}}}, product);
  row("matmul", "two vectors", {{{N}}, {{N}}}, product);
  row("matmul", "a vector and a batch", {{{3}}, {{2, 3, N}}}, product);
  row("matmul", "a batch and a vector", {{{2, N, 3}}, {{3}}}, product);

  row("linear", "", {{{N, 4}}, {{3, 4}}, {{3}}}, [](X x) { return linear(x[0], x[1], x[2]); });
  row("linear", "three axes, no bias", {{{2, N, 4}}, {{3, 4}}}, [](X x) { return linear(x[0], x[1]); });
  row("linear", "one row, long", {{{N}}, {{3, N}}, {{3}}}, [](X x) { return linear(x[0], x[1], x[2]); });

  row("conv2d", "", {{{2, 3, N + 3, 4}}, {{4, 3, 3, 2}}, {{4}}}, [](X x) { return conv2d(x[0], x[1], x[2], {}); });
  row("conv2d", "patches of a batch", {{{N, 2, 4, 4}}, {{3, 2, 2, 2}}, {{3}}},
      [](X x) { return conv2d(x[0], x[1], x[2], {.stride_h = 2, .stride_w = 2}); });
  row("conv2d", "groups, stride, padding, dilation", {{{1, 4, N + 4, 5}}, {{6, 2, 3, 2}}},
      [](X x) { return conv2d(x[0], x[1], {}, {.stride_h = 2, .pad_h = 1, .pad_w = 2, .dilation_w = 2}, 2); });
}

OpRow& attention_row(const char* variant, int64_t T, int64_t S, std::function<AttentionSettings(X)> settings) {
  return row("attention", variant, {{{2, 2, T, 3}}, {{2, 2, S, 3}}, {{2, 2, S, 4}}},
             [settings](X x) { return attention(x[0], x[1], x[2], settings(x)); });
}

void attentions() {
  using Settings = AttentionSettings;
  const auto causal = [](X) { return Settings{.causal = true}; };
  attention_row("n queries", N, 5, [](X) { return Settings{}; });
  attention_row("n keys", 3, N, [](X) { return Settings{.scale = 0.4}; });
  attention_row("causal", N, N, causal).largest = 130;
  attention_row("causal, more keys", N, N + 3, causal).largest = 70;
  attention_row("causal, fewer keys", N + 2, N, causal).largest = 70;
  attention_row("window", N, N, [](X) { return Settings{.window = 2}; }).largest = 130;
  attention_row("one sample is all padding", N, 4, [](X) { return Settings{.lengths = indices({3, 0})}; });
  attention_row("padding and causal", N, N + 1, [](X x) {
    return Settings{.causal = true, .lengths = indices({1, static_cast<int32_t>(x[1].size(2))})};
  }).largest = 70;
  attention_row("mask", N, 5, [](X x) { return Settings{.keep = pattern({x[0].size(2), 5}, x[0].dtype())}; });
  attention_row("mask with four axes", N, 5, [](X x) {
    return Settings{.keep = pattern({2, 1, x[0].size(2), 5}, DType::f32)};
  });
  attention_row("dropout", N, 6, [](X) { return Settings{.dropout = {.p = 0.3, .key = 11, .first_sample = 4}}; });
}

void along_rows() {
  row("softmax", "", {{{N, 4}}}, [](X x) { return softmax(x[0]); });
  row("softmax", "long rows", {{{2, N + 1}}}, [](X x) { return softmax(x[0]); });
  row("softmax", "middle axis", {{{2, 3, N}}}, [](X x) { return softmax(x[0], 1); });
  row("log_softmax", "", {{{N, 4}}}, [](X x) { return log_softmax(x[0]); });
  row("log_softmax", "long rows", {{{2, N + 1}}}, [](X x) { return log_softmax(x[0]); });
  row("log_softmax", "first axis", {{{3, N}}}, [](X x) { return log_softmax(x[0], 0); });

  row("layer_norm", "", {{{N, 5}}, {{5}}, {{5}}}, [](X x) { return layer_norm(x[0], x[1], x[2]); });
  row("layer_norm", "long rows", {{{3, N}}, {{N}}, {{N}}}, [](X x) { return layer_norm(x[0], x[1], x[2], 1e-2); });
  row("layer_norm", "no bias", {{{2, N, 5}}, {{5}}}, [](X x) { return layer_norm(x[0], x[1]); });
  row("layer_norm", "nothing to learn", {{{N, 5}}}, [](X x) { return layer_norm(x[0]); });
  row("rms_norm", "", {{{N, 5}}, {{5}}}, [](X x) { return rms_norm(x[0], x[1]); });
  row("rms_norm", "long rows", {{{2, 2, N}}, {{N}}}, [](X x) { return rms_norm(x[0], x[1], 1e-2); });
  row("rms_norm", "nothing to learn", {{{N, 5}}}, [](X x) { return rms_norm(x[0]); });
}

void shapes() {
  row("reshape", "", {{{N, 6}}}, [](X x) { return reshape(x[0], {x[0].size(0) * 2, 3}); });
  row("flatten", "", {{{2, N, 3}}}, [](X x) { return flatten(x[0]); });
  row("flatten", "from the second axis", {{{2, N, 3}}}, [](X x) { return flatten(x[0], 1); });
  row("transpose", "", {{{2, N, 3}}}, [](X x) { return transpose(x[0], 0, -1); });
  row("permute", "", {{{2, N, 3}}}, [](X x) { return permute(x[0], {1, -1, 0}); });
  row("expand", "", {{{N, 1}}}, [](X x) { return expand(x[0], {4, x[0].size(0), 3}); });
  row("unsqueeze", "", {{{N, 6}}}, [](X x) { return unsqueeze(x[0], 1); });
  row("unsqueeze", "last", {{{N, 6}}}, [](X x) { return unsqueeze(x[0], -1); });
  row("squeeze", "", {{{N, 1, 3}}}, [](X x) { return squeeze(x[0], -2); });
  row("slice", "", {{{N + 2, 3}}}, [](X x) { return slice(x[0], 0, 1, -1); });
  row("slice", "of columns", {{{N, 6}}}, [](X x) { return slice(x[0], -1, -4, 5); });
  row("select", "", {{{2, N, 3}}}, [](X x) { return select(x[0], 0, 1); });
  row("select", "of columns", {{{N, 6}}}, [](X x) { return select(x[0], -1, -2); });

  row("cat", "", {{{N, 2}}, {{1, 2}}, {{N, 2}}}, [](X x) { return cat(x); });
  row("cat", "columns; one part twice", {{{N, 2}}, {{N, 1}}}, [](X x) { return cat({x[0], x[1], x[0]}, -1); });
  row("stack", "", {{{N, 2}}, {{N, 2}}}, [](X x) { return stack(x); });
  row("stack", "last axis; one part twice", {{{N, 2}}, {{N, 2}}}, [](X x) { return stack({x[1], x[0], x[1]}, -1); });
  row("split", "", {{{N, 6}}}, [](X x) {
    const std::vector<Variable> parts = split(x[0], {1, 2, 3}, 1);
    return cat({parts[2], parts[0] * 2, parts[2]}, 1);
  });
  row("chunk", "", {{{N, 6}}}, [](X x) {
    const std::vector<Variable> parts = chunk(x[0], 3, -1);
    return parts[0] * parts[2] + parts[1];
  });
  row("tril", "", {{{N, 4}}}, [](X x) { return tril(x[0]); });
  row("tril", "above the diagonal", {{{2, 3, N}}}, [](X x) { return tril(x[0], 1); });
  row("triu", "", {{{N, 4}}}, [](X x) { return triu(x[0]); });
  row("triu", "below the diagonal", {{{2, 3, N}}}, [](X x) { return triu(x[0], -2); });
}

void by_index() {
  row("gather", "rows", {{{N + 1, 3}}}, [](X x) {
    return gather(x[0], 0, index({x[0].size(0) - 1, 2}, x[0].size(0)));
  });
  row("gather", "columns", {{{N, 4}}}, [](X x) { return gather(x[0], -1, index({x[0].size(0), 6}, 4)); });
  row("index_select", "rows", {{{4, N}}}, [](X x) { return index_select(x[0], 0, index({7}, 4)); });
  row("index_select", "a matrix of columns", {{{2, N + 1, 2}}}, [](X x) {
    return index_select(x[0], 1, index({2, x[0].size(1) - 1}, x[0].size(1)));
  });
  row("scatter_add", "", {{{3, 2}}, {{N, 2}}}, [](X x) { return scatter_add(x[0], 0, index(x[1].shape(), 3), x[1]); });
  row("scatter_add", "columns", {{{N, 4}}, {{N, 6}}},
      [](X x) { return scatter_add(x[0], 1, index(x[1].shape(), 4), x[1]); });
  row("embedding", "", {{{N + 1, 3}}}, [](X x) { return embedding(x[0], index({2, 4}, x[0].size(0))); });
  row("embedding", "repeated ids", {{{5, 3}}}, [](X x) { return embedding(x[0], index({9}, 5)); });
  row("embedding", "no ids", {{{5, 3}}, {{1}}}, [](X x) { return sum(embedding(x[0], index({0, 4}, 5))) + x[1]; });
}

void losses() {
  for (const Reduce reduce : {Reduce::mean, Reduce::sum, Reduce::none}) {
    row("cross_entropy", "", {{{N, 3}}},
        [=](X x) { return cross_entropy(x[0], targets(x[0].size(0), 3), {}, reduce); });
    row("cross_entropy", "ignored rows, smoothing, class weights", {{{N, 3}}}, [=](X x) {
      const Tensor weight = from_vector(std::vector<double>{0.5, 2, 1}, {3}, x[0].dtype());
      const CrossEntropySettings settings = {.label_smoothing = 0.1, .class_weight = weight};
      return cross_entropy(x[0], targets(x[0].size(0), 3, true), settings, reduce);
    });
    row("binary_cross_entropy_with_logits", "", {{{N, 3}}},
        [=](X x) { return binary_cross_entropy_with_logits(x[0], pattern_like(x[0]), reduce); });
    row("mse", "", {{{N, 2}}, {{N, 2}}}, [=](X x) { return mse(x[0], x[1], reduce); });
  }
  row("cross_entropy", "many classes", {{{3, N + 1}}},
      [](X x) { return cross_entropy(x[0], targets(3, x[0].size(1)), {.label_smoothing = 0.2}); });
}

}  // namespace

const std::vector<OpRow>& op_table() {
  if (rows.empty()) {
    arithmetic();
    elementwise();
    reductions();
    products();
    attentions();
    along_rows();
    shapes();
    by_index();
    losses();
  }
  return rows;
}

std::vector<Input> OpRow::at(int64_t n) const {
  std::vector<Input> out = inputs;
  for (Input& input : out) {
    for (int i = 0; i < input.shape.rank(); i++) {
      if (input.shape[i] >= N / 2) input.shape[i] += n - N;
    }
  }
  return out;
}

Tensor make_input(const Input& input, size_t position, DType dtype, Device& device) {
  Random random(17 + position);
  std::vector<double> values(static_cast<size_t>(input.shape.numel()));
  if (input.domain == Domain::apart) {
    const double spacing = 4.0 / static_cast<double>(values.size() + 1);
    for (size_t i = 0; i < values.size(); i++)
      values[i] = -2 + spacing * (static_cast<double>(i) + 0.6 + 0.3 * static_cast<double>(position));
    random.shuffle(values);
  } else {
    for (double& value : values) value = input.domain == Domain::positive ? random.uniform(0.5, 2) : random.normal();
  }
  for (double& value : values) value = static_cast<float>(value);
  const OnDevice on(device);
  return from_vector(values, input.shape, dtype);
}

std::vector<Tensor> make_inputs(const OpRow& row, int64_t n, DType dtype, Device& device) {
  std::vector<Tensor> out;
  for (const Input& input : row.at(n)) out.push_back(make_input(input, out.size(), dtype, device));
  return out;
}

}  // namespace heed::tests
