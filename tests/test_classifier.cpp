// Encoder blocks and the text classifier: PyTorch's numbers, padding, gradients of every parameter, switches, files'
// metadata.
#include <doctest/doctest.h>

#include <cmath>

#include "nn/text_classifier.h"
#include "tests/golden.h"

using namespace heed;
using namespace heed::nn;
using namespace heed::tests;

namespace {

constexpr const char* kDevices[] = {"reference", "cpu"};

TextClassifierOptions small_options() {
  TextClassifierOptions o;
  o.vocab_size = 20, o.embed_dim = 6, o.hidden_dim = 8, o.heads = 2, o.ffn_dim = 12, o.classes = 3, o.dropout = 0,
  o.max_length = 80;
  return o;
}

struct Configuration {
  std::string name;
  TextClassifierOptions options;
};

// Every switch in every position, one at a time, and some together.
std::vector<Configuration> configurations() {
  std::vector<Configuration> out;
  const auto with = [&](const std::string& name, const std::function<void(TextClassifierOptions&)>& change) {
    TextClassifierOptions o = small_options();
    change(o);
    out.push_back({name, o});
  };
  with("default", [](auto&) {});
  with("printed", [](auto& o) { o.printed = true; });
  with("embed = hidden", [](auto& o) { o.embed_dim = 8; });
  with("two layers", [](auto& o) { o.layers = 2; });
  with("no feed-forward", [](auto& o) { o.ffn_dim = 0; });
  with("no positions", [](auto& o) { o.positions = Positions::none; });
  with("learned positions", [](auto& o) { o.positions = Positions::learned; });
  with("no residual", [](auto& o) { o.residual = false; });
  with("no norm", [](auto& o) { o.norm = Norm::none; });
  with("post-norm", [](auto& o) { o.norm = Norm::post; });
  with("max", [](auto& o) { o.pooling = Pooling::max; });
  with("class token", [](auto& o) { o.pooling = Pooling::class_token; });
  with("class token, learned, two layers, post", [](auto& o) {
    o.pooling = Pooling::class_token, o.positions = Positions::learned, o.layers = 2, o.norm = Norm::post;
  });
  with("max, no norm, no feed-forward", [](auto& o) { o.pooling = Pooling::max, o.norm = Norm::none, o.ffn_dim = 0; });
  return out;
}

struct Reviews {
  Tensor ids = indices({3, 7, 1, 9, 2, 5, 5, 8, 0, 0, 11, 4, 0, 0, 0}, {3, 5});
  Tensor lengths = indices({5, 3, 2});
  Tensor labels = indices({0, 2, 1});
};

Tensor pad(const Tensor& ids, int64_t more) {
  const std::vector<int32_t> flat = ids.to_vector<int32_t>();
  const int64_t B = ids.size(0), T = ids.size(1);
  std::vector<int32_t> out(static_cast<size_t>(B * (T + more)), 13);  // a word, not zeros: it must not matter
  for (int64_t b = 0; b < B; b++) {
    for (int64_t t = 0; t < T; t++) out[static_cast<size_t>(b * (T + more) + t)] = flat[static_cast<size_t>(b * T + t)];
  }
  return indices(out, {B, T + more});
}

template <class Fn>
std::string error_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) { return error.what(); }
  return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("encoder block: PyTorch's nn.TransformerEncoderLayer, outputs and every gradient") {
  for (const char* device_name : kDevices) {
    for (const char* name : {"enc_layer_post_relu", "enc_layer_post_gelu", "enc_layer_post_masks", "enc_layer_pre_relu",
                             "enc_layer_pre_gelu", "enc_layer_pre_masks"}) {
      for (bool fused : {false, true}) {
        INFO(device_name << " " << name << (fused ? " fused" : " composed"));
        const InDoubles scope(device_name);
        Random random(1);
        EncoderOptions options{.dim = 16, .heads = 4, .ffn_dim = 32, .dropout = 0};
        options.norm = contains(name, "pre") ? Norm::pre : Norm::post;
        options.activation = contains(name, "relu") ? Activation::relu : Activation::gelu;
        EncoderBlock block(options, random);
        block.self_attn->use_fused(fused);
        const Mask mask = contains(name, "masks") ? Mask::causal() & Mask::padding(indices({5, 3})) : Mask();
        CHECK(golden_difference(golden_case("modules", name), &block, [&](GoldenInputs& x) -> std::vector<Variable> {
                return {block.forward(x["x"], mask)};
              }) < 1e-10);
      }
    }
  }
}

