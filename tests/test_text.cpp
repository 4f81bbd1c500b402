// From text to batches: the tokenizer on any bytes, the vocabulary, encoding, batches of similar length.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "tensor/error.h"
#include "tensor/random.h"
#include "tests/message_of.h"
#include "train/batches.h"
#include "train/tokenizer.h"
#include "train/utf8.h"
#include "train/vocabulary.h"

using namespace heed;
using namespace heed::train;
using namespace std::string_literals;
using heed::tests::message_of;

namespace {

using Ids = std::vector<int32_t>;

// The words of a text, each followed by |.
std::string words_of(std::string_view text) {
  Words words;
  tokenize(text, words);
  std::string joined;
  for (size_t i = 0; i < words.size(); i++) joined += std::string(words[i]) + "|";
  return joined;
}

std::vector<Example> examples(const std::vector<std::string>& texts) {
  std::vector<Example> result;
  for (const std::string& text : texts) result.push_back({text, static_cast<int32_t>(result.size() % 2)});
  return result;
}

// Text i has length lengths[i] and consists of the id 10 + i.
EncodedTexts texts_of_lengths(const std::vector<int64_t>& lengths) {
  EncodedTexts texts;
  for (size_t i = 0; i < lengths.size(); i++) {
    texts.add(Ids(static_cast<size_t>(lengths[i]), static_cast<int32_t>(10 + i)), static_cast<int32_t>(i % 2));
  }
  return texts;
}

std::vector<int64_t> random_lengths(size_t n, uint64_t below) {
  Random random(5);
  std::vector<int64_t> lengths(n);
  for (int64_t& length : lengths) length = static_cast<int64_t>(1 + random.below(below));
  return lengths;
}

std::vector<std::vector<int64_t>> epoch_of(Batches& batches) {
  std::vector<std::vector<int64_t>> samples;
  for (Batch batch; batches.next(batch);) samples.push_back(batch.samples);
  return samples;
}

}  // namespace

TEST_CASE("tokenizer: words, marks, apostrophes") {
  CHECK(words_of("") == "");
  CHECK(words_of("  \t\n ") == "");
  CHECK(words_of("A Film I LOVED") == "a|film|i|loved|");
  CHECK(words_of("Don't! It's n't (sic), \"they're\" 'ok' actors' x'") ==
        "don't|!|it's|n't|sic|,|they're|ok|actors|x|");
  CHECK(words_of("don''t 'tis o'er'the") == "don|t|tis|o'er'the|");
  CHECK(words_of("wait... what?!! no;:,") == "wait|.|what|?|!|no|;|:|,|");
  CHECK(words_of(". . !") == ".|.|!|");
  CHECK(words_of("7/10. 8.5/10, a 1/2-hour 3./4 x/2 5/y") == "7/10|.|8.5/10|,|a|1/2|hour|3|.|4|x|2|5|y|");
  CHECK(words_of("well-made/8 out of 10_x $5") == "well|made|8|out|of|10|x|5|");
}

TEST_CASE("tokenizer: break tags are dropped, other angle brackets separate") {
  CHECK(words_of("one<br />two<br/>three<br>four<BR />five<br />") == "one|two|three|four|five|");
  CHECK(words_of("<br /><br />") == "");
  CHECK(words_of("<b>bold</b> <br bra <br  /> <brx>") == "b|bold|b|br|bra|br|brx|");
  for (const char* cut : {"x<", "x<b", "x<br", "x<br ", "x<br /", "x<br/"}) {
    CAPTURE(cut);
    CHECK(words_of(cut).starts_with("x|"));
  }
}

TEST_CASE("tokenizer: UTF-8") {
  CHECK(words_of("Caf\u00e9 d\u00e9j\u00e0-vu \u65e5\u672c \U0001F600") ==
        "caf\u00e9|d\u00e9j\u00e0|vu|\u65e5\u672c|\U0001F600|");
  CHECK(words_of("don\u2019t don\u2018t don\u00b4t don`t don\xC2\x92t") == "don't|don't|don't|don't|don't|");
  CHECK(words_of("\u201cGood\u201d\u2014or\u2026bad\u00a0\u00a1no!") == "good|or|bad|no|!|");
  CHECK(words_of("a\xC2\x96"
                 "b\xC2\x85"
                 "c") == "a|b|c|");                // C1 controls
  CHECK(words_of("\xEF\xBB\xBFgood") == "good|");  // byte-order mark
  CHECK(words_of("a\u202Eb\uFFFDc") == "a|b|c|");  // a mark that turns the writing direction; a replacement
}

