// The built-in reviews: reproducible, balanced, and their splits share no verdict.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <set>

#include "tensor/error.h"
#include "train/reviews.h"
#include "train/tokenizer.h"

using namespace heed;
using namespace heed::train;

namespace {

std::set<std::string> words_of(const std::vector<Example>& examples) {
  std::set<std::string> out;
  for (const Example& e : examples) {
    Words words;
    tokenize(e.text, words);
    for (size_t i = 0; i < words.size(); i++) out.insert(std::string(words[i]));
  }
  return out;
}

// The combinations of pattern and opinion words that state a verdict.
std::set<std::string> verdicts_of(const std::vector<Review>& reviews) {
  std::set<std::string> out;
  for (const Review& review : reviews) {
    for (const Clause& clause : review.clauses) {
      if (states_verdict(clause.construction)) out.insert(clause.combination);
    }
  }
  return out;
}

// What a review says, in whatever order and beside whatever fillers.
std::set<std::string> combinations_of_clauses(const std::vector<Review>& reviews) {
  std::set<std::string> out;
  for (const Review& review : reviews) {
    std::set<std::string> clauses;
    for (const Clause& clause : review.clauses) {
      if (clause.construction != Construction::filler) clauses.insert(clause.combination);
    }
    std::string all;
    for (const std::string& clause : clauses) all += clause + '|';
    out.insert(all);
  }
  return out;
}

size_t shared(const std::set<std::string>& a, const std::set<std::string>& b) {
  size_t n = 0;
  for (const std::string& x : a) n += b.count(x);
  return n;
}

}  // namespace

TEST_CASE("reviews: the same seed gives the same reviews, another seed others, quickly") {
  const auto start = std::chrono::steady_clock::now();
  const TextDataset a = built_in_reviews(1), b = built_in_reviews(1), c = built_in_reviews(2);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  CHECK(seconds < 6);  // three times; well under a second each where nothing else runs and nothing is instrumented
  REQUIRE(a.train.size() == 7000);
  size_t same = 0;
  for (size_t i = 0; i < a.train.size(); i++) {
    CHECK(a.train[i].text == b.train[i].text);
    same += a.train[i].text == c.train[i].text;
  }
  CHECK(same < 10);
}

TEST_CASE("reviews: both classes are equally frequent, and no text stands in two splits") {
  const TextDataset data = built_in_reviews(1);
  std::set<std::string> texts;
  size_t count = 0;
  for (const auto* split : {&data.train, &data.validation, &data.test, &data.test_new}) {
    int64_t positive = 0;
    for (const Example& e : *split) positive += e.label, texts.insert(e.text), count++;
    CHECK(2 * positive == static_cast<int64_t>(split->size()));
  }
  CHECK(texts.size() == count);
}

TEST_CASE("reviews: no single word gives the label away") {
  std::map<std::string, std::pair<int, int>> seen;  // reviews with the word; positive ones among them
  for (const Example& e : built_in_reviews(1).train) {
    Words words;
    tokenize(e.text, words);
    std::set<std::string> distinct;
    for (size_t i = 0; i < words.size(); i++) distinct.insert(std::string(words[i]));
    for (const std::string& word : distinct) seen[word].first++, seen[word].second += e.label;
  }
  for (const auto& [word, n] : seen) {
    if (n.first < 100) continue;
    const double positive = static_cast<double>(n.second) / n.first, deviation = 0.5 / std::sqrt(n.first);
    INFO(word << ": " << n.second << " of " << n.first);
    CHECK(std::fabs(positive - 0.5) < 4.5 * deviation);  // some 300 words: chance alone stays below this
  }
}

TEST_CASE("reviews: no two splits share a verdict or a combination of clauses; new patterns use known words only") {
  const ReviewSplits splits = write_reviews(1, 10000);
  const std::vector<Review>* all[] = {&splits.train, &splits.validation, &splits.test, &splits.test_new};
  CHECK(verdicts_of(splits.train).size() > 500);
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < i; j++) {
      CHECK(shared(verdicts_of(*all[i]), verdicts_of(*all[j])) == 0);
      CHECK(shared(combinations_of_clauses(*all[i]), combinations_of_clauses(*all[j])) == 0);
    }
  }
  const TextDataset data = built_in_reviews(1);
  const std::set<std::string> known = words_of(data.train);
  for (const std::string& word : words_of(data.test_new)) {
    INFO(word);
    CHECK(known.count(word) == 1);
  }
}

TEST_CASE("reviews: every construction occurs in training, and a count is honoured") {
  std::set<Construction> seen;
  for (const Review& review : write_reviews(1, 10000).train) {
    for (const Clause& clause : review.clauses) seen.insert(clause.construction);
  }
  CHECK(seen.size() == static_cast<size_t>(Construction::filler) + 1);
  const TextDataset small = built_in_reviews(3, 100);
  CHECK(small.train.size() == 70);
  CHECK(small.test.size() == 10);
  CHECK_THROWS_AS(built_in_reviews(1, 0), UsageError);
  CHECK_THROWS_AS(built_in_reviews(1, -5), UsageError);
}