TEST_CASE("encoder: PyTorch's names, another kind of attention, no norm, no residual") {
  Random random(1);
  Encoder encoder({.dim = 8, .heads = 2, .layers = 2, .ffn_dim = 16}, random);
  const std::map<std::string, Tensor> state = encoder.state();
  CHECK(state.size() == 2 * 12 + 2);
  for (const char* path : {"layers.0.self_attn.in_proj_weight", "layers.0.self_attn.in_proj_bias",
                           "layers.1.self_attn.out_proj.weight", "layers.1.linear1.weight", "layers.0.linear2.bias",
                           "layers.0.norm1.weight", "layers.1.norm2.bias", "norm.weight"}) {
    INFO(path);
    CHECK(state.count(path) == 1);
  }
  const EncoderOptions bare{.dim = 8, .ffn_dim = 0, .norm = Norm::none, .residual = false, .dropout = 0};
  auto attention = std::make_unique<MultiHeadAttention>(2, 8, 4, random);
  MultiHeadAttention& inner = *attention;
  EncoderBlock block(bare, std::move(attention), random);
  const Variable x(randn({2, 3, 8}, random));
  CHECK(difference(block.forward(x).value(), inner.forward(x).value()) == 0);
  CHECK(block.parameters()[0].path == "self_attn.qkv_proj.weight");
}

TEST_CASE("classifier: article 002's printed model agrees with PyTorch") {
  for (const char* device_name : kDevices) {
    for (bool fused : {false, true}) {
      INFO(device_name << (fused ? " fused" : " composed"));
      const InDoubles scope(device_name);
      Random random(1);
      TextClassifierOptions o;
      o.vocab_size = 20, o.embed_dim = 8, o.hidden_dim = 8, o.heads = 2, o.printed = true;
      TextClassifier model(o, random);
      model.use_fused(fused);
      const GoldenCase golden = golden_case("modules", "textclassifier_002");
      CHECK(golden_difference(golden, &model, [&](GoldenInputs&) -> std::vector<Variable> {
              const Variable logits = model.forward(golden.inputs.at("ids"));
              return {cross_entropy(logits, golden.inputs.at("t")), logits};
            }) < 1e-10);
    }
  }
}

TEST_CASE("classifier: after one step every parameter has a gradient that is not 0, in each configuration") {
  for (const char* device_name : kDevices) {
    const InDoubles scope(device_name);
    for (const Configuration& c : configurations()) {
      Random random(3);
      TextClassifier model(c.options, random);
      const Reviews reviews;
      cross_entropy(model.forward(reviews.ids, reviews.lengths), reviews.labels).backward();
      for (const Module::Parameter& p : model.parameters()) {
        INFO(device_name << " " << c.name << ": " << p.path);
        REQUIRE(p.variable.grad().defined());
        const double squares = sum_of_squares(p.variable.grad());
        CHECK(std::isfinite(squares));
        CHECK(squares > 1e-20);
      }
    }
  }
}

TEST_CASE("classifier: 60 tokens of padding change nothing, but in the printed model") {
  for (const char* device_name : kDevices) {
    const InDoubles scope(device_name);
    for (const Configuration& c : configurations()) {
      for (bool fused : {true, false}) {
        INFO(device_name << " " << c.name << (fused ? " fused" : " composed"));
        Random random(3);
        TextClassifier model(c.options, random);
        model.use_fused(fused);
        const Reviews reviews;
        const Tensor logits = model.forward(reviews.ids, reviews.lengths).value();
        const double change = difference(model.forward(pad(reviews.ids, 60), reviews.lengths).value(), logits);
        if (c.options.printed) {
          CHECK(change > 1e-3);
        } else {
          CHECK(change < 1e-12);
        }
      }
    }
  }
}

TEST_CASE("classifier: padding does not change what dropout drops, nor does the fused path") {
  const InDoubles scope("cpu");
  TextClassifierOptions o = small_options();
  o.dropout = 0.3, o.word_dropout = 0.2, o.layers = 2;
  Random random(3);
  TextClassifier model(o, random);
  const Reviews reviews;
  const auto logits = [&](const Tensor& ids, uint64_t step, bool fused) {
    model.use_fused(fused);
    set_dropout_stream(1, step);
    return model.forward(ids, reviews.lengths).value();
  };
  const Tensor once = logits(reviews.ids, 1, true);
  CHECK(difference(logits(reviews.ids, 1, true), once) == 0);
  CHECK(difference(logits(reviews.ids, 1, false), once) < 1e-12);
  CHECK(difference(logits(pad(reviews.ids, 9), 1, true), once) < 1e-12);
  CHECK(difference(logits(reviews.ids, 2, true), once) > 1e-3);
  model.eval();
  const Tensor quiet = logits(reviews.ids, 1, true);
  CHECK(difference(logits(reviews.ids, 2, true), quiet) == 0);
  CHECK(difference(quiet, once) > 1e-3);
  o.dropout = o.word_dropout = 0;
  TextClassifier without(o, random);
  without.load_state(model.state());
  CHECK(difference(without.forward(reviews.ids, reviews.lengths).value(), quiet) == 0);
}

