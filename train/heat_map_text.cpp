#include <algorithm>
#include <cmath>
#include <string_view>

#include "tensor/error.h"
#include "train/plot.h"
#include "train/svg.h"
#include "train/utf8.h"

namespace heed::train {

namespace {

constexpr int kCell = 2;  // columns of the terminal; about as wide as a line is high
constexpr int kGap = 2;   // between panels
constexpr int kLongestLabel = 14, kTallestLabel = 10;
constexpr std::string_view kShades = " .:-=+*#%@";
constexpr int kHeatColours[] = {17, 18, 24, 30, 36, 42, 114, 156, 193, 230};  // of the 256, from dark to bright

// As much of a panel as fits in the width: some of its columns.
struct Segment {
  const Panel* panel;
  size_t first, last;  // columns [first, last)
  std::string title;
  int width;
};

std::string pad(const std::string& text, int width, bool right_aligned = false) {
  const std::string space(static_cast<size_t>(std::max(0, width - display_width(text))), ' ');
  return right_aligned ? space + text : text + space;
}

// A word's letters, one below the other; marks without width stay with the letter before.
std::vector<std::string> letters(const std::string& word) {
  std::vector<std::string> out;
  for (size_t at = 0; at < word.size();) {
    const CodePoint point = decode_utf8(word, at);
    if (out.empty() || display_width(point.code) > 0) out.emplace_back();
    out.back() += word.substr(at, point.bytes);
    at += point.bytes;
  }
  return out;
}

class TextMap {
 public:
  TextMap(const HeatMap& map, bool colour, int width)
      : map_(map), scale_(value_scale(map)), colour_(colour), width_(width) {
    for (const std::string& word : map.rows) {
      label_width_ = std::max(label_width_, display_width(shorten(word, std::min(kLongestLabel, width / 4))));
    }
    for (const std::string& word : map.columns) columns_.push_back(letters(shorten(word, kTallestLabel)));
  }

  std::string draw() {
    if (!map_.title.empty()) add(shorten(map_.title, width_));
    if (!map_.note.empty()) add(shorten(map_.note, width_));
    if (!out_.empty()) add("");
    std::vector<Segment> strip;
    int used = label_width_ + 1;
    for (const Segment& segment : segments()) {
      if (!strip.empty() && used + kGap + segment.width > width_) {
        draw_strip(strip);
        strip.clear();
        used = label_width_ + 1;
      }
      used += segment.width + (strip.empty() ? 0 : kGap);
      strip.push_back(segment);
    }
    if (!strip.empty()) draw_strip(strip);
    draw_legend();
    return out_;
  }

 private:
  void add(const std::string& line) { out_ += line.substr(0, line.find_last_not_of(' ') + 1) + '\n'; }

  std::vector<Segment> segments() const {
    const size_t room = static_cast<size_t>((width_ - label_width_ - 1) / kCell);
    std::vector<Segment> out;
    for (const Panel& panel : map_.panels) {
      for (size_t first = 0; first < map_.columns.size(); first += room) {
        const size_t last = std::min(first + room, map_.columns.size());
        const int cells = static_cast<int>(last - first) * kCell;
        std::string title = panel.title;
        if (map_.columns.size() > room) title += text(title.empty() ? "" : ", ", "columns ", first + 1, " to ", last);
        const int most = std::min(width_ - label_width_ - 1, std::max(cells, 12));
        title = shorten(title, most);
        out.push_back({&panel, first, last, title, std::max(cells, display_width(title))});
      }
    }
    return out;
  }

  void draw_strip(const std::vector<Segment>& strip) {
    const std::string margin(static_cast<size_t>(label_width_ + 1), ' ');
    const auto join = [&](const std::string& start, const auto& piece) {
      std::string line = start;
      for (size_t i = 0; i < strip.size(); i++) line += std::string(i ? kGap : 0, ' ') + piece(strip[i]);
      add(line);
    };
    join(margin, [](const Segment& s) { return pad(s.title, s.width); });
    const size_t height = label_height(strip);
    for (size_t line = 0; line < height; line++) {
      join(margin, [&](const Segment& s) { return pad(label_line(s, line, height), s.width); });
    }
    for (size_t row = 0; row < map_.rows.size(); row++) {
      const std::string label = shorten(map_.rows[row], label_width_);
      join(pad(label, label_width_, true) + " ", [&](const Segment& s) { return cells(s, row); });
    }
    add("");
  }

  size_t label_height(const std::vector<Segment>& strip) const {
    size_t height = 0;
    for (const Segment& s : strip) {
      for (size_t j = s.first; j < s.last; j++) height = std::max(height, columns_[j].size());
    }
    return height;
  }

  // Line `line` of the words above the columns, which end at the bottom.
  std::string label_line(const Segment& segment, size_t line, size_t height) const {
    std::string out;
    for (size_t j = segment.first; j < segment.last; j++) {
      const auto& word = columns_[j];
      const size_t start = height - word.size();
      out += pad(line < start ? "" : word[line - start], kCell);
    }
    return out;
  }

  std::string cells(const Segment& segment, size_t row) const {
    std::string out;
    int background = -1;
    for (size_t j = segment.first; j < segment.last; j++) {
      const double place = scale_.place(segment.panel->values[row * map_.columns.size() + j]);
      out += std::isnan(place) ? set_background(-1, background) + "??" : shade(place, background);
    }
    out += set_background(-1, background);
    return out + std::string(static_cast<size_t>(segment.width) - (segment.last - segment.first) * kCell, ' ');
  }

  std::string shade(double place, int& background) const {
    if (!colour_)
      return std::string(kCell, kShades[std::min(kShades.size() - 1, static_cast<size_t>(place * kShades.size()))]);
    const size_t level = std::min(std::size(kHeatColours) - 1, static_cast<size_t>(place * std::size(kHeatColours)));
    return set_background(kHeatColours[level], background) + std::string(kCell, ' ');
  }

  // The escape sequence for another background; -1: the terminal's own.
  static std::string set_background(int wanted, int& current) {
    if (wanted == current) return "";
    current = wanted;
    return wanted < 0 ? "\x1b[0m" : text("\x1b[48;5;", wanted, 'm');
  }

  void draw_legend() {
    std::string bar;
    int background = -1;
    const int levels = static_cast<int>(colour_ ? std::size(kHeatColours) : kShades.size());
    for (int level = 0; level < levels; level++) bar += shade((level + 0.5) / levels, background);
    bar += set_background(-1, background);
    const std::string low = significant(scale_.low, 3), high = significant(scale_.high, 3);
    if (static_cast<int>(low.size() + high.size()) + levels * kCell + 4 > width_) return;
    add(low + (colour_ ? " " : " [") + bar + (colour_ ? " " : "] ") + high);
  }

  const HeatMap& map_;
  const ValueScale scale_;
  const bool colour_;
  const int width_;
  int label_width_ = 0;
  std::vector<std::vector<std::string>> columns_;  // the letters of each column's word
  std::string out_;
};

}  // namespace

std::string heat_map_text(const HeatMap& map, bool colour, int width) {
  check_sizes(map);
  return TextMap(map, colour, std::max(width, 24)).draw();
}

}  // namespace heed::train
