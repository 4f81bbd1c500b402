// Attention: the articles' classes against PyTorch's numbers; composed against fused for every mask; what hidden keys
// may hold.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "nn/attention.h"
#include "nn/multihead_attention.h"
#include "tests/golden.h"

using namespace heed;
using namespace heed::nn;
using namespace heed::tests;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr const char* kDevices[] = {"reference", "cpu"};

// Queries, keys and values with an upstream gradient; run() gives output, dq, dk, dv.
struct Problem {
  Tensor q, k, v, upstream;

  Problem(int64_t B, int64_t H, int64_t T, int64_t S, int64_t D, int64_t E, uint64_t seed) {
    Random random(seed);
    q = randn({B, H, T, D}, random), k = randn({B, H, S, D}, random), v = randn({B, H, S, E}, random);
    upstream = randn({B, H, T, E}, random);
  }

  std::vector<Tensor> run(bool fused, const Mask& mask, double dropout = 0) const {
    set_dropout_stream(5, 3);
    Variable vq(q, true, "q"), vk(k, true, "k"), vv(v, true, "v");
    const DotProductOptions options{.dropout = dropout};
    const Variable out = fused ? fused_scaled_dot_product_attention(vq, vk, vv, mask, options)
                               : scaled_dot_product_attention(vq, vk, vv, mask, options).output;
    if (out.numel() > 0) sum(out * Variable(upstream)).backward();
    return {out.value(), vq.grad(), vk.grad(), vv.grad()};
  }
};

double largest_difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); i++) largest = std::max(largest, difference(a[i], b[i]));
  return largest;
}

Tensor random_keep(const Shape& shape, uint64_t seed) {
  Random random(seed);
  return bernoulli(shape, 0.6, random);
}

struct NamedMask {
  std::string name;
  Mask mask;
};

std::vector<NamedMask> base_masks(int64_t B, int64_t H, int64_t T, int64_t S) {
  std::vector<int32_t> lengths(static_cast<size_t>(B), static_cast<int32_t>(S / 2)),
      empty(static_cast<size_t>(B), static_cast<int32_t>(S));
  lengths[0] = static_cast<int32_t>(S);
  empty[0] = 0;
  Tensor hidden_row = ones({T, S});
  hidden_row.select(0, 0).fill_(0);
  return {{"none", {}},
          {"causal", Mask::causal()},
          {"window 2", Mask::window(2)},
          {"padding", Mask::padding(indices(lengths))},
          {"padding of length 0", Mask::padding(indices(empty))},
          {"keep (T, S)", Mask::keep(random_keep({T, S}, 1))},
          {"keep with a hidden row", Mask::keep(hidden_row)},
          {"keep (B, T, S)", Mask::keep(random_keep({B, T, S}, 2))},
          {"keep (B, H, T, S)", Mask::keep(random_keep({B, H, T, S}, 3))},
          {"keep (B, 1, 1, S)", Mask::keep(random_keep({B, 1, 1, S}, 4))}};
}

}  // namespace

TEST_CASE("attention: PyTorch's scaled dot product, composed and fused") {
  for (const char* device_name : kDevices) {
    for (const char* name : {"sdpa", "sdpa_causal", "sdpa_padding", "sdpa_causal_padding", "sdpa_cross", "sdpa_tile",
                             "sdpa_tile_causal"}) {
      for (bool fused : {false, true}) {
        INFO(device_name << " " << name << (fused ? " fused" : " composed"));
        const InDoubles scope(device_name);
        const GoldenCase golden = golden_case("modules", name);
        Mask mask;
        if (golden.inputs.count("keep")) mask = Mask::keep(golden.inputs.at("keep"));
        if (std::string(name) == "sdpa_tile_causal") mask = Mask::causal();
        CHECK(golden_difference(golden, nullptr, [&](GoldenInputs& x) -> std::vector<Variable> {
                if (fused) return {fused_scaled_dot_product_attention(x["q"], x["k"], x["v"], mask)};
                return {scaled_dot_product_attention(x["q"], x["k"], x["v"], mask).output};
              }) < 1e-10);
      }
    }
  }
}

TEST_CASE("attention: article 000's worked example") {
  const InDoubles scope("reference");
  const Variable q(tensor({1, 2}).reshape({1, 1, 2, 1})), k(tensor({0.5, 1.5}).reshape({1, 1, 2, 1})),
      v(tensor({10, 20}).reshape({1, 1, 2, 1}));
  const AttentionOutput a = scaled_dot_product_attention(q, k, v);
  CHECK(difference(a.weights.value().reshape({2, 2}), tensor({{.2689, .7311}, {.1192, .8808}})) < 1e-4);
  CHECK(difference(a.output.value().reshape({2}), tensor({17.3106, 18.8080})) < 1e-5);
}

