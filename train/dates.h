// A translation task of our own, which needs no file: dates as they are spoken, in English and Chinese, to digits.
//
//   the third of march nineteen eighty seven  ->  1987-03-03
//   二 〇 〇 五 年 十 二 月 二 十 五 日          ->  2005-12-25
//
// To write the first digit of the day a decoder must look at the spoken day, wherever it stands: before the month, behind
// it, as a number or an ordinal; "twenty" belongs to the day in one place and to the year in another.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace heed::train {

struct SpokenDate {
  std::vector<std::string> words;  // Chinese: characters; years and days in digits: one word a digit
  std::string digits;              // "1987-03-03"
};

// Dates from 1900 to 2099, each in one of its seven forms. One date in ten is kept for the test: training has it in no
// form. The same seed gives the same dates on every machine.
enum class DateSplit { train, test };
std::vector<SpokenDate> spoken_dates(uint64_t seed, int64_t count, DateSplit split);

// Every form of a date: four in English, three in Chinese.
std::vector<std::vector<std::string>> forms_of_date(int year, int month, int day);

// All words that occur, in a fixed order; a word's id is its place.
const std::vector<std::string>& date_words();
std::vector<int32_t> date_word_ids(const std::vector<std::string>& words);  // IndexError for a word that never occurs

// The target's characters: 0 to 9 and '-', then the tokens with which a decoder starts and ends.
constexpr int32_t kDateStart = 11, kDateEnd = 12, kDateTokens = 13;
std::vector<int32_t> date_digit_ids(const std::string& digits);
std::string date_digits(const std::vector<int32_t>& ids);

}  // namespace heed::train