TEST_CASE("classifier: an empty review has finite logits and gradients") {
  for (const char* device_name : kDevices) {
    const InDoubles scope(device_name);
    for (const Configuration& c : configurations()) {
      INFO(device_name << " " << c.name);
      Random random(3);
      TextClassifier model(c.options, random);
      const Reviews reviews;
      const Variable logits = model.forward(reviews.ids, indices({5, 0, 2}));
      cross_entropy(logits, reviews.labels).backward();
      CHECK(std::isfinite(sum_of_squares(logits.value())));
      for (const Module::Parameter& p : model.parameters()) {
        INFO(p.path);
        CHECK(std::isfinite(sum_of_squares(p.variable.grad())));
      }
      const Tensor empty =
          model.forward(indices({}, {2, 0}), indices({0, 0})).value();  // a batch of nothing but empty ones
      CHECK(empty.shape() == Shape{2, 3});
      CHECK(std::isfinite(sum_of_squares(empty)));
      CHECK(model.forward(indices({}, {0, 4}), indices({})).shape() == Shape{0, 3});
    }
  }
}

TEST_CASE("classifier: without positions it is blind to word order, with them it is not") {
  const InDoubles scope("cpu");
  for (const Configuration& c : configurations()) {
    INFO(c.name);
    Random random(3);
    TextClassifier model(c.options, random);
    const Tensor there = model.forward(indices({3, 7, 1, 9}, {1, 4})).value();
    const double change = difference(model.forward(indices({9, 1, 3, 7}, {1, 4})).value(), there);
    if (c.options.resolved().positions == Positions::none) {
      CHECK(change < 1e-12);
    } else {
      CHECK(change > 1e-6);
    }
  }
}

TEST_CASE("classifier: weights for heat maps") {
  const InDoubles scope("cpu");
  for (const Configuration& c : configurations()) {
    INFO(c.name);
    Random random(3);
    TextClassifier model(c.options, random);
    const Reviews reviews;
    const Tensor fused = model.forward(reviews.ids, reviews.lengths).value();
    CHECK_THROWS_AS(model.weights(), UsageError);
    model.keep_weights(true);
    CHECK(difference(model.forward(reviews.ids, reviews.lengths).value(), fused) < 1e-12);
    const TextClassifierOptions o = c.options.resolved();
    const int64_t T = 5 + (o.pooling == Pooling::class_token ? 1 : 0);
    CHECK(model.weights().size() == static_cast<size_t>(o.layers));
    for (const Tensor& w : model.weights()) {
      CHECK(w.shape() == Shape{3, 2, T, T});
      CHECK(difference(sum(w, {-1}), ones({3, 2, T})) < 1e-12);
      if (!o.printed) CHECK(max(w.select(0, 2).slice(2, T - 3, T)).item() == 0);  // review 2 has two words
    }
  }
}

TEST_CASE("classifier: wrong input is refused with the place and the module") {
  Random random(1);
  TextClassifier model(small_options(), random);
  const Reviews reviews;
  CHECK_THROWS_AS(model.forward(indices({1, 2}), indices({2})), ShapeError);
  CHECK_THROWS_AS(model.forward(zeros({1, 2}), indices({2})), DTypeError);
  CHECK_THROWS_AS(model.forward(reviews.ids, indices({5, 3})), ShapeError);
  CHECK_THROWS_AS(model.forward(reviews.ids, indices({5, 3, 6})), IndexError);
  CHECK_THROWS_AS(model.forward(reviews.ids, indices({5, -3, 5})), IndexError);
  CHECK(contains(error_of([&] { model.forward(indices({1, 20}, {1, 2})); }), "20"));
  CHECK(contains(error_of([&] { model.forward(indices({1, 20}, {1, 2})); }), "in embedding"));
  const std::string what = error_of([&] { model.forward(pad(reviews.ids, 76), reviews.lengths); });
  CHECK(contains(what, "81 tokens"));
  CHECK(contains(what, "max_length is 80"));
  CHECK(contains(what, "test_classifier.cpp"));
  const auto refused = [&](const std::function<void(TextClassifierOptions&)>& change) {
    TextClassifierOptions o = small_options();
    change(o);
    CHECK_THROWS_AS(TextClassifier(o, random), UsageError);
  };
  refused([](auto& o) { o.heads = 3; });
  refused([](auto& o) { o.heads = 0; });
  refused([](auto& o) { o.vocab_size = 0; });
  refused([](auto& o) { o.hidden_dim = -8; });
  refused([](auto& o) { o.dropout = 1; });
  refused([](auto& o) { o.word_dropout = -0.5; });
  refused([](auto& o) { o.layers = 0; });
  refused([](auto& o) { o.ffn_dim = -1; });
}