TEST_CASE("tokenizer: bytes that are not UTF-8 and NUL separate words") {
  CHECK(words_of("a\0b"s) == "a|b|");
  CHECK(words_of("caf\xE9 noir") == "caf|noir|");
  CHECK(words_of("x\xC3") == "x|");                 // cut short
  CHECK(words_of("x\xE2\x80") == "x|");             // cut short
  CHECK(words_of("x\xC0\xAFy") == "x|y|");          // overlong
  CHECK(words_of("x\xED\xA0\x80y") == "x|y|");      // surrogate
  CHECK(words_of("x\xF4\x90\x80\x80y") == "x|y|");  // beyond U+10FFFF
  CHECK(words_of("x\xFF\xFEy\x80z") == "x|y|z|");
}

TEST_CASE("tokenizer: random bytes give valid words that are tokenized to themselves") {
  Random random(1);
  const std::string frequent = "aB'`.<>br/ \xE2\x80\x99\xC2\x92\xC3\xA9\xF0\x9F\x98\x80";
  for (int round = 0; round < 3000; round++) {
    std::string text;
    for (uint64_t n = random.below(60); n > 0; n--) {
      text += random.below(2) ? frequent[random.below(frequent.size())] : static_cast<char>(random.below(256));
    }
    Words words;
    tokenize(text, words);
    for (size_t i = 0; i < words.size(); i++) {
      CHECK(find_invalid_utf8(words[i]) == std::string_view::npos);
      CHECK(words_of(words[i]) == std::string(words[i]) + "|");
      CHECK(std::none_of(words[i].begin(), words[i].end(), [](char c) { return 0 <= c && c <= 32; }));
    }
  }
}

TEST_CASE("tokenizer: appends, and takes 10 MB with or without spaces") {
  Words words;
  tokenize("one two", words);
  tokenize("three", words);
  CHECK(words.size() == 3);
  CHECK(words[2] == "three");
  words.clear();
  CHECK(words.empty());

  const std::string one_word(10'000'000, 'A');
  tokenize(one_word, words);
  REQUIRE(words.size() == 1);
  CHECK(words[0].size() == one_word.size());

  words.clear();
  std::string many;
  while (many.size() < 10'000'000) many += "<br <br' \xE2\x80";
  tokenize(many, words);
  CHECK(words.size() == 2 * many.size() / 11);
}

TEST_CASE("word table: numbers in order of arrival, through many growths") {
  WordTable table;
  CHECK(table.find("word7") == -1);
  for (int i = 0; i < 5000; i++) CHECK(table.add("word" + std::to_string(i)) == i);
  CHECK(table.add("word77") == 77);
  CHECK(table.size() == 5000);
  for (int i = 0; i < 5000; i += 13) {
    CHECK(table.find("word" + std::to_string(i)) == i);
    CHECK(table[i] == "word" + std::to_string(i));
  }
  CHECK(table.find("word5000") == -1);
  CHECK(table.find("") == -1);
}

TEST_CASE("vocabulary: by descending count, equal ones in byte order, whatever the order of the texts") {
  const auto texts = examples({"b b b a a c", "c d e e \u00e9"});
  auto reversed = texts;
  std::reverse(reversed.begin(), reversed.end());
  const std::vector<std::string> expected{"<pad>", "<unk>", "b", "a", "c", "e", "d", "\u00e9"};
  CHECK(build_vocabulary(texts, 100, 1).words() == expected);
  CHECK(build_vocabulary(reversed, 100, 1).words() == expected);
  CHECK(build_vocabulary(texts, 100, 2).size() == 6);
  CHECK(build_vocabulary(texts, 5, 1).words() == std::vector<std::string>(expected.begin(), expected.begin() + 5));
  CHECK(build_vocabulary(texts, 2, 1).size() == 2);
  CHECK(build_vocabulary({}).size() == 2);
  CHECK_THROWS_AS(build_vocabulary(texts, 1, 1), UsageError);

  const Vocabulary vocabulary = build_vocabulary(texts, 100, 1);
  CHECK(vocabulary.word(3) == "a");
  CHECK(vocabulary.id("a") == 3);
  CHECK(vocabulary.id("zebra") == Vocabulary::kUnknown);
  CHECK_THROWS_AS(vocabulary.word(8), IndexError);
  CHECK_THROWS_AS(vocabulary.word(-1), IndexError);
}

