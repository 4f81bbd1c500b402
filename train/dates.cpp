#include "train/dates.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <set>
#include <sstream>

#include "tensor/error.h"
#include "tensor/random.h"

namespace heed::train {

namespace {

using Spoken = std::vector<std::string>;

const char* kMonths[] = {"january", "february", "march",     "april",   "may",      "june",
                         "july",    "august",   "september", "october", "november", "december"};
const char* kNumbers[] = {"",       "one",     "two",       "three",    "four",     "five",    "six",
                          "seven",  "eight",   "nine",      "ten",      "eleven",   "twelve",  "thirteen",
                          "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
const char* kOrdinals[] = {"",           "first",       "second",     "third",       "fourth",     "fifth",    "sixth",
                           "seventh",    "eighth",      "ninth",      "tenth",       "eleventh",   "twelfth",  "thirteenth",
                           "fourteenth", "fifteenth",   "sixteenth",  "seventeenth", "eighteenth", "nineteenth"};
const char* kTens[] = {"", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};
const char* kChinese[] = {"〇", "一", "二", "三", "四", "五", "六", "七", "八", "九"};

int days_in(int year, int month) {
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 ? 28 + leap : month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

Spoken split(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

std::string apart(int number) {  // 1987 -> "1 9 8 7"
  std::string out;
  for (const char digit : std::to_string(number)) out += std::string(out.empty() ? "" : " ") + digit;
  return out;
}

std::string below_hundred(int n) {
  if (n < 20) return kNumbers[n];
  return std::string(kTens[n / 10]) + " " + kNumbers[n % 10];
}

std::string spoken_year(int year) {
  const int century = year / 100, rest = year % 100;
  if (year == 2000) return "two thousand";
  if (century == 20 && rest < 10) return std::string("two thousand and ") + kNumbers[rest];
  const std::string head = below_hundred(century);
  if (rest == 0) return head + " hundred";
  return head + (rest < 10 ? std::string(" oh ") + kNumbers[rest] : " " + below_hundred(rest));
}

std::string ordinal(int day) {
  if (day < 20) return kOrdinals[day];
  if (day % 10 == 0) return day == 20 ? "twentieth" : "thirtieth";
  return std::string(kTens[day / 10]) + " " + kOrdinals[day % 10];
}

std::string chinese_number(int n) {  // 1 to 31: 三, 十, 十 二, 二 十 五
  std::string out;
  if (n >= 20) out = std::string(kChinese[n / 10]) + " ";
  if (n >= 10) out += "十 ";
  return out + (n % 10 > 0 ? kChinese[n % 10] : "");
}

std::string chinese_year(int year) {
  std::string out;
  for (const char digit : std::to_string(year)) out += std::string(kChinese[digit - '0']) + " ";
  return out;
}

std::string digits_of(int year, int month, int day) {
  char out[40];
  std::snprintf(out, sizeof out, "%04d-%02d-%02d", year, month, day);
  return out;
}

}  // namespace

std::vector<Spoken> forms_of_date(int year, int month, int day) {
  const std::string name = kMonths[month - 1], d = apart(day), y = apart(year);
  const std::string numbered = chinese_year(year) + "年 " + chinese_number(month) + " 月 " + chinese_number(day);
  return {split(d + " " + name + " " + y),
          split(name + " " + d + " , " + y),
          split("the " + ordinal(day) + " of " + name + " " + spoken_year(year)),
          split(name + " the " + ordinal(day) + " , " + spoken_year(year)),
          split(numbered + " 日"),
          split(numbered + " 号"),
          split(y + " 年 " + apart(month) + " 月 " + d + " 日")};
}

std::vector<SpokenDate> spoken_dates(uint64_t seed, int64_t count, DateSplit part) {
  if (count < 0) throw UsageError(text("spoken_dates: the count is ", count, ", it must not be negative"));
  Random random(mix_key(seed, part == DateSplit::test));
  std::vector<SpokenDate> out;
  while (static_cast<int64_t>(out.size()) < count) {
    const int year = 1900 + static_cast<int>(random.below(200)), month = 1 + static_cast<int>(random.below(12));
    const int day = 1 + static_cast<int>(random.below(static_cast<uint64_t>(days_in(year, month))));
    const bool for_test = mix_key(static_cast<uint64_t>(year * 372 + month * 31 + day), 7) % 10 == 0;  // whatever the seed
    const uint64_t form = random.below(7);
    if (for_test == (part == DateSplit::test)) out.push_back({forms_of_date(year, month, day)[form], digits_of(year, month, day)});
  }
  return out;
}

const Spoken& date_words() {
  static const Spoken all = [] {
    std::set<std::string> words;
    for (int year = 1900; year < 2100; year++) {
      for (int day = 1; day <= 31; day++) {
        for (const Spoken& form : forms_of_date(year, 1 + day % 12, day)) words.insert(form.begin(), form.end());
      }
    }
    return Spoken(words.begin(), words.end());
  }();
  return all;
}

std::vector<int32_t> date_word_ids(const Spoken& words) {
  std::vector<int32_t> ids;
  for (const std::string& word : words) {
    const auto found = std::lower_bound(date_words().begin(), date_words().end(), word);
    if (found == date_words().end() || *found != word) throw IndexError("dates: there is no word \"" + word + "\"");
    ids.push_back(static_cast<int32_t>(found - date_words().begin()));
  }
  return ids;
}

std::vector<int32_t> date_digit_ids(const std::string& digits) {
  std::vector<int32_t> ids;
  for (const char c : digits) {
    if ((c < '0' || c > '9') && c != '-') throw IndexError(text("dates: \"", digits, "\" must be of digits and -"));
    ids.push_back(c == '-' ? 10 : c - '0');
  }
  return ids;
}

std::string date_digits(const std::vector<int32_t>& ids) {
  std::string out;
  for (const int32_t id : ids) out += id == 10 ? '-' : id >= 0 && id < 10 ? static_cast<char>('0' + id) : '?';
  return out;
}

}  // namespace heed::train