TEST_CASE("classifier: options as text and back; state into an equal model") {
  const InDoubles scope("cpu");
  for (const Configuration& c : configurations()) {
    INFO(c.name);
    Random random(3), other(4);
    TextClassifierOptions o = c.options;
    o.dropout = 0.1, o.word_dropout = 1 / 3.0;
    TextClassifier model(o, random);
    std::map<std::string, std::string> map = model.options().to_map();
    map["vocabulary"] = "the\nof\n";  // a file's metadata holds more
    const TextClassifierOptions back = TextClassifierOptions::from_map(map);
    CHECK(back.to_map() == model.options().to_map());
    TextClassifier copy(back, other);
    copy.load_state(model.state());
    model.eval();
    copy.eval();
    const Reviews reviews;
    CHECK(difference(copy.forward(reviews.ids, reviews.lengths).value(),
                     model.forward(reviews.ids, reviews.lengths).value()) == 0);
  }
  const auto fault = [](const char* key, const char* value) {
    return error_of([&] { TextClassifierOptions::from_map({{key, value}}); });
  };
  CHECK(fault("pooling", "average") == "pooling: there is no \"average\"; heed has mean, max, class_token");
  CHECK(fault("norm", "layer") == "norm: there is no \"layer\"; heed has none, pre, post");
  CHECK(fault("positions", "rotary") == "positions: there is no \"rotary\"; heed has none, sinusoidal, learned");
  CHECK(fault("heads", "4x") == "heads: \"4x\" is not a number that it can take");
  CHECK(fault("heads", "99999999999999999999") != "");
  CHECK(fault("dropout", "") != "");
  CHECK(fault("residual", "yes") == "residual: \"yes\" is neither true nor false");
  CHECK(TextClassifierOptions::from_map({}).hidden_dim == 256);
}

TEST_CASE("classifier: the article's constructor, defaults and parameter names") {
  Random random(1);
  TextClassifier model(100, 12, 16, random);
  CHECK(model.options().embed_dim == 12);
  CHECK(model.options().heads == 4);
  std::vector<std::string> paths;
  for (const auto& p : model.parameters()) paths.push_back(p.path);
  CHECK(paths == std::vector<std::string>{
                     "embedding.weight", "project.weight", "project.bias", "encoder.layers.0.self_attn.in_proj_weight",
                     "encoder.layers.0.self_attn.in_proj_bias", "encoder.layers.0.self_attn.out_proj.weight",
                     "encoder.layers.0.self_attn.out_proj.bias", "encoder.layers.0.norm1.weight",
                     "encoder.layers.0.norm1.bias", "encoder.layers.0.linear1.weight", "encoder.layers.0.linear1.bias",
                     "encoder.layers.0.linear2.weight", "encoder.layers.0.linear2.bias",
                     "encoder.layers.0.norm2.weight", "encoder.layers.0.norm2.bias", "encoder.norm.weight",
                     "encoder.norm.bias", "fc.weight", "fc.bias"});
  CHECK(contains(model.summary(), "encoder.layers.0.self_attn.out_proj.weight  (16, 16)"));
}

TEST_CASE("classifier: ten steps lower the loss, with dropout and on both paths") {
  for (const Configuration& c : configurations()) {
    for (bool fused : {true, false}) {
      INFO(c.name);
      Random random(3);
      TextClassifierOptions o = c.options;
      o.dropout = 0.1, o.word_dropout = 0.1;
      TextClassifier model(o, random);
      model.use_fused(fused);
      const Reviews reviews;
      const auto loss = [&] { return cross_entropy(model.forward(reviews.ids, reviews.lengths), reviews.labels); };
      model.eval();
      const double before = loss().item();
      model.train();
      for (uint64_t step = 0; step < 10; step++) {
        set_dropout_stream(1, step);
        model.zero_grad();
        loss().backward();
        for (const Variable& p : model.variables()) Tensor(p.value()).add_(p.grad() * -0.1);
      }
      model.eval();
      CHECK(loss().item() < before);
    }
  }
}