TEST_CASE("attention: the articles' classes agree with PyTorch, outputs and every gradient") {
  for (const char* device_name : kDevices) {
    for (bool fused : {false, true}) {
      INFO(device_name << (fused ? " fused" : " composed"));
      const InDoubles scope(device_name);
      Random random(1);
      const auto check = [&](const char* name, SelfAttention& module) {
        INFO(name);
        module.use_fused(fused);
        const GoldenCase golden = golden_case("modules", name);
        const Mask mask = golden.inputs.count("mask") ? Mask::keep(golden.inputs.at("mask")) : Mask();
        CHECK(golden_difference(golden, &module, [&](GoldenInputs& x) -> std::vector<Variable> {
                return {module.forward(x["x"], mask)};
              }) < 1e-10);
      };
      SingleHeadAttention single(8, 4, random);
      check("single_head_000", single);
      BasicAttention basic(8, 4, random);
      check("basic_attention_002", basic);
      MultiHeadAttention heads(2, 8, 4, random), wide(3, 8, 4, random);
      check("mha_002", heads);
      check("mha_002_wide", wide);
    }
    const InDoubles scope(device_name);
    Random random(1);
    MultiHeadSelfAttention self(16, 4, random);
    for (const char* name : {"mhsa_003", "mhsa_003_causal", "mhsa_003_padding"}) {
      INFO(device_name << " " << name);
      const GoldenCase golden = golden_case("modules", name);
      const Mask mask = golden.inputs.count("mask") ? Mask::keep(golden.inputs.at("mask")) : Mask();
      CHECK(golden_difference(golden, &self, [&](GoldenInputs& x) -> std::vector<Variable> {
              const AttentionOutput a = self.forward(x["x"], mask);
              return {a.output, a.weights};
            }) < 1e-10);
    }
  }
}

TEST_CASE("attention: PyTorch's MultiheadAttention") {
  for (const char* device_name : kDevices) {
    for (bool fused : {false, true}) {
      INFO(device_name << (fused ? " fused" : " composed"));
      const InDoubles scope(device_name);
      Random random(1);
      MultiheadAttention module(16, 4, 0, random);
      module.use_fused(fused);
      const GoldenCase causal = golden_case("modules", "nn_mha_causal");
      CHECK(golden_difference(causal, &module, [&](GoldenInputs& x) -> std::vector<Variable> {
              return {module.forward(x["x"], Mask::keep(1.0 - causal.inputs.at("am")))};
            }) < 1e-10);
      CHECK(golden_difference(causal, &module, [&](GoldenInputs& x) -> std::vector<Variable> {
              return {module.forward(x["x"], x["x"], x["x"], Mask::causal())};
            }) < 1e-10);
      for (const char* name : {"nn_mha", "nn_mha_heads", "nn_mha_cross_kpm"}) {
        INFO(name);
        const GoldenCase golden = golden_case("modules", name);
        const bool cross = golden.inputs.count("y") > 0;
        const Mask mask = cross ? Mask::padding(indices({5, 3})) : Mask();
        CHECK(golden_difference(golden, &module, [&](GoldenInputs& x) -> std::vector<Variable> {
                const AttentionOutput a = module.forward_with_weights(x[cross ? "y" : "x"], x["x"], x["x"], mask);
                return {a.output, golden.outputs[1].rank() == 3 ? mean(a.weights, {1}) : a.weights};
              }) < 1e-10);
        const Variable x(golden.inputs.at("x"));
        const Variable y =
            cross ? module.forward(Variable(golden.inputs.at("y")), x, x, mask) : module.forward(x, mask);
        CHECK(difference(y.value(), golden.outputs[0]) < 1e-10);
      }
    }
  }
}

TEST_CASE("attention: composed equals fused for every pair of masks, with and without dropout") {
  const int64_t sizes[][2] = {{7, 7}, {3, 7}, {7, 3}, {33, 40}, {1, 1}};
  for (const char* device_name : kDevices) {
    const InDoubles scope(device_name);
    for (const auto& size : sizes) {
      const int64_t T = size[0], S = size[1];
      const Problem problem(2, 2, T, S, 4, 5, 11);
      const std::vector<NamedMask> masks = base_masks(2, 2, T, S);
      for (size_t i = 0; i < masks.size(); i++) {
        for (size_t j = i; j < masks.size(); j++) {
          if (T > 10 && j > i + 1) continue;
          INFO(device_name << " T " << T << " S " << S << ": " << masks[i].name << " and " << masks[j].name);
          const Mask mask = masks[i].mask & masks[j].mask;
          for (double dropout : {0.0, 0.3}) {
            CHECK(largest_difference(problem.run(true, mask, dropout), problem.run(false, mask, dropout)) < 1e-11);
          }
        }
      }
    }
  }
}

