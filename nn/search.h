// Search: turning next-word probabilities into a sequence.
#pragma once
#include <functional>

#include "tensor/tensor.h"

namespace heed::nn {

// prefixes i32 (N, T), each with its start token -> log-probabilities (N, words) of the next word. N may shrink from call
// to call in beam_search: rows are prefixes of one sentence there.
using NextWord = std::function<Tensor(const Tensor& prefixes)>;

struct SearchOptions {
  int32_t start = 0, end = 0;  // tokens
  int64_t max_length = 64;     // words at most, without start and end
};

// Takes the most probable word at every step, for `count` sentences at once -> the words of each, without start and end.
// Stops when all have ended.
std::vector<std::vector<int32_t>> greedy_search(const NextWord& next, int64_t count, const SearchOptions& options);

struct Hypothesis {
  std::vector<int32_t> words;  // without start and end
  double log_probability = 0;  // of the words and, if it ended, of the end
  bool ended = false;          // false: cut off at max_length
};

// For one sentence: keeps the `beam` most probable prefixes at every step (Sutskever et al. 2014, section 3.2) and returns
// up to `beam` hypotheses, the best first. They are compared by log_probability / length^length_penalty, the length
// counting the end: 0 prefers short ones, 1 is the mean over words. UsageError
// for a beam below 1.
std::vector<Hypothesis> beam_search(const NextWord& next, int64_t beam, const SearchOptions& options,
                                    double length_penalty = 1);

}  // namespace heed::nn
