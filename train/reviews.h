// Film reviews made by a grammar of our own: a data set that needs no file, and that cannot be solved by counting
// words.
//
// The label is the writer's own verdict on the film as a whole, by four rules:
//   1. Only the writer counts. What relatives, critics, posters and trailers say does not.
//   2. Only this film as a whole counts. Its parts (the plot, the villain), other films and the popcorn do not.
//   3. Only what is stated counts. Hopes, expectations, questions and conditions state nothing.
//   4. A denied opinion counts as its opposite: "not a dull moment" is praise.
// Every review holds one or two verdicts, which agree. Around them, in any order, may stand a sentence whose
// opinion does not count, and one without any opinion.
//
// Balance. Each sentence is made from a pattern with marks ("the {part} is {-adj}, but the {film} is {+adj}"): + takes
// a word of the verdict's polarity, - one of the opposite polarity, ? either one by the toss of a coin. Positive and
// negative reviews use the same patterns, and each kind of word stands as often behind a + as behind a -. So every
// single word is as likely in a positive review as in a negative one; what tells is which word goes with which.
//
// Splits. A combination is a pattern together with the opinion words filled into it, in whatever order and beside
// whatever film parts and people. Each combination that states a verdict belongs to one split: training never sees those
// of validation and test, although it sees their patterns and their words. So what the label hangs on in a test review
// was never said in training, and no two splits share a review or a combination of clauses. test_new is made from
// patterns of its own, which occur nowhere else; all of its words occur in training.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "train/dataset.h"
#include "train/reviews_grammar.h"

namespace heed::train {

// count reviews in all: a tenth each for validation, test and test_new, the rest for training. Within a split both
// classes are equally frequent (to within one review), the order is shuffled, and no text occurs twice. The same seed
// gives the same reviews on every machine. Throws UsageError if count is below 20.
TextDataset built_in_reviews(uint64_t seed = 1, int64_t count = 10000);

// The same reviews with the clauses they are made of, for tests and for a look inside.
struct Clause {
  Construction construction;
  std::string combination;  // "17 dull+superb": the pattern's deck, then the opinion words in alphabetical order
  std::string text;         // a sentence, or two as in "Was it dull? Not at all."
};

struct Review {
  std::vector<Clause> clauses;
  int32_t label = 0;  // 0 negative, 1 positive
  std::string text() const;
};

struct ReviewSplits {
  std::vector<Review> train, validation, test, test_new;
};

ReviewSplits write_reviews(uint64_t seed, int64_t count);

}  // namespace heed::train