TEST_CASE("mask: what the kinds hide, also where T and S differ") {
  const InDoubles scope("reference");
  CHECK(!Mask().dense(1, 1, 2, 2).defined());
  CHECK(difference(Mask::causal().dense(1, 1, 3, 3), tensor({{1, 0, 0}, {1, 1, 0}, {1, 1, 1}})) == 0);
  CHECK(difference(Mask::causal().dense(1, 1, 2, 4), tensor({{1, 1, 1, 0}, {1, 1, 1, 1}})) == 0);  // lower right
  CHECK(difference(Mask::causal().dense(1, 1, 3, 2), tensor({{0, 0}, {1, 0}, {1, 1}})) == 0);
  CHECK(difference(Mask::window(1).dense(1, 1, 3, 3), tensor({{1, 1, 0}, {1, 1, 1}, {0, 1, 1}})) == 0);
  CHECK(difference(Mask::window(1).dense(1, 1, 1, 4), tensor({{0, 0, 1, 1}})) == 0);
  CHECK(difference(Mask::padding(indices({2, 0})).dense(2, 1, 3, 3),
                   tensor({{1, 1, 0}, {0, 0, 0}}).reshape({2, 1, 1, 3})) == 0);
  const Tensor additive = tensor({{0, -kInf}, {0, 0}});
  CHECK(difference(Mask::additive(additive).dense(1, 1, 2, 2), Mask::causal().dense(1, 1, 2, 2)) == 0);
  const Mask windows = Mask::window(2) & Mask::window(1);
  CHECK(difference(windows.dense(1, 1, 3, 3), tensor({{1, 1, 0}, {1, 1, 1}, {0, 1, 1}})) == 0);
  const Mask explicit_ones = Mask::keep(tensor({{1, 1}, {0, 1}})) & Mask::keep(tensor({{{1, 0}, {1, 1}}}));
  CHECK(difference(explicit_ones.dense(1, 1, 2, 2), tensor({{{{1, 0}, {0, 1}}}})) == 0);
  CHECK(difference(explicit_ones.settings(1, 1, 2, 2).keep, tensor({{{{1, 0}, {0, 1}}}})) == 0);
  CHECK((Mask::window(2) & Mask::window(1)).settings(1, 1, 3, 3).window == 1);
  const Mask both = Mask::padding(indices({3, 2})) & Mask::padding(indices({1, 3})) & Mask::causal();
  CHECK(difference(both.dense(2, 1, 1, 3), tensor({{1, 0, 0}, {1, 1, 0}}).reshape({2, 1, 1, 3})) == 0);
}

TEST_CASE("mask: rank 3 is (B, T, S), never one matrix a head, also when B = H") {
  for (const char* device_name : kDevices) {
    const InDoubles scope(device_name);
    const Problem problem(2, 2, 4, 4, 3, 3, 21);
    const Tensor keep = random_keep({2, 4, 4}, 8);
    for (bool fused : {false, true}) {
      const std::vector<Tensor> rank3 = problem.run(fused, Mask::keep(keep));
      CHECK(largest_difference(rank3, problem.run(fused, Mask::keep(keep.unsqueeze(1)))) == 0);
      CHECK(largest_difference(rank3, problem.run(fused, Mask::keep(keep.unsqueeze(0)))) > 0.01);
    }
  }
}

