#include "nn/search.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "tensor/ops.h"

namespace heed::nn {

namespace {

Tensor as_prefixes(const std::vector<std::vector<int32_t>>& words, int32_t start) {
  const auto N = static_cast<int64_t>(words.size()), T = static_cast<int64_t>(words[0].size()) + 1;
  std::vector<int32_t> ids;
  for (const std::vector<int32_t>& sentence : words) {
    ids.push_back(start);
    ids.insert(ids.end(), sentence.begin(), sentence.end());
  }
  return indices(ids, {N, T});
}

Tensor checked(Tensor scores, size_t count) {
  if (scores.rank() == 2 && scores.size(0) == static_cast<int64_t>(count) && scores.size(1) > 0) return scores;
  throw ShapeError(text("search: the next word's log-probabilities are ", scores.shape(), ", they must be (", count, ", words)"));
}

void check(const SearchOptions& options) {
  if (options.max_length < 0) throw UsageError(text("search: max_length is ", options.max_length, ", it must not be negative"));
}

double rank(double log_probability, int64_t length, double penalty) {
  return log_probability / std::pow(static_cast<double>(std::max<int64_t>(length, 1)), penalty);
}

struct Candidate {
  size_t from;  // which running hypothesis
  int32_t word;
  double log_probability;
};

// The `beam` most probable continuations, the best first.
std::vector<Candidate> best_candidates(const std::vector<Hypothesis>& running, const Tensor& scores, int64_t beam) {
  const std::vector<double> all = scores.to_vector<double>();  // (N, words)
  const size_t words = all.size() / running.size();
  std::vector<Candidate> out;
  for (size_t i = 0; i < all.size(); i++) {
    out.push_back({i / words, static_cast<int32_t>(i % words), running[i / words].log_probability + all[i]});
  }
  const auto better = [](const Candidate& a, const Candidate& b) {
    return std::tuple(-a.log_probability, a.from, a.word) < std::tuple(-b.log_probability, b.from, b.word);
  };
  const size_t count = std::min(out.size(), static_cast<size_t>(beam));
  std::partial_sort(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count), out.end(), better);
  out.resize(count);
  return out;
}

}  // namespace

std::vector<std::vector<int32_t>> greedy_search(const NextWord& next, int64_t count, const SearchOptions& options) {
  check(options);
  if (count <= 0) return {};
  std::vector<std::vector<int32_t>> words(static_cast<size_t>(count));
  std::vector<bool> ended(words.size());
  for (int64_t t = 0; t < options.max_length; t++) {
    const Tensor scores = checked(next(as_prefixes(words, options.start)), words.size());
    const std::vector<int32_t> best = argmax(scores, 1).to_vector<int32_t>();
    for (size_t i = 0; i < words.size(); i++) {
      ended[i] = ended[i] || best[i] == options.end;
      words[i].push_back(ended[i] ? options.end : best[i]);  // all prefixes have one length
    }
    if (std::all_of(ended.begin(), ended.end(), [](bool x) { return x; })) break;
  }
  for (std::vector<int32_t>& sentence : words) {
    sentence.erase(std::find(sentence.begin(), sentence.end(), options.end), sentence.end());
  }
  return words;
}

std::vector<Hypothesis> beam_search(const NextWord& next, int64_t beam, const SearchOptions& options,
                                    double length_penalty) {
  check(options);
  if (beam < 1) throw UsageError(text("beam_search: the beam is ", beam, ", it must be at least 1"));
  const auto rank_of = [&](const Hypothesis& h) {
    return rank(h.log_probability, static_cast<int64_t>(h.words.size()) + h.ended, length_penalty);
  };
  const auto better = [&](const Hypothesis& a, const Hypothesis& b) { return rank_of(a) > rank_of(b); };
  std::vector<Hypothesis> running(1), done;
  for (int64_t t = 0; t < options.max_length && !running.empty(); t++) {
    std::vector<std::vector<int32_t>> prefixes;
    for (const Hypothesis& h : running) prefixes.push_back(h.words);
    const Tensor scores = checked(next(as_prefixes(prefixes, options.start)), prefixes.size());
    std::vector<Hypothesis> longer;
    for (const Candidate& c : best_candidates(running, scores, beam)) {
      Hypothesis h{running[c.from].words, c.log_probability, c.word == options.end};
      if (!h.ended) h.words.push_back(c.word);
      (h.ended ? done : longer).push_back(std::move(h));
    }
    running = std::move(longer);
    std::stable_sort(done.begin(), done.end(), better);
    if (running.empty() || static_cast<int64_t>(done.size()) < beam) continue;
    // Log-probabilities only fall: no running hypothesis can rank above this any more.
    const double bound = rank(running[0].log_probability, options.max_length + 1, length_penalty);
    if (rank_of(done[static_cast<size_t>(beam - 1)]) >= bound) running.clear();
  }
  done.insert(done.end(), running.begin(), running.end());  // cut off
  std::stable_sort(done.begin(), done.end(), better);
  done.resize(std::min(done.size(), static_cast<size_t>(beam)));
  return done;
}

}  // namespace heed::nn
