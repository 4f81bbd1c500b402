#include "train/reviews.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "tensor/error.h"
#include "tensor/random.h"

namespace heed::train {

namespace {

enum class Split { train, validation, test, test_new };

// One {slot} and the literal text in front of it.
struct Slot {
  std::string before;
  char mark = 0;         // + - ? in front of an opinion word, 0 for a neutral one
  bool article = false;  // {a ...}
  size_t list = 0;       // in opinion_words() or neutral_words()
};

struct Pattern {
  int deck;
  Construction construction;
  std::vector<Slot> slots;
  std::string after;  // the last slot
};

template <class Lists>
size_t index_of(const Lists& lists, std::string_view name) {
  for (size_t i = 0; i < lists.size(); i++) {
    if (lists[i].name == name) return i;
  }
  throw std::logic_error("built-in reviews: no list of words is named " + std::string(name));
}

// name: what stands between the braces, such as "a +adj".
Slot parse_slot(std::string_view name) {
  Slot slot;
  if (name.substr(0, 2) == "a ") slot.article = true, name.remove_prefix(2);
  if (name[0] == '+' || name[0] == '-' || name[0] == '?') slot.mark = name[0], name.remove_prefix(1);
  slot.list = slot.mark ? index_of(opinion_words(), name) : index_of(neutral_words(), name);
  return slot;
}

Pattern parse(const SentencePattern& source) {
  Pattern pattern{source.deck, source.construction, {}, {}};
  std::string_view rest = source.text;
  for (size_t open; (open = rest.find('{')) != rest.npos;) {
    const size_t close = rest.find('}', open);
    pattern.slots.push_back(parse_slot(rest.substr(open + 1, close - open - 1)));
    pattern.slots.back().before = rest.substr(0, open);
    rest.remove_prefix(close + 1);
  }
  pattern.after = rest;
  return pattern;
}

struct Grammar {
  std::vector<Pattern> verdicts, distractors, fillers;

  explicit Grammar(const std::vector<SentencePattern>& sources) {
    for (const SentencePattern& source : sources) {
      const bool filler = source.construction == Construction::filler;
      (filler ? fillers : states_verdict(source.construction) ? verdicts : distractors).push_back(parse(source));
    }
  }
};

std::string with_article(const std::string& word) {
  const bool vowel = std::string_view("aeiou").find(word[0]) != std::string_view::npos;
  return (vowel ? "an " : "a ") + word;  // by the letter: no list has a word like "hour" or "unique"
}

std::string sentence(std::string words) {
  if (words[0] >= 'a' && words[0] <= 'z') words[0] = static_cast<char>(words[0] - 'a' + 'A');
  if (words.back() != '!' && words.back() != '?') words += '.';
  return words;
}

// Writes the reviews of one split.
class Writer {
 public:
  Writer(const Grammar& grammar, uint64_t seed, Split split)
      : grammar_(grammar), seed_(seed), split_(split), random_(mix_key(seed, static_cast<uint64_t>(split))) {}

  std::vector<Review> write(int64_t count) {
    std::vector<Review> reviews;
    std::unordered_set<std::string> seen;
    while (static_cast<int64_t>(reviews.size()) < count) {
      Review review = draw(static_cast<int32_t>(reviews.size() % 2));
      if (seen.insert(review.text()).second) reviews.push_back(std::move(review));
    }
    random_.shuffle(reviews);
    return reviews;
  }

 private:
  Review draw(int32_t label) {
    film_ = random_.below(3);
    used_.clear();
    Review review{{}, label};
    const uint64_t verdicts = 1 + random_.below(2);
    const uint64_t distractors = random_.below(2);
    const uint64_t fillers = verdicts + distractors == 1 ? 1 : random_.below(2);
    add(review, grammar_.verdicts, verdicts);
    add(review, grammar_.distractors, distractors);
    add(review, grammar_.fillers, fillers);
    random_.shuffle(review.clauses);
    return review;
  }

  // Adds n clauses from n different patterns.
  void add(Review& review, const std::vector<Pattern>& patterns, uint64_t n) {
    std::vector<uint64_t> chosen;
    while (chosen.size() < n) {
      const uint64_t i = random_.below(patterns.size());
      if (std::find(chosen.begin(), chosen.end(), i) != chosen.end()) continue;
      chosen.push_back(i);
      review.clauses.push_back(clause(patterns[i], review.label));
    }
  }