TEST_CASE("mask: wrong shapes and values are refused, with both shapes and the place") {
  const InDoubles scope("cpu");
  const Problem problem(2, 3, 4, 5, 2, 2, 1);
  for (bool fused : {false, true}) {
    CHECK_THROWS_AS(problem.run(fused, Mask::keep(ones({5, 4}))), ShapeError);
    CHECK_THROWS_AS(problem.run(fused, Mask::keep(ones({2, 5}))), ShapeError);     // (B, S): there is Mask::padding
    CHECK_THROWS_AS(problem.run(fused, Mask::keep(ones({3, 4, 5}))), ShapeError);  // (H, T, S)
    CHECK_THROWS_AS(problem.run(fused, Mask::keep(ones({1, 4, 5}))), ShapeError);
    CHECK_THROWS_AS(problem.run(fused, Mask::keep(ones({2, 2, 4, 5}))), ShapeError);
    CHECK_THROWS_AS(problem.run(fused, Mask::padding(indices({1, 2, 3}))), ShapeError);
    CHECK_THROWS_AS(problem.run(fused, Mask::padding(indices({1, 6}))), IndexError);
    CHECK_THROWS_AS(problem.run(fused, Mask::padding(indices({-1, 5}))), IndexError);
    try {
      problem.run(fused, Mask::keep(ones({3, 4, 5})));
    } catch (const ShapeError& error) {
      const std::string what = error.what();
      CHECK(what.find("(3, 4, 5)") != std::string::npos);
      CHECK(what.find("(2, 3, 4, 5)") != std::string::npos);
      CHECK(what.find("test_attention.cpp") != std::string::npos);
    }
  }
  CHECK_THROWS_AS(Mask::keep(ones({4})), ShapeError);
  CHECK_THROWS_AS(Mask::keep(ones({1, 1, 1, 1, 1})), ShapeError);
  CHECK_THROWS_AS(Mask::keep(tensor({{0, -kInf}})), NumericError);
  CHECK_THROWS_AS(Mask::keep(tensor({{0, kNaN}})), NumericError);
  CHECK_THROWS_AS(Mask::additive(tensor({{0, 1}})), NumericError);
  CHECK_THROWS_AS(Mask::additive(tensor({{0, -1e9}})), NumericError);
  CHECK_THROWS_AS(Mask::padding(zeros({2})), DTypeError);
  CHECK_THROWS_AS(Mask::padding(indices({1, 2}, {2, 1})), ShapeError);
  CHECK_THROWS_AS(Mask::window(0), UsageError);
  CHECK_THROWS_AS(problem.run(true, {}, 1.5), UsageError);
  CHECK_THROWS_AS(Mask::causal().settings(-1, -1, -1, -1), ShapeError);
  CHECK_THROWS_AS(Mask::causal().dense(-1, 1, -3, 3), ShapeError);
  const Variable q(zeros({1, 1, 2, 2}));
  for (Variable (*const attend)(const Variable&) :
       {+[](const Variable& x) { return scaled_dot_product_attention(x, x, x, {}, {.scale = kNaN}).output; },
        +[](const Variable& x) { return fused_scaled_dot_product_attention(x, x, x, {}, {.scale = kNaN}); }}) {
    CHECK_THROWS_AS(attend(q), NumericError);
  }
}

TEST_CASE("attention: a row with every key hidden gives 0 and finite gradients, and leaves the others alone") {
  for (const char* device_name : kDevices) {
    const InDoubles scope(device_name);
    const Problem problem(1, 2, 3, 3, 4, 4, 2);
    Tensor keep = ones({3, 3});
    keep.select(0, 1).fill_(0);
    for (bool fused : {false, true}) {
      const std::vector<Tensor> with = problem.run(fused, Mask::keep(keep)), without = problem.run(fused, {});
      CHECK(difference(with[0].select(2, 1), zeros({1, 2, 4})) == 0);
      CHECK(difference(with[1].select(2, 1), zeros({1, 2, 4})) == 0);  // dq
      CHECK(difference(with[0].select(2, 0), without[0].select(2, 0)) < 1e-12);
      CHECK(difference(with[0].select(2, 2), without[0].select(2, 2)) < 1e-12);
      for (const Tensor& x : with) CHECK(std::isfinite(sum_of_squares(x)));
    }
  }
}

TEST_CASE("attention: what a key holds that no query sees does not matter") {
  for (const char* device_name : kDevices) {
    const InDoubles scope(device_name);
    Tensor column = ones({2, 1, 1, 6});
    column.slice(3, 4, 6).fill_(0);
    const struct {
      const char* name;
      Mask mask;
      int64_t T, first, end;  // hidden keys in every sample
    } cases[] = {{"padding", Mask::padding(indices({4, 4})), 6, 4, 6},
                 {"padding and causal", Mask::padding(indices({4, 4})) & Mask::causal(), 6, 4, 6},
                 {"keep", Mask::keep(column), 6, 4, 6},
                 {"keep and padding", Mask::keep(column) & Mask::padding(indices({5, 5})), 6, 4, 6},
                 {"window", Mask::window(1), 2, 0, 3}};
    for (const auto& c : cases) {
      for (double poison : {kNaN, kInf}) {
        for (bool fused : {false, true}) {
          INFO(device_name << " " << c.name << " " << poison << (fused ? " fused" : " composed"));
          Problem problem(2, 2, c.T, 6, 4, 4, 3);
          const std::vector<Tensor> clean = problem.run(fused, c.mask);
          problem.k.slice(2, c.first, c.end).fill_(poison);
          problem.v.slice(2, c.first, c.end).fill_(poison);
          CHECK(largest_difference(problem.run(fused, c.mask), clean) < 1e-12);
        }
      }
    }
  }
}