TEST_CASE("vocabulary: text cannot spell a reserved name; endless words are not counted") {
  WordCounts counts;
  counts.add("<pad> <unk> pad " + std::string(101, 'x') + " " + std::string(100, 'y'));
  CHECK(counts.total() == 5);
  CHECK(counts.size() == 3);
  const Vocabulary vocabulary(counts, 100, 1);
  CHECK(vocabulary.words() ==
        std::vector<std::string>{"<pad>", "<unk>", "pad", "unk", std::string(100, 'y')});
  CHECK(vocabulary.encode("<pad>", 9) == Ids{2});
}

TEST_CASE("vocabulary: a saved list comes back, a damaged one is refused") {
  const Vocabulary vocabulary = build_vocabulary(examples({"good bad good"}), 100, 1);
  const Vocabulary again(vocabulary.words(), "model.safetensors");
  CHECK(again.words() == vocabulary.words());
  CHECK(again.id("bad") == 3);

  const auto refused = [](const std::vector<std::string>& words) {
    return message_of<Error>([&] { Vocabulary(words, "m"); });
  };
  CHECK(refused({}) == "m: word 0 of the vocabulary must be <pad>, found the end of the list");
  CHECK(refused({"<pad>"}) == "m: word 1 of the vocabulary must be <unk>, found the end of the list");
  CHECK(refused({"<pad>", "a"}) == "m: word 1 of the vocabulary must be <unk>, found \"a\"");
  CHECK(refused({"<pad>", "<unk>", "a", "b", "a"}) == "m: words 2 and 4 of the vocabulary are both \"a\"");
  CHECK(refused({"<pad>", "<unk>", "<pad>"}) == "m: words 0 and 2 of the vocabulary are both \"<pad>\"");
  CHECK(refused({"<pad>", "<unk>", ""}) == "m: word 2 of the vocabulary is empty");
}

TEST_CASE("encode: truncation, unknown words, texts without words") {
  const Vocabulary vocabulary =
      build_vocabulary(examples({"a a a a a b b b b c c c d d e"}), 100, 1);  // a = 2 ... e = 6
  const std::string text = "A b c d e";
  CHECK(vocabulary.encode(text, 9) == Ids{2, 3, 4, 5, 6});
  CHECK(vocabulary.encode(text, 3) == Ids{2, 3, 4});
  CHECK(vocabulary.encode(text, 3, Truncate::tail) == Ids{4, 5, 6});
  CHECK(vocabulary.encode(text, 3, Truncate::head_tail) == Ids{2, 3, 6});
  CHECK(vocabulary.encode(text, 5, Truncate::head_tail) == Ids{2, 3, 4, 5, 6});
  CHECK(vocabulary.encode("a zebra", 9) == Ids{2, 1});
  CHECK(vocabulary.encode(" <br /> ", 9) == Ids{1});
  CHECK_THROWS_AS(vocabulary.encode(text, 0), UsageError);
}

TEST_CASE("batches: padded with zeros, with lengths, labels and samples") {
  const auto texts = texts_of_lengths({3, 1, 2});
  Batch batch;
  gather(texts, std::vector<int64_t>{2, 0}, batch);
  CHECK(batch.size == 2);
  CHECK(batch.length == 3);
  CHECK(batch.ids == Ids{12, 12, 0, 10, 10, 10});
  CHECK(batch.lengths == Ids{2, 3});
  CHECK(batch.labels == Ids{0, 0});
  CHECK(batch.samples == std::vector<int64_t>{2, 0});
  gather(texts, std::vector<int64_t>{1}, batch);
  CHECK(batch.ids == Ids{11});
}

