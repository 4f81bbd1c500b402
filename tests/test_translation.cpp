// The decoder, the whole Transformer, search, and the dates it translates.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "nn/search.h"
#include "nn/transformer.h"
#include "tests/golden.h"
#include "train/dates.h"

using namespace heed;
using namespace heed::nn;
using namespace heed::tests;

TEST_CASE("decoder block: PyTorch's nn.TransformerDecoderLayer, outputs and every gradient") {
  for (const char* device_name : {"reference", "cpu", "emulated"}) {
    for (const char* name : {"dec_layer_post", "dec_layer_pre"}) {
      for (bool fused : {false, true}) {
        INFO(device_name << " " << name << (fused ? " fused" : " composed"));
        const InDoubles scope(device_name);
        Random random(1);
        EncoderOptions options{.dim = 16, .heads = 4, .ffn_dim = 32, .dropout = 0, .activation = Activation::relu};
        options.norm = std::string(name) == "dec_layer_pre" ? Norm::pre : Norm::post;
        DecoderBlock block(options, random);
        block.self_attn.use_fused(fused);
        block.multihead_attn.use_fused(fused);
        CHECK(golden_difference(golden_case("models", name), &block, [&](GoldenInputs& x) -> std::vector<Variable> {
                return {block.forward(x["y"], x["mem"], Mask::causal(), Mask::padding(indices({5, 3})))};
              }) < 1e-10);
      }
    }
  }
}

namespace {

TransformerOptions small_options() {
  return {.source_words = 7, .target_words = 5, .dim = 8, .heads = 2, .layers = 2, .ffn_dim = 12, .max_length = 9, .dropout = 0};
}

Tensor source_ids() { return indices({1, 2, 3, 4, 5, 6, 0, 0}, {2, 4}); }
Tensor source_lengths() { return indices({4, 2}); }

}  // namespace

TEST_CASE("transformer: gradcheck of the whole, every parameter gets a gradient") {
  const InDoubles scope("reference");
  Random random(1);
  TransformerOptions options = small_options();
  options.activation = Activation::gelu, options.layers = 1;
  Transformer model(options, random);
  const ShiftedTargets target = shift_targets({{1, 2}, {2}}, 3, 4);
  const auto loss = [&] {
    const Variable logits = model.forward(source_ids(), source_lengths(), target.input);
    return cross_entropy(reshape(logits, {-1, 5}), target.labels.reshape({-1}), {.label_smoothing = 0.1});
  };
  loss().backward();
  for (const Module::Parameter& p : model.parameters()) {  // along a random direction, by central differences
    INFO(p.path);
    Variable parameter = p.variable;
    const Tensor grad = parameter.grad(), before = parameter.value(), direction = randn(before.shape(), random);
    const auto moved = [&](double h) {
      parameter.set_value(before + direction * h);
      return loss().item();
    };
    const double slope = (moved(1e-5) - moved(-1e-5)) / 2e-5, expected = sum(grad * direction).item();
    parameter.set_value(before);
    CHECK(std::fabs(slope - expected) <= 1e-7 * std::max(1.0, std::fabs(expected)));
    CHECK((max(abs(grad)).item() > 1e-6 || p.path.ends_with("in_proj_bias")));
  }
}

TEST_CASE("transformer: no logit depends on a later target word, nor on what stands behind a source") {
  for (const char* device_name : {"reference", "cpu", "emulated"}) {
    const InDoubles scope(device_name);
    Random random(2);
    Transformer model(small_options(), random);
    const auto logits = [&](const Tensor& source, const Tensor& target) {
      return model.forward(source, source_lengths(), target).value();
    };
    const Tensor target = indices({3, 1, 2, 3, 0, 1}, {2, 3});
    const Tensor expected = logits(source_ids(), target);
    CHECK(expected.shape() == Shape{2, 3, 5});
    const Tensor other = logits(source_ids(), indices({3, 1, 4, 3, 0, 2}, {2, 3}));
    CHECK(difference(other.slice(1, 0, 2), expected.slice(1, 0, 2)) < 1e-14);
    CHECK(difference(other.slice(1, 2, 3), expected.slice(1, 2, 3)) > 1e-3);
    CHECK(difference(logits(indices({1, 2, 3, 4, 5, 6, 4, 2}, {2, 4}), target), expected) < 1e-14);
    CHECK(difference(logits(indices({1, 2, 3, 5, 5, 6, 0, 0}, {2, 4}), target), expected) > 1e-4);
  }
}

