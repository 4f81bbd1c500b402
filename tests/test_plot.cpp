#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tensor/error.h"
#include "train/plot.h"
#include "train/svg.h"
#include "train/terminal.h"
#include "train/utf8.h"

using namespace heed;
using namespace heed::train;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) n++;
  return n;
}

// What keeps a text from being well-formed XML of the kind SVG needs; "" if nothing does. Knows elements, attributes in
// double quotes and the five entities.
std::string xml_fault(const std::string& xml) {
  if (const size_t at = find_invalid_utf8(xml); at != xml.npos) return text("not UTF-8 at ", at);
  std::vector<std::string> open;
  size_t roots = 0;
  for (size_t at = 0; at < xml.size();) {
    const char c = xml[at];
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') return text("control character at ", at);
    if (c == '&') {
      const size_t end = xml.find(';', at);
      const std::string entity = end == xml.npos ? "" : xml.substr(at, end - at + 1);
      if (!std::set<std::string>{"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"}.count(entity))
        return text("bad & at ", at);
      at = end + 1;
    } else if (c == '<') {
      const size_t end = xml.find('>', at);
      if (end == xml.npos) return text("unclosed < at ", at);
      std::string tag = xml.substr(at + 1, end - at - 1);
      const bool closes = tag[0] == '/', is_empty = tag.back() == '/';
      const std::string name = tag.substr(closes, tag.find_first_of(" \n/", closes) - closes);
      if (has(tag, "<") || count(tag, "\"") % 2 || name.empty()) return text("bad tag <", tag, ">");
      std::set<std::string> attributes;
      for (size_t equals = tag.find("=\""); equals != tag.npos; equals = tag.find("=\"", tag.find('"', equals + 2))) {
        const size_t start = tag.find_last_of(" \n", equals) + 1;
        if (!attributes.insert(tag.substr(start, equals - start)).second) return text("attribute twice in <", tag, ">");
      }
      if (closes) {
        if (open.empty() || open.back() != name) return text("unexpected </", name, ">");
        open.pop_back();
      } else {
        if (open.empty() && ++roots > 1) return "two roots";
        if (!is_empty) open.push_back(name);
      }
      at = end + 1;
    } else {
      at++;
    }
  }
  return open.empty() && roots == 1 ? "" : "unclosed elements";
}