  Clause clause(const Pattern& pattern, int32_t label) {
    const std::vector<uint64_t> words = draw_opinions(pattern);
    const int32_t coin = static_cast<int32_t>(random_.below(2));
    std::vector<std::string> opinions;
    std::string text;
    for (size_t i = 0; i < pattern.slots.size(); i++) {
      const Slot& slot = pattern.slots[i];
      const int32_t polarity = slot.mark == '+' ? label : slot.mark == '-' ? 1 - label : coin;
      const std::string& word = slot.mark ? opinion(slot, polarity, words[i]) : neutral(slot);
      if (slot.mark) opinions.push_back(word);
      text += slot.before + (slot.article ? with_article(word) : word);
    }
    return {pattern.construction, combination(pattern.deck, opinions), sentence(text + pattern.after)};
  }

  // For each slot the number of its word; together a combination that belongs to this split.
  std::vector<uint64_t> draw_opinions(const Pattern& pattern) {
    std::vector<uint64_t> words(pattern.slots.size());
    for (;;) {
      uint64_t sum = mix_key(seed_, static_cast<uint64_t>(pattern.deck)) % 10;
      for (size_t i = 0; i < words.size(); i++) {
        if (pattern.slots[i].mark)
          sum += words[i] = random_.below(opinion_words()[pattern.slots[i].list].positive.size());
      }
      if (!states_verdict(pattern.construction) || split_ == Split::test_new || home(sum) == split_) return words;
    }
  }

  // Eight tenths of the combinations are for training. Through the sum each word gets the same share of every pattern
  // in every split, and "dull but superb" belongs where "superb but dull" does: so no split is out of balance.
  static Split home(uint64_t sum) {
    return sum % 10 < 8 ? Split::train : sum % 10 == 8 ? Split::validation : Split::test;
  }

  static const std::string& opinion(const Slot& slot, int32_t polarity, uint64_t word) {
    const OpinionWords& list = opinion_words()[slot.list];
    return (polarity == 1 ? list.positive : list.negative)[word];
  }

  // The film has one name throughout a review. Every other word is new in it: nobody's brother changes his mind.
  const std::string& neutral(const Slot& slot) {
    const NeutralWords& list = neutral_words()[slot.list];
    if (list.name == "film") return list.words[film_];
    for (;;) {
      const std::string& word = list.words[random_.below(list.words.size())];
      if (std::find(used_.begin(), used_.end(), &word) != used_.end()) continue;
      used_.push_back(&word);
      return word;
    }
  }

  static std::string combination(int deck, std::vector<std::string> opinions) {
    std::sort(opinions.begin(), opinions.end());
    std::string key = std::to_string(deck);
    for (size_t i = 0; i < opinions.size(); i++) key += (i == 0 ? ' ' : '+') + opinions[i];
    return key;
  }

  const Grammar& grammar_;
  const uint64_t seed_;
  const Split split_;
  Random random_;
  uint64_t film_ = 0;
  std::vector<const std::string*> used_;
};

std::vector<Example> examples(const std::vector<Review>& reviews) {
  std::vector<Example> result;
  for (const Review& review : reviews) result.push_back({review.text(), review.label});
  return result;
}

}  // namespace

std::string Review::text() const {
  std::string result;
  for (const Clause& clause : clauses) result += (result.empty() ? "" : " ") + clause.text;
  return result;
}

ReviewSplits write_reviews(uint64_t seed, int64_t count) {
  if (count < 20) {
    throw UsageError(heed::text("built_in_reviews: count is ", count,
                                ", but must be at least 20, so that each of the four splits has both classes"));
  }
  const Grammar trained(trained_patterns()), unseen(new_patterns());
  const int64_t tenth = count / 10;
  return {Writer(trained, seed, Split::train).write(count - 3 * tenth),
          Writer(trained, seed, Split::validation).write(tenth), Writer(trained, seed, Split::test).write(tenth),
          Writer(unseen, seed, Split::test_new).write(tenth)};
}

TextDataset built_in_reviews(uint64_t seed, int64_t count) {
  const ReviewSplits splits = write_reviews(seed, count);
  return {"reviews",
          {"negative", "positive"},
          examples(splits.train),
          examples(splits.validation),
          examples(splits.test),
          examples(splits.test_new)};
}

}  // namespace heed::train
