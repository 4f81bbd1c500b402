// The patterns and words of the built-in reviews; reviews.h explains how they become reviews.
#pragma once
#include <string>
#include <vector>

namespace heed::train {

enum class Construction {
  // These state the verdict.
  plain,        // "all in all, the film is superb"
  negation,     // "there is not a dull moment in the film"
  contrast,     // "although the plot is dull, the film is superb"
  others,       // "my brother loved the film; I hated it"
  expectation,  // "I expected a bore and the film turned out to be a gem"
  condition,    // "if the film were dull I would say so, but it is superb"
  // These hold opinions that do not count.
  hearsay,     // "my brother loved the film"
  hypothesis,  // "what if the plot had been dull?"
  aside,       // "the popcorn was superb"
  // And these hold none.
  filler  // "it rained all evening"
};

inline bool states_verdict(Construction c) { return c <= Construction::condition; }

// Text with slots in braces. {film} takes a word of the list "film". Before an opinion word stands a mark: {+adj} has
// the verdict's polarity, {-adj} the opposite one, {?adj} either. {a +adj} puts "a" or "an" in front.
// Patterns of one deck deal their combinations to the splits alike. Within a deck each kind of word stands as often
// behind a + as behind a -: that is what balances the reviews.
struct SentencePattern {
  int deck;
  Construction construction;
  const char* text;
};

const std::vector<SentencePattern>& trained_patterns();
const std::vector<SentencePattern>& new_patterns();  // for test_new alone

// Both polarities have the same number of words, a multiple of ten, so that every split gets its share of each pattern.
struct OpinionWords {
  std::string name;
  std::vector<std::string> negative, positive;
};

struct NeutralWords {
  std::string name;
  std::vector<std::string> words;
};

const std::vector<OpinionWords>& opinion_words();
const std::vector<NeutralWords>& neutral_words();

}  // namespace heed::train