std::vector<std::string> words(const std::string& sentence) {
  std::istringstream in(sentence);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

HeatMap sample(size_t rows, size_t columns, size_t panels) {
  HeatMap map{"a title", {}, {}, {}};
  for (size_t i = 0; i < rows; i++) map.rows.push_back("row" + std::to_string(i));
  for (size_t j = 0; j < columns; j++) map.columns.push_back("column" + std::to_string(j));
  for (size_t p = 0; p < panels; p++) {
    Panel panel{"head " + std::to_string(p + 1), {}};
    for (size_t i = 0; i < rows * columns; i++) panel.values.push_back(static_cast<float>((i * 7 + p) % 11) / 11);
    map.panels.push_back(panel);
  }
  return map;
}

// As the terminal shows it: without colour sequences.
std::vector<std::string> visible_lines(const std::string& text) {
  std::string plain;
  for (size_t at = 0; at < text.size(); at++) {
    if (text[at] == '\x1b') {
      at = text.find('m', at);
    } else {
      plain += text[at];
    }
  }
  std::istringstream in(plain);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

int widest_line(const std::string& text) {
  int widest = 0;
  for (const std::string& line : visible_lines(text)) widest = std::max(widest, display_width(line));
  return widest;
}

// Words that have broken something somewhere.
const std::vector<std::string> kOddWords = {"",
                                            "<script>alert('x')</script>",
                                            "\"&amp;\"",
                                            std::string("zero\0byte", 9),
                                            "\x1b[31mred\x07",
                                            "\xff\xfe\xc0\xaf",
                                            "\xed\xa0\x80 surrogate",
                                            "\xef\xbf\xbf",
                                            "注意力机制的本质与起源的核心",
                                            "e\xcc\x81\xcc\x81\xcc\x81",
                                            "\xe2\x80\xaetfel",
                                            "😀😀😀😀😀😀😀😀😀😀",
                                            "cut \xe2\x82",
                                            "two\nlines\ttab",
                                            std::string(100'000, 'x')};

HeatMap odd_map() {
  HeatMap map{kOddWords[1], kOddWords, kOddWords, {}, kOddWords[5]};
  for (const std::string& word : kOddWords) {
    map.panels.push_back({word, std::vector<float>(kOddWords.size() * kOddWords.size(), 0.5f)});
  }
  return map;
}

// Sets an environment variable, or removes it, until the end of the scope.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~Environment() { set(old_ ? old_->c_str() : nullptr); }

 private:
  void set(const char* value) { value ? setenv(name_, value, 1) : unsetenv(name_); }
  const char* name_;
  std::optional<std::string> old_;
};

// A terminal of 60 columns whose screen is this test.
class PseudoTerminal {
 public:
  PseudoTerminal() : screen_(posix_openpt(O_RDWR | O_NOCTTY)) {
    if (screen_ < 0 || grantpt(screen_) != 0 || unlockpt(screen_) != 0) return;
    file = open(ptsname(screen_), O_RDWR | O_NOCTTY);
    winsize size{};
    size.ws_row = 24, size.ws_col = 60;
    ioctl(file, TIOCSWINSZ, &size);
  }
  ~PseudoTerminal() {
    close(file);
    close(screen_);
  }
  std::string shown() {
    std::string out;
    pollfd waiting{screen_, POLLIN, 0};
    while (poll(&waiting, 1, 50) > 0) {
      char buffer[4096];
      const ssize_t n = read(screen_, buffer, sizeof buffer);
      if (n <= 0) break;
      out.append(buffer, static_cast<size_t>(n));
    }
    return out;
  }
  int file = -1;

 private:
  int screen_;
};

}  // namespace

TEST_CASE("utf8: valid sequences are read, all others become U+FFFD") {
  CHECK(decode_utf8("a", 0).code == 'a');
  CHECK(decode_utf8("é", 0).code == 0xE9);
  CHECK(decode_utf8("注", 0).code == 0x6CE8);
  CHECK(decode_utf8("😀", 0).code == 0x1F600);
  CHECK(decode_utf8("\xf4\x8f\xbf\xbf", 0).code == 0x10FFFF);
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe2\x82", "\xe2(\xa1", "\xc3"}) {
    CHECK(!decode_utf8(bad, 0).valid);
    CHECK(find_invalid_utf8(bad) == 0);
  }
  CHECK(find_invalid_utf8("aé注😀") == std::string::npos);
  CHECK(find_invalid_utf8("aé\xff") == 3);
  CHECK(printable("a\n\xff"
                  "b") ==
        "a\xef\xbf\xbd\xef\xbf\xbd"
        "b");
}

TEST_CASE("utf8: texts are shortened to columns, not bytes") {
  CHECK(shorten("moment", 6) == "moment");
  CHECK(shorten("moments", 6) == "momen…");
  CHECK(shorten("moments", 1) == "…");
  CHECK(shorten("moments", 0) == "");
  CHECK(shorten("注意力机制", 10) == "注意力机制");
  CHECK(shorten("注意力机制", 9) == "注意力机…");
  CHECK(shorten("注意力机制", 8) == "注意力…");
  CHECK(shorten("e\xcc\x81t\xc3\xa9", 3) == "e\xcc\x81t\xc3\xa9");
  std::string marks = "a";
  for (int i = 0; i < 1'000'000; i++) marks += "\xcc\x81";
  CHECK(shorten(marks, 10).size() < 1000);
  for (const std::string& word : kOddWords) {
    for (int columns = 0; columns < 20; columns++) {
      CHECK(display_width(shorten(word, columns)) <= columns);
      CHECK(find_invalid_utf8(shorten(word, columns)) == std::string::npos);
    }
  }
}

TEST_CASE("heat map SVG: well-formed, every word and every number") {
  HeatMap map{"attention", words("not a dull moment"), words("not a dull moment"), {}};
  map.panels = {{"head 1", {0.1f, 0.2f, 0.3f, 0.4f, 0, 0, 0, 1, 0.25f, 0.25f, 0.25f, 0.25f, 0.5f, 0, 0, 0.123456f}}};
  const std::string svg = heat_map_svg(map);
  CHECK(xml_fault(svg) == "");
  for (const char* word : {"not", "a", "dull", "moment"}) CHECK(count(svg, text(">", word, "</text>")) == 2);
  CHECK(has(svg, ">attention</text>"));
  CHECK(has(svg, ">head 1</text>"));
  CHECK(has(svg, "<title>not → dull: 0.3</title>"));
  CHECK(has(svg, "<title>moment → moment: 0.123456</title>"));
  CHECK(count(svg, "<title>") == 16);
  CHECK(count(svg, "<rect") == 1 + 16 + 32);  // the page, the cells, the legend
  CHECK(has(svg, "prefers-color-scheme: dark"));
  CHECK(has(svg, ">0</text>"));  // the legend's ends
  CHECK(has(svg, ">1</text>"));
  CHECK(svg == heat_map_svg(map));
}

TEST_CASE("heat map SVG: the greatest weight is the darkest cell, the least the lightest") {
  const HeatMap map{"", {"a"}, {"x", "y", "z"}, {{"", {0, 0.2f, 0.4f}}}};
  const std::string svg = heat_map_svg(map);
  CHECK(has(svg, "<rect class=\"q0\" x=\"0\""));
  CHECK(has(svg, "<rect class=\"q16\" x=\"38\""));
  CHECK(has(svg, "<rect class=\"q31\" x=\"76\""));
}

TEST_CASE("heat map colours: lightness falls evenly from pale to dark") {
  double last = 2;
  for (int i = 0; i <= 100; i++) {
    const Rgb c = heat_colour(i / 100.0);
    for (const int channel : {c.red, c.green, c.blue}) CHECK((0 <= channel && channel <= 255));
    // Relative luminance (WCAG), from sRGB.
    const auto linear = [](int v) { return std::pow((v / 255.0 + 0.055) / 1.055, 2.4); };
    const double luminance = 0.2126 * linear(c.red) + 0.7152 * linear(c.green) + 0.0722 * linear(c.blue);
    CHECK(luminance < last);
    last = luminance;
  }
  CHECK(css({255, 0, 10}) == "#ff000a");
}

TEST_CASE("heat map SVG: any bytes, any shape, any number") {
  CHECK(xml_fault(heat_map_svg(odd_map())) == "");
  CHECK(heat_map_svg(odd_map()).size() < 2'000'000);  // the long word is shortened everywhere
  for (const size_t n : {0, 1, 2, 9, 17, 41}) {
    CHECK(xml_fault(heat_map_svg(sample(n, n, 1))) == "");
    CHECK(xml_fault(heat_map_svg(sample(n, 3, 12))) == "");
    CHECK(xml_fault(heat_map_svg(sample(3, n, 0))) == "");
  }
  HeatMap map{"", {"a"}, words("p q r s t u"), {{"", {kNaN, kInfinity, -kInfinity, -1, 3e38f, -3e38f}}}};
  const std::string svg = heat_map_svg(map);
  CHECK(xml_fault(svg) == "");
  CHECK(count(svg, "class=\"q32\"") == 3);  // not finite: grey
  CHECK(has(svg, "a → p: nan"));
  CHECK(has(svg, "a → q: inf"));
  CHECK(!has(svg, "\"nan\""));
  map.panels[0].values.assign(6, kNaN);
  CHECK(xml_fault(heat_map_svg(map)) == "");
  map.panels[0].values.assign(6, 0);
  CHECK(count(heat_map_svg(map), "<rect class=\"q0\"") == 6 + 1);
}

TEST_CASE("heat map SVG: a large map stays a small file") {
  const std::string svg = heat_map_svg(sample(512, 512, 1));
  CHECK(xml_fault(svg) == "");
  CHECK(count(svg, "<title>") == 0);
  CHECK(svg.size() < 6'000'000);
  CHECK(count(svg, "</text>") < 400);  // words that would overlap are left out
}

TEST_CASE("heat map: a panel of the wrong size is named") {
  HeatMap map = sample(3, 4, 2);
  map.panels[1].values.pop_back();
  CHECK_THROWS_WITH_AS(heat_map_svg(map), "heat map: panel \"head 2\" has 11 values, but 3 rows and 4 columns need 12",
                       ShapeError);
  CHECK_THROWS_AS(heat_map_text(map, false), ShapeError);
  CHECK_THROWS_AS(plot_attention({1, 2, 3}, {"a", "b"}), ShapeError);
}

TEST_CASE("plot_attention: one square with the tokens on both axes") {
  const std::string svg = plot_attention({0.2689f, 0.7311f, 0.1192f, 0.8808f}, {"query1", "key2"});
  CHECK(xml_fault(svg) == "");
  CHECK(count(svg, ">query1</text>") == 2);
  CHECK(has(svg, "query1 → key2: 0.7311"));
  CHECK(has(svg, ">0.88</text>"));  // small maps show their numbers
}

TEST_CASE("heat map text: words on both axes, shades between them") {
  const HeatMap map{"", {"not", "dull"}, {"not", "dull"}, {{"head 1", {0, 0.5f, 0.25f, 1}}}};
  CHECK(heat_map_text(map, false) ==
        "     head 1\n"
        "       d\n"
        "     n u\n"
        "     o l\n"
        "     t l\n"
        " not   ++\n"
        "dull ::@@\n"
        "\n"
        "0 [  ..::--==++**##%%@@] 1\n");
  const std::string colour = heat_map_text(map, true);
  CHECK(has(colour, "\x1b[48;5;17m  \x1b[48;5;42m  \x1b[0m\n"));
  CHECK(has(colour, "dull \x1b[48;5;24m  \x1b[48;5;230m  \x1b[0m\n"));
}

TEST_CASE("heat map text: fits in the width, for any words and sizes") {
  for (const int width : {24, 40, 80, 200}) {
    for (const bool colour : {false, true}) {
      CAPTURE(width);
      CHECK(widest_line(heat_map_text(odd_map(), colour, width)) <= width);
      CHECK(widest_line(heat_map_text(sample(3, 100, 2), colour, width)) <= width);
      CHECK(widest_line(heat_map_text(sample(10, 10, 8), colour, width)) <= width);
      CHECK(widest_line(heat_map_text(sample(1, 1, 30), colour, width)) <= width);
    }
  }
  CHECK(widest_line(heat_map_text(sample(2, 2, 2), false, 0)) <= 24);
  CHECK(heat_map_text(sample(0, 0, 0), false) == "a title\n\n0 [  ..::--==++**##%%@@] 1\n");
  CHECK(has(heat_map_text(sample(3, 100, 1), false, 80), "columns 38 to 74"));
  CHECK(has(heat_map_text({"", {"a"}, {"b", "c"}, {{"", {kNaN, 1}}}}, false), "a ??@@\n"));
  CHECK(find_invalid_utf8(heat_map_text(odd_map(), false)) == std::string::npos);
  CHECK(!has(heat_map_text(odd_map(), false), "\x1b"));  // no word can send a sequence to the terminal
}

TEST_CASE("curves: well-formed, with every name, tick and value") {
  const std::string svg =
      curve_svg("built-in reviews", {{"loss", {{"training", {0.69, 0.31, 0.12}}, {"validation", {0.7, 0.4, 0.35}}}},
                                     {"accuracy", {{"training", {0.5, 0.9, 0.97}}}}});
  CHECK(xml_fault(svg) == "");
  for (const char* shown : {"built-in reviews", "loss", "accuracy", "training 0.12", "validation 0.35", "training 0.97",
                            "epoch", "0.2", "0.8", "1.0", "1", "2", "3"}) {
    CAPTURE(shown);
    CHECK(has(svg, text(">", shown, "</text>")));
  }
  CHECK(has(svg, "<title>training, epoch 2: 0.31</title>"));
  CHECK(count(svg, "<circle") == 9);
  CHECK(count(svg, "<path") == 3);
}

TEST_CASE("curves: one point, gaps, a thousand epochs, nothing at all") {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const std::string one = curve_svg("", {{"loss", {{"training", {0.5}}}}});
  CHECK(xml_fault(one) == "");
  CHECK(has(one, "cx=\"200\" cy=\"120\""));  // in the middle

  const std::string gaps = curve_svg("", {{"loss", {{"x", {1, 2, nan, 3, inf, 4, 5, -inf, 1e300}}}}});
  CHECK(xml_fault(gaps) == "");
  CHECK(count(gaps, "<circle") == 5);
  const std::string path = gaps.substr(gaps.find(" d=\"") + 4);
  CHECK(count(path.substr(0, path.find('"')), "M") == 3);

  CurvePanel many{"loss", {{"x", {}}}};
  for (int i = 0; i < 1000; i++) many.curves[0].values.push_back(i == 500 ? 7 : i % 2 ? nan : i);
  CHECK(count(curve_svg("", {many}), "<circle") == 500);  // alone between gaps, each is marked
  many.curves[0].values.assign(1000, 1);
  CHECK(count(curve_svg("", {many}), "<circle") == 0);
  CHECK(has(curve_svg("", {many}), ">200</text>"));

  CHECK(xml_fault(curve_svg("", {})) == "");
  CHECK(xml_fault(curve_svg("<&>", {{"\xff", {}}, {"\x01", {{"<'\">", {}}, {"b", {nan}}}}}, "<x>")) == "");
  for (const double value : {0.0, -0.0, 1e-300, -1e-9, 5.0, 1e9, 9e99, -9e99}) {
    for (const double other : {value, 0.0, 1.0, -9e99, value * (1 + 1e-12)}) {
      const std::string svg = curve_svg("", {{"flat", {{"x", {value, other}}}}});
      CHECK(xml_fault(svg) == "");
      CHECK(count(svg, "</text>") < 30);
      CHECK(!has(svg, "nan"));
      CHECK(!has(svg, "inf"));
    }
  }
}

TEST_CASE("numbers in pictures do not depend on the locale and are short") {
  CHECK(coordinate(1.0) == "1");
  CHECK(coordinate(-0.001) == "0");
  CHECK(coordinate(12.345) == "12.35");
  CHECK(coordinate(100) == "100");
  CHECK(fixed(-0.004, 2) == "0.00");
  CHECK(exact(0.1f) == "0.1");
  CHECK(significant(1.0 / 3, 3) == "0.333");
  CHECK(nice_step(1, 5) == doctest::Approx(0.2));
  CHECK(nice_step(7, 8) == doctest::Approx(1));
  CHECK(nice_step(999, 8) == doctest::Approx(200));
  CHECK(nice_step(1e-7, 5) == doctest::Approx(2e-8));
}

TEST_CASE("terminal: NO_COLOR, TERM=dumb and redirected output are respected") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  CHECK(!is_terminal(ends[1]));
  CHECK(!wants_colour(ends[1]));
  CHECK(terminal_width(ends[1]) == 80);
  {
    Progress bar("epoch 1/5", 10, ends[1]);
    bar.update(5, "loss 0.4");
    bar.finish();
  }
  close(ends[1]);
  char byte;
  CHECK(read(ends[0], &byte, 1) == 0);  // not a byte was printed
  close(ends[0]);

  const PseudoTerminal terminal;
  if (terminal.file < 0) return;
  const Environment term("TERM", "xterm");
  const Environment no_color("NO_COLOR", nullptr);
  CHECK(terminal_width(terminal.file) == 60);
  CHECK(wants_colour(terminal.file));
  {
    const Environment off("NO_COLOR", "1");
    CHECK(is_terminal(terminal.file));
    CHECK(!wants_colour(terminal.file));
  }
  {
    const Environment on("NO_COLOR", "");  // set but empty: does not count
    CHECK(wants_colour(terminal.file));
  }
  const Environment dumb("TERM", "dumb");
  CHECK(!is_terminal(terminal.file));
}

TEST_CASE("progress: the line") {
  CHECK(progress_line("epoch 1/5", 1, 2, "loss 0.432", 12, 80) ==
        "epoch 1/5 [############............]   50%  loss 0.432  0:12 left");
  CHECK(progress_line("epoch 1/5", 0, 10, "", 3, 80) == "epoch 1/5 [........................]    0%");
  CHECK(progress_line("x", 10, 10, "", 3, 80) == "x [########################]  100%  0:00 left");
  CHECK(progress_line("x", 20, 10, "", 3, 80) == "x [########################]  100%  0:00 left");
  CHECK(has(progress_line("x", 3, 0, "", 3, 80), "  0%"));
  for (int width = 0; width < 100; width++) {
    CHECK(display_width(progress_line("epoch 1/5 注意", 3, 7, "loss 0.432  acc 0.81", 100, width)) <= width);
  }
  CHECK(clock_text(7.4) == "0:07");
  CHECK(clock_text(754) == "12:34");
  CHECK(clock_text(3723) == "1:02:03");
  CHECK(clock_text(std::nan("")) == "?");
  CHECK(clock_text(-1) == "?");
}

TEST_CASE("progress: on a terminal it is drawn, not too often, and wiped at the end") {
  PseudoTerminal terminal;
  if (terminal.file < 0) return;
  const Environment term("TERM", "xterm");
  {
    const auto start = std::chrono::steady_clock::now();
    Progress bar("epoch 1/5", 1'000'000, terminal.file);
    for (int step = 0; step < 1000; step++) bar.update(step, "loss 0.4");
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    const std::string first = terminal.shown();
    CHECK(has(first, "\repoch 1/5 ["));
    CHECK(has(first, "loss 0.4"));
    CHECK(count(first, "\r") <= 1 + 10 * passed.count());
    std::this_thread::sleep_for(std::chrono::milliseconds(110));
    bar.update(500'000, "loss 0.3");
    const std::string second = terminal.shown();
    CHECK(has(second, " 50%  loss 0.3"));
    CHECK(widest_line(second.substr(1, second.find('\x1b') - 1)) < 60);
    bar.wipe();
    CHECK(terminal.shown() == "\r\x1b[K");
    bar.update(600'000);
    CHECK(has(terminal.shown(), " 60%"));
  }
  CHECK(terminal.shown() == "\r\x1b[K");
  { Progress never_drawn("x", 10, terminal.file); }
  CHECK(terminal.shown() == "");
}
