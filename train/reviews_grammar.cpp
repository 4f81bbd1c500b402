#include "train/reviews_grammar.h"

namespace heed::train {

using enum Construction;

const std::vector<SentencePattern>& trained_patterns() {
  static const std::vector<SentencePattern> patterns = {
      // Each deck up to 12 says a thing plainly and denies its opposite.
      {1, plain, "all in all, the {film} is {+adj}"},
      {1, negation, "nobody could call the {film} {-adj}"},
      {2, plain, "from start to finish I found the {film} {+adj}"},
      {2, negation, "there is not {a -adj} {moment} in the whole {film}"},
      {10, plain, "for me the {film} is simply {+thing}"},
      {10, negation, "it would be wrong to call this {film} {-thing}"},
      {12, plain, "I {+loved} the {film} from the first {moment} to the last"},
      {12, negation, "nobody can say that I {-loved} this {film}"},

      {17, contrast, "the {part} is {-adj}, but the {film} is {+adj}"},
      {18, contrast, "although the {part} is {-adj}, the {film} is {+adj}"},
      {19, contrast, "the {film} is {+adj}, although the {part} is {-adj}"},
      {20, contrast, "I {-loved} the {part} but {+loved} the {film}"},
      {21, contrast, "the {part} is {-adj}, but the {film} is {+thing}"},
      {21, contrast, "the {part} is {-thing}, but the {film} is {+adj}"},

      {30, others, "{person} {-loved} the {film}; I {+loved} it"},
      {31, others, "when we saw the {film}, {person} {-felt}, but I {+felt}"},
      {32, others, "{person} {-loved} the {film}; I {+felt}"},
      {32, others, "{person} {-felt}; I {+loved} the {film}"},
      {33, others, "{person} called the {film} {-thing}; I call it {+thing}"},

      {40, expectation, "I expected {-thing} and the {film} turned out to be {+thing}"},
      {41, expectation, "the {film} turned out to be {+adj}, though I had expected something {-adj}"},
      {42, condition, "if the {film} were {-adj} I would say so, but it is {+adj}"},

      {50, hearsay, "{person} {?loved} the {film}"},
      {51, hearsay, "{person} says that the {film} is {?thing}"},
      {52, hearsay, "to {person} the {film} seemed {?adj}"},
      {53, hearsay, "in the row behind us {person} {?felt}"},
      {56, hypothesis, "what if the {part} had been {?adj}?"},
      {58, hypothesis, "if the sequel is {?thing}, I will let you know"},
      {60, aside, "the {part} is {?adj}"},
      {61, aside, "I {?loved} the {extra}"},

      {0, filler, "it {rained} all {evening}"},
      {0, filler, "we sat in the {row} row"},
      {0, filler, "I saw the {film} on a {weekday} in {town}"},
      {0, filler, "the ticket cost {number} euros"},
      {0, filler, "I ate {snack} and drank {drink}"},
      {0, filler, "the {film} was shot in {town} and {town}"},
      {0, filler, "it tells of {a trade} and {a trade} who meet on a train to {town}"},
      {0, filler, "the lights went down at {number} minutes past {hour}"},
      {0, filler, "there were {number} people and {a animal} in the cinema"},
      {0, filler, "the {film} runs for a hundred and {number} minutes"},
      {0, filler, "{a animal} appears in the {film} for about {number} minutes"},
      {0, filler, "the director used to be {a trade}"},
      {0, filler, "we came by {transport} and went home on foot"},
      {0, filler, "the curtain was {colour}"},
  };
  return patterns;
}

const std::vector<SentencePattern>& new_patterns() {
  static const std::vector<SentencePattern> patterns = {
      {101, plain, "I found this {film} {+adj}"},
      {101, negation, "it would be wrong to call this {film} {-adj}"},
      {102, plain, "I {+loved} the whole {film}"},
      {102, negation, "nobody can say that I {-loved} the whole {film}"},
      {103, contrast, "although I found the {part} {-adj}, I found the {film} {+adj}"},
      {104, contrast, "although I {-loved} the {part}, I {+loved} the {film}"},
      {105, contrast, "the {part} is {-thing}, but the {film} is {+thing}"},
      {106, negation, "the {film} is not {-thing} but {+thing}"},
      {107, others, "I {+loved} the {film}; {person} {-loved} it"},
      {108, others, "although {person} {-felt}, I {+felt}"},
      {109, others, "{person} called the {film} {-thing}, but for me it is {+thing}"},
      {110, expectation, "I had expected {-thing}, but the {film} turned out to be {+thing}"},
      {111, condition, "if this {film} were {-thing} I would say so, but it is {+thing}"},

      {120, hearsay, "{person} found the {film} {?adj}"},
      {121, hearsay, "when we saw the {film}, {person} {?felt}"},
      {122, hypothesis, "what if the {film} had been {?thing}?"},
      {123, aside, "I found the {extra} {?adj}"},

      {0, filler, "{a trade} and {a trade} meet in {town}"},
      {0, filler, "it {rained} in {town}"},
      {0, filler, "the people in the {row} row ate {snack}"},
      {0, filler, "the train home was {colour}"},
  };
  return patterns;
}

const std::vector<OpinionWords>& opinion_words() {
  static const std::vector<OpinionWords> lists = {
      {"adj",
       {"dull", "dreadful", "boring", "tedious", "clumsy", "predictable", "tiresome", "silly", "lifeless", "awful"},
       {"superb", "wonderful", "brilliant", "clever", "charming", "delightful", "gripping", "exciting", "splendid", "marvellous"}},
      {"thing",
       {"a bore", "a mess", "a disaster", "a chore", "a disgrace", "a dud", "a flop", "a waste of time", "a failure", "a turkey"},
       {"a masterpiece", "a triumph", "a joy", "a treat", "a gem", "a delight", "a marvel", "a jewel", "a wonder", "a classic"}},
      {"loved",  // what one did to a film ...
       {"hated", "loathed", "disliked", "detested", "despised", "resented", "deplored", "abhorred", "scorned", "regretted"},
       {"loved", "adored", "enjoyed", "admired", "liked", "cherished", "relished", "treasured", "savoured", "worshipped"}},
      {"felt",  // ... and what it did to one
       {"fell asleep", "walked out early", "dozed off", "yawned from ear to ear", "was bored stiff", "was appalled", "left in a huff",
        "sulked all the way home", "asked for the money back", "counted the minutes"},
       {"sat spellbound", "cheered at the credits", "wept with joy", "grinned from ear to ear", "was enchanted", "was captivated",
        "was thrilled", "was moved to tears", "left in high spirits", "stayed for a second showing"}},
  };
  return lists;
}

const std::vector<NeutralWords>& neutral_words() {
  static const std::vector<NeutralWords> lists = {
      {"film", {"film", "movie", "picture"}},
      {"moment", {"moment", "minute", "scene", "frame", "second", "line", "shot"}},
      {"part", {"cast",        "plot",           "script",          "ending",      "opening scene", "music",
                "camera work", "story",          "first act",       "second half", "acting",        "dialogue",
                "car chase",   "love story",     "villain",         "heroine",     "soundtrack",    "final twist",
                "sword fight", "dream sequence", "supporting cast", "leading man", "editing",       "prologue"}},
      {"person", {"my brother",        "my sister",           "my aunt",
                  "my uncle",          "my neighbour",        "my dentist",
                  "my flatmate",       "my grandmother",      "my barber",
                  "my boss",           "our postman",         "my cousin",
                  "the man behind me", "the woman beside me", "the usher",
                  "the projectionist", "my old teacher",      "the morning critic",
                  "everybody else",    "my better half"}},
      {"extra",
       {"popcorn", "trailer", "poster", "novel", "lemonade", "coffee in the lobby", "dinner beforehand", "newsreel",
        "cartoon before it", "walk home", "ice cream", "cinema itself", "stage version", "television series",
        "programme booklet"}},
      {"rained", {"rained", "snowed", "drizzled", "hailed", "thundered"}},
      {"evening", {"evening", "afternoon", "night", "day", "weekend"}},
      {"row", {"first", "second", "third", "fourth", "fifth", "sixth", "last"}},
      {"weekday", {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}},
      {"town",
       {"Lisbon", "Vienna", "Dublin", "Prague", "Oslo", "Naples", "Paris", "Bergen", "Ghent", "York", "Tokyo",
        "Havana"}},
      {"number", {"six", "seven", "nine", "eleven", "twelve", "fourteen", "fifteen", "sixteen", "twenty", "thirty"}},
      {"hour", {"five", "six", "seven", "eight", "nine", "ten"}},
      {"snack", {"popcorn", "peanuts", "chocolate", "crisps", "an apple", "a sandwich", "grapes"}},
      {"drink", {"lemonade", "tea", "coffee", "water", "apple juice", "cocoa"}},
      {"trade",
       {"baker", "nurse", "plumber", "detective", "widow", "sailor", "librarian", "clockmaker", "gardener", "pilot",
        "spy", "thief", "dancer", "architect", "engineer", "undertaker"}},
      {"animal", {"dog", "goat", "parrot", "cat", "owl", "elephant", "otter", "donkey", "hedgehog", "swan"}},
      {"transport", {"bus", "train", "tram", "bicycle", "taxi", "boat"}},
      {"colour", {"red", "blue", "green", "yellow", "grey", "purple"}},
  };
  return lists;
}

}  // namespace heed::train