TEST_CASE("batches: every text once an epoch, in another order each epoch, the same for the same seed") {
  const auto texts = texts_of_lengths(random_lengths(1003, 300));
  for (const int64_t size : {1, 7, 16, 1003, 5000}) {
    CAPTURE(size);
    Batches batches(texts, size, Batches::Order::shuffled, 3), same(texts, size, Batches::Order::shuffled, 3);
    Batches other(texts, size, Batches::Order::shuffled, 4);
    const auto first = epoch_of(batches), second = epoch_of(batches);
    CHECK(first.size() == static_cast<size_t>(batches.per_epoch()));
    std::multiset<int64_t> seen;
    int64_t smaller = 0;
    for (const auto& batch : first) {
      seen.insert(batch.begin(), batch.end());
      smaller += static_cast<int64_t>(batch.size()) < std::min<int64_t>(size, 1003);
    }
    CHECK(smaller == (size < 1003 && 1003 % size != 0));
    CHECK(seen.size() == 1003);
    CHECK(std::set<int64_t>(seen.begin(), seen.end()).size() == 1003);
    CHECK(first == epoch_of(same));
    CHECK(second == epoch_of(same));
    if (size < 1003) CHECK(first != second);
    if (size < 1003) CHECK(first != epoch_of(other));
  }
}

TEST_CASE("batches: texts of similar length stand together, batches do not come in order of length") {
  const auto texts = texts_of_lengths(random_lengths(3200, 300));
  Batches batches(texts, 32, Batches::Order::shuffled, 3);
  int64_t cells = 0, longer = 0, last = 0;
  for (Batch batch; batches.next(batch);) {
    cells += batch.size * batch.length;
    longer += batch.length > last;
    last = batch.length;
  }
  CHECK(cells < texts.tokens() * 1.03);  // in unsorted batches of 32 nearly half would be padding
  CHECK(longer > 30);
  CHECK(longer < 70);
}

TEST_CASE("batches: for evaluation by length and always alike") {
  const auto texts = texts_of_lengths(random_lengths(100, 50));
  Batches batches(texts, 8, Batches::Order::by_length);
  const auto first = epoch_of(batches);
  CHECK(first == epoch_of(batches));
  int64_t last = 0;
  for (const auto& batch : first) {
    for (const int64_t sample : batch) {
      CHECK(texts.length(sample) >= last);
      last = texts.length(sample);
    }
  }
}

TEST_CASE("batches: continue anywhere, at the edge of an epoch too") {
  const auto texts = texts_of_lengths(random_lengths(50, 20));
  Batches whole(texts, 8, Batches::Order::shuffled, 9);
  std::vector<std::vector<int64_t>> samples;  // two epochs
  std::vector<std::pair<int64_t, int64_t>> places;
  Batch batch;
  while (whole.epoch() < 2) {
    places.emplace_back(whole.epoch(), whole.position());
    samples.push_back(whole.next(batch) ? batch.samples : std::vector<int64_t>{});
  }
  CHECK(samples.size() == 2 * (7 + 1));
  for (size_t start = 0; start < places.size(); start++) {
    Batches resumed(texts, 8, Batches::Order::shuffled, 9);
    resumed.seek(places[start].first, places[start].second);
    for (size_t i = start; i < samples.size(); i++) {
      CHECK((resumed.next(batch) ? batch.samples : std::vector<int64_t>{}) == samples[i]);
    }
  }
  CHECK_THROWS_AS(whole.seek(0, 8), UsageError);
  CHECK_THROWS_AS(whole.seek(-1, 0), UsageError);
}

TEST_CASE("batches: no texts, empty texts, wrong sizes") {
  EncodedTexts none;
  Batches batches(none, 4, Batches::Order::shuffled);
  Batch batch;
  CHECK(batches.per_epoch() == 0);
  CHECK_FALSE(batches.next(batch));
  CHECK(batches.epoch() == 1);

  const auto empty = texts_of_lengths({0, 0});
  Batches of_empty(empty, 4, Batches::Order::by_length);
  CHECK(of_empty.next(batch));
  CHECK(batch.length == 0);
  CHECK(batch.ids.empty());
  CHECK_THROWS_AS(Batches(none, 0, Batches::Order::shuffled), UsageError);
}