TEST_CASE("transformer: keeps the weights of its three kinds of attention, and refuses wrong use") {
  Random random(1);
  Transformer model(small_options(), random);
  model.keep_weights(true);
  model.forward(source_ids(), source_lengths(), indices({3, 1, 2, 3, 0, 1}, {2, 3}));
  CHECK(model.encoder.weights()[1].shape() == Shape{2, 2, 4, 4});
  CHECK(model.decoder.self_weights()[0].shape() == Shape{2, 2, 3, 3});
  CHECK(model.decoder.cross_weights()[1].shape() == Shape{2, 2, 3, 4});
  CHECK_THROWS_AS(model.encode(indices({1, 2}), indices({2})), ShapeError);
  CHECK_THROWS_AS(model.encode(indices({7, 1}, {1, 2}), indices({2})), IndexError);
  CHECK_THROWS_AS(model.encode(indices(std::vector<int32_t>(10), {1, 10}), indices({10})), ShapeError);
  TransformerOptions options = small_options();
  options.heads = 3;
  CHECK_THROWS_AS(Transformer(options, random), UsageError);
  options = small_options(), options.ffn_dim = 0;
  CHECK_THROWS_AS(Transformer(options, random), UsageError);
}

TEST_CASE("transformer: shifted targets") {
  const ShiftedTargets t = shift_targets({{5, 6, 7}, {}, {8}}, 1, 2);
  CHECK(t.input.to_vector<int32_t>() == std::vector<int32_t>{1, 5, 6, 7, 1, 2, 2, 2, 1, 8, 2, 2});
  CHECK(t.labels.to_vector<int32_t>() == std::vector<int32_t>{5, 6, 7, 2, 2, -100, -100, -100, 8, 2, -100, -100});
}

// ---- search

namespace {

// Log-probabilities of 4 words (3 is the end) that depend on the whole prefix: an arbitrary language.
Tensor language(const Tensor& prefixes) {
  const std::vector<int32_t> ids = prefixes.to_vector<int32_t>();
  const auto T = static_cast<size_t>(prefixes.size(1));
  std::vector<double> scores;
  for (size_t n = 0; n < ids.size() / T; n++) {
    uint64_t key = 17;
    for (size_t t = 0; t < T; t++) key = mix_key(key, static_cast<uint64_t>(ids[n * T + t]));
    Random random(key);
    for (int word = 0; word < 4; word++) scores.push_back(random.uniform(-2, 2));
  }
  return log_softmax(from_vector(scores, {prefixes.size(0), 4}, DType::f64));
}

double log_probability(const std::vector<int32_t>& words, bool ended) {
  std::vector<int32_t> prefix = {0};
  double sum = 0;
  const auto say = [&](int32_t word) {
    sum += language(indices(prefix, {1, static_cast<int64_t>(prefix.size())})).at({0, word});
    prefix.push_back(word);
  };
  for (const int32_t word : words) say(word);
  if (ended) say(3);
  return sum;
}

void every_sentence(std::vector<int32_t> words, size_t longest, std::vector<Hypothesis>& out) {
  if (words.size() < longest) out.push_back({words, log_probability(words, true), true});
  if (words.size() == longest) return out.push_back({words, log_probability(words, false), false});
  for (int32_t word = 0; word < 3; word++) {
    words.push_back(word);
    every_sentence(words, longest, out);
    words.pop_back();
  }
}

}  // namespace