TEST_CASE("attention: no samples, no queries, no keys") {
  for (const char* device_name : kDevices) {
    const InDoubles scope(device_name);
    const int64_t sizes[][3] = {{0, 3, 3}, {2, 0, 3}, {2, 3, 0}};
    for (const auto& size : sizes) {
      const int64_t B = size[0], T = size[1], S = size[2];
      for (const Mask& mask : {Mask(), Mask::causal(), Mask::window(1), Mask::keep(ones({T, S}))}) {
        for (bool fused : {false, true}) {
          INFO(device_name << " B " << B << " T " << T << " S " << S);
          const std::vector<Tensor> out = Problem(B, 2, T, S, 3, 3, 1).run(fused, mask);
          CHECK(difference(out[0], zeros({B, 2, T, 3})) == 0);
        }
      }
    }
    Random random(1);
    MultiHeadAttention module(2, 8, 4, random);
    CHECK(module.forward(Variable(zeros({0, 5, 8}))).shape() == Shape{0, 5, 8});
    CHECK(module.forward(Variable(zeros({2, 0, 8}))).shape() == Shape{2, 0, 8});
  }
}

TEST_CASE("attention: the articles' shapes and defaults, and what they refuse") {
  Random random(1);
  SingleHeadAttention single(512, 64, random);
  const Variable x(randn({2, 10, 512}, random));
  CHECK(single.forward(x, Mask::keep(tril(ones({10, 10})))).shape() == Shape{2, 10, 64});
  single.keep_weights(true);
  single.forward(x, Mask::causal());
  CHECK(difference(single.weights().select(2, 0).slice(2, 0, 1), ones({2, 1, 1})) < 1e-6);  // row 0 sees itself only
  CHECK(BasicAttention(random).forward(x).shape() == Shape{2, 10, 512});
  CHECK(MultiHeadAttention(random).forward(x).shape() == Shape{2, 10, 512});
  MultiHeadSelfAttention self(random);
  const AttentionOutput a = self.forward(Variable(randn({2, 4, 64}, random)));
  CHECK(a.output.shape() == Shape{2, 4, 64});
  CHECK(a.weights.shape() == Shape{2, 8, 4, 4});

  CHECK_THROWS_AS(BasicAttention(8, 4, random).forward(Variable(ones({5, 8}))), ShapeError);  // (T, D): no batch
  CHECK_THROWS_AS(single.forward(Variable(ones({1, 2, 3, 512}))), ShapeError);
  CHECK_THROWS_AS(single.forward(Variable(ones({1, 2, 64}))), ShapeError);
  CHECK_THROWS_AS(self.forward(Variable(ones({4, 64}))), ShapeError);
  CHECK_THROWS_AS(MultiHeadSelfAttention(64, 7, random), UsageError);
  CHECK_THROWS_AS(MultiheadAttention(16, 3, 0, random), UsageError);
  CHECK_THROWS_AS(MultiHeadAttention(2, 8, 0, random), UsageError);
  CHECK_THROWS_AS(MultiheadAttention(8, 2, 64, random), UsageError);  // the other class's arguments
  for (const int64_t heads : {0, -2, 3}) CHECK_THROWS_AS(split_heads(Variable(ones({1, 2, 4})), heads), ShapeError);
  CHECK_THROWS_AS(split_heads(Variable(ones({2, 4})), 2), ShapeError);
  CHECK_THROWS_AS(join_heads(Variable(ones({1, 2, 4}))), ShapeError);
  MultiHeadAttention unkept(2, 8, 4, random);
  CHECK_THROWS_AS(unkept.weights(), UsageError);
}

TEST_CASE("attention: unscaled scores saturate, scaled ones do not (d_k 64)") {
  const InDoubles scope("reference");
  Random random(1);
  const Variable k(randn({64, 1, 16, 64}, random)), v(randn({64, 1, 16, 64}, random)), q(randn({64, 1, 1, 64}, random));
  const auto largest = [&](double scale) {
    return mean(max(scaled_dot_product_attention(q, k, v, {}, {.scale = scale}).weights.value(), {-1})).item();
  };
  CHECK(largest(1) > 0.7);
  CHECK(largest(0) < 0.3);
}