TEST_CASE("search: a beam that holds everything finds the best of all sentences") {
  std::vector<Hypothesis> all;
  every_sentence({}, 4, all);
  for (const double penalty : {0.0, 0.6, 1.0}) {
    const auto rank = [&](const Hypothesis& h) { return h.log_probability / std::pow(static_cast<double>(h.words.size()) + h.ended, penalty); };
    const auto best = *std::max_element(all.begin(), all.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    const std::vector<Hypothesis> found = beam_search(language, 1000, {0, 3, 4}, penalty);
    CHECK(found.size() == all.size());
    CHECK(found[0].words == best.words);
    CHECK(found[0].ended == best.ended);
    for (const Hypothesis& h : found) CHECK(h.log_probability == doctest::Approx(log_probability(h.words, h.ended)));
    for (size_t i = 1; i < found.size(); i++) CHECK(rank(found[i]) <= rank(found[i - 1]));
    // A narrow beam stops early only when nothing better can come.
    for (const int64_t beam : {2, 3, 5}) {
      const Hypothesis narrow = beam_search(language, beam, {0, 3, 4}, penalty)[0];
      CHECK(rank(narrow) <= rank(best) + 1e-12);
      CHECK(narrow.log_probability == doctest::Approx(log_probability(narrow.words, narrow.ended)));
    }
  }
}

TEST_CASE("search: a beam of one is greedy; sentences of a batch end by themselves") {
  for (const int64_t longest : {0, 1, 3, 12}) {
    const std::vector<std::vector<int32_t>> greedy = greedy_search(language, 3, {0, 3, longest});
    const std::vector<Hypothesis> beam = beam_search(language, 1, {0, 3, longest});
    REQUIRE(greedy.size() == 3);
    CHECK(greedy[0] == greedy[2]);
    REQUIRE(beam.size() == 1);
    CHECK(beam[0].words == greedy[0]);
    CHECK(static_cast<int64_t>(greedy[0].size()) <= longest);
  }
  const auto ends_at = [](const Tensor& prefixes) {  // row n ends after n + 1 words
    std::vector<double> scores;
    for (int64_t n = 0; n < prefixes.size(0); n++) {
      for (int64_t word = 0; word < 4; word++) scores.push_back(word == (prefixes.size(1) > n + 1 ? 3 : 1) ? -0.1 : -5);
    }
    return from_vector(scores, {prefixes.size(0), 4}, DType::f64);
  };
  CHECK(greedy_search(ends_at, 3, {0, 3, 9}) == std::vector<std::vector<int32_t>>{{1}, {1, 1}, {1, 1, 1}});
  CHECK(greedy_search(language, 0, {0, 3, 4}).empty());
  CHECK_THROWS_AS(beam_search(language, 0, {0, 3, 4}), UsageError);
  CHECK_THROWS_AS(greedy_search(language, 1, {0, 3, -1}), UsageError);
  CHECK_THROWS_AS(greedy_search([](const Tensor&) { return zeros({2}); }, 1, {0, 3, 4}), ShapeError);
}

// ---- the dates

TEST_CASE("dates: every form, in words") {
  const auto joined = [](const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
    return out;
  };
  const auto forms = [&](int y, int m, int d) {
    std::vector<std::string> out;
    for (const auto& form : train::forms_of_date(y, m, d)) out.push_back(joined(form));
    return out;
  };
  CHECK(forms(1987, 3, 3) == std::vector<std::string>{"3 march 1 9 8 7", "march 3 , 1 9 8 7", "the third of march nineteen eighty seven",
                                                      "march the third , nineteen eighty seven", "一 九 八 七 年 三 月 三 日",
                                                      "一 九 八 七 年 三 月 三 号", "1 9 8 7 年 3 月 3 日"});
  CHECK(forms(2005, 12, 25)[2] == "the twenty fifth of december two thousand and five");
  CHECK(forms(2005, 12, 25)[4] == "二 〇 〇 五 年 十 二 月 二 十 五 日");
  CHECK(forms(1900, 10, 30)[2] == "the thirtieth of october nineteen hundred");
  CHECK(forms(1904, 10, 10)[4] == "一 九 〇 四 年 十 月 十 日");
  CHECK(forms(1904, 1, 20)[3] == "january the twentieth , nineteen oh four");
  CHECK(forms(2000, 1, 31)[3] == "january the thirty first , two thousand");
  CHECK(forms(2040, 1, 12)[2] == "the twelfth of january twenty forty");
}

TEST_CASE("dates: training and test share no date, digits and ids go both ways") {
  std::set<std::string> train_dates;
  const std::vector<train::SpokenDate> train = train::spoken_dates(1, 5000, train::DateSplit::train);
  const std::vector<train::SpokenDate> test = train::spoken_dates(2, 500, train::DateSplit::test);
  CHECK(train.size() == 5000);
  CHECK(test.size() == 500);
  for (const train::SpokenDate& d : train) train_dates.insert(d.digits);
  for (const train::SpokenDate& d : test) {
    CHECK(!train_dates.contains(d.digits));
    CHECK(train::date_digits(train::date_digit_ids(d.digits)) == d.digits);
    const std::vector<int32_t> ids = train::date_word_ids(d.words);
    for (size_t i = 0; i < ids.size(); i++) CHECK(train::date_words()[static_cast<size_t>(ids[i])] == d.words[i]);
  }
  CHECK(train::spoken_dates(1, 3, train::DateSplit::train)[2].digits == train[2].digits);
  CHECK_THROWS_AS(train::date_word_ids({"yesterday"}), IndexError);
  CHECK_THROWS_AS(train::date_digit_ids("1987/03/03"), IndexError);
  CHECK_THROWS_AS(train::spoken_dates(1, -1, train::DateSplit::train), UsageError);
}
