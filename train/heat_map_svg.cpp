#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "tensor/error.h"
#include "train/plot.h"
#include "train/svg.h"
#include "train/utf8.h"

namespace heed::train {

namespace {

constexpr int kLevels = 32;               // colours of the scale, and one more for what is not finite
constexpr size_t kMostTooltips = 20'000;  // more would make the file slow to show
constexpr double kPageWidth = 1100, kPageMargin = 24, kPanelGap = 28;
constexpr double kSlant = 60;  // degrees, of the words above the columns
constexpr int kLongestWord = 14;

struct Layout {
  double cell = 0, font = 0;
  double left = 0, above = 0, beyond = 0;    // room for row labels, column labels, and the last one's overhang
  double panel_width = 0, panel_height = 0;  // without row labels
  size_t per_row = 1;
  size_t row_step = 1, column_step = 1;  // label every so many
  double top = 0, width = 0, height = 0;
  bool numbers = false;  // room for them in the cells
};

double text_width(int columns, double font) { return 0.66 * font * columns; }

double widest(const std::vector<std::string>& words, double font) {
  int columns = 0;
  for (const std::string& word : words) columns = std::max(columns, display_width(shorten(word, kLongestWord)));
  return text_width(columns, font);
}

double cell_size(size_t n, size_t panels) {
  if (n <= 8) return 38;
  if (n <= 16) return panels > 2 ? 22 : 26;
  if (n <= 40) return 18;
  return std::max(2.0, std::floor(std::min(14.0, 900.0 / static_cast<double>(n))));
}

Layout lay_out(const HeatMap& map) {
  constexpr double radians = kSlant * std::numbers::pi / 180;
  const size_t rows = map.rows.size(), columns = map.columns.size(), panels = map.panels.size();
  Layout at;
  at.cell = cell_size(std::max(rows, columns), panels);
  at.numbers = at.cell >= 38;
  at.font = at.cell >= 18 ? 12 : 10;
  at.row_step = static_cast<size_t>(std::ceil(1.1 * at.font / at.cell));
  at.column_step = static_cast<size_t>(std::ceil(1.1 * at.font / (at.cell * std::sin(radians))));
  at.left = widest(map.rows, at.font) + 8;
  const double label = widest(map.columns, at.font) + 6;
  at.above = label * std::sin(radians) + 10;
  at.beyond = std::max(0.0, label * std::cos(radians) - at.cell / 2) + 4;
  at.panel_width = std::max(at.cell * static_cast<double>(columns), 60.0);
  at.panel_height = 24 + at.above + at.cell * static_cast<double>(rows);

  const double room = kPageWidth - 2 * kPageMargin - at.left - at.beyond + kPanelGap;
  at.per_row = static_cast<size_t>(std::max(1.0, std::floor(room / (at.panel_width + kPanelGap))));
  at.per_row = std::clamp<size_t>(at.per_row, 1, std::max<size_t>(panels, 1));
  const size_t bands = (panels + at.per_row - 1) / at.per_row;
  at.per_row = bands ? (panels + bands - 1) / bands : 1;  // 8 panels, room for 5: two rows of 4
  at.top = kPageMargin + (map.title.empty() ? 0 : 26) + (map.note.empty() ? 0 : 28);
  const double across = static_cast<double>(at.per_row), down = static_cast<double>(bands);
  const double title = std::max(text_width(display_width(map.title), 17), text_width(display_width(map.note), 12));
  at.width = 2 * kPageMargin + std::max({at.left + across * at.panel_width + (across - 1) * kPanelGap + at.beyond,
                                     std::min(title, kPageWidth), 260.0});
  at.height = at.top + down * (at.panel_height + kPanelGap) + 56;
  return at;
}

int level_of(double place) {
  return std::isnan(place) ? kLevels : std::min(kLevels - 1, static_cast<int>(place * kLevels));
}

// On a dark page the scale is turned around, so that weights near 0 recede into the page on both.
std::string heat_colour_rules(bool dark) {
  std::string out;
  for (int level = 0; level < kLevels; level++) {
    const double t = static_cast<double>(level) / (kLevels - 1);
    out += text(".q", level, " { fill: ", css(heat_colour(dark ? 1 - t : t)), " }", level % 4 == 3 ? "\n" : " ");
  }
  out += text(".q", kLevels, dark ? " { fill: #6b7280 }" : " { fill: #b6bcc4 }");
  const char *low = dark ? "#f0f6fc" : "#1f2328", *high = dark ? "#10151c" : "#ffffff";
  return out + text(" .low { fill: ", low, " } .high { fill: ", high, " }\n");
}

std::string rectangle(int level, double x, double y, double width, double height, const std::string& tooltip) {
  const std::string shape = text("<rect class=\"q", level, "\" x=\"", coordinate(x), "\" y=\"", coordinate(y),
                                 "\" width=\"", coordinate(width), "\" height=\"", coordinate(height), '"');
  return tooltip.empty() ? shape + "/>\n" : shape + "><title>" + tooltip + "</title></rect>\n";
}

// Every cell a rectangle that shows its words and number when pointed at.
std::string cells_with_tooltips(const HeatMap& map, const Panel& panel, const ValueScale& scale, const Layout& at) {
  std::string out;
  const double side = at.cell >= 12 ? at.cell - 1 : at.cell;  // a line of paper between larger cells
  for (size_t i = 0; i < map.rows.size(); i++) {
    for (size_t j = 0; j < map.columns.size(); j++) {
      const float value = panel.values[i * map.columns.size() + j];
      const double place = scale.place(value), x = at.cell * static_cast<double>(j),
                   y = at.cell * static_cast<double>(i);
      const std::string words = shorten(map.rows[i], 40) + " \u2192 " + shorten(map.columns[j], 40);
      out += rectangle(level_of(place), x, y, side, side, xml(words) + ": " + exact(value));
      if (!at.numbers || std::isnan(place)) continue;
      const std::string number = fixed(value, 2);
      if (number.size() > 5) continue;
      out += svg_text(place < 0.5 ? "low" : "high", x + side / 2, y + side / 2 + 4, number,
                      "font-size=\"11\" text-anchor=\"middle\" pointer-events=\"none\"");
    }
  }
  return out;
}

// One path for all cells of a level: for maps of many cells.
std::string cells_by_level(const HeatMap& map, const Panel& panel, const ValueScale& scale, const Layout& at) {
  std::array<std::string, kLevels + 1> paths;
  const size_t columns = map.columns.size();
  for (size_t i = 0; i < map.rows.size(); i++) {
    for (size_t j = 0, end; j < columns; j = end) {
      const int level = level_of(scale.place(panel.values[i * columns + j]));
      for (end = j + 1; end < columns && level_of(scale.place(panel.values[i * columns + end])) == level;) end++;
      paths[static_cast<size_t>(level)] += text('M', j, ' ', i, 'h', end - j, "v1H", j, 'z');
    }
  }
  std::string out = text("<g transform=\"scale(", coordinate(at.cell), ")\" shape-rendering=\"crispEdges\">\n");
  for (size_t level = 0; level < paths.size(); level++) {
    if (!paths[level].empty()) out += text("<path class=\"q", level, "\" d=\"", paths[level], "\"/>\n");
  }
  return out + "</g>\n";
}

std::string column_labels(const HeatMap& map, const Layout& at) {
  std::string out;
  for (size_t j = 0; j < map.columns.size(); j += at.column_step) {
    const std::string x = coordinate(at.cell * (static_cast<double>(j) + 0.5) + at.font / 3);
    out += svg_text("ink", 0, 0, shorten(map.columns[j], kLongestWord),
                    text("transform=\"translate(", x, " -6) rotate(-", kSlant, ")\""));
  }
  return out;
}

std::string row_labels(const HeatMap& map, const Layout& at) {
  std::string out;
  for (size_t i = 0; i < map.rows.size(); i += at.row_step) {
    out += svg_text("ink", -8, at.cell * (static_cast<double>(i) + 0.5) + at.font / 3,
                    shorten(map.rows[i], kLongestWord), "text-anchor=\"end\"");
  }
  return out;
}

std::string draw_panel(const HeatMap& map, size_t index, const ValueScale& scale, const Layout& at, bool tooltips) {
  const Panel& panel = map.panels[index];
  const size_t column = index % at.per_row, band = index / at.per_row;
  const double x = kPageMargin + at.left + static_cast<double>(column) * (at.panel_width + kPanelGap);
  const double y = at.top + static_cast<double>(band) * (at.panel_height + kPanelGap) + 24 + at.above;
  std::string out = text("<g transform=\"translate(", coordinate(x), ' ', coordinate(y), ")\" font-size=\"",
                         coordinate(at.font), "\">\n");
  out += svg_text("ink", 0, -at.above - 8, panel.title, "font-size=\"13\" font-weight=\"600\"");
  out += column_labels(map, at);
  if (column == 0) out += row_labels(map, at);
  out += tooltips ? cells_with_tooltips(map, panel, scale, at) : cells_by_level(map, panel, scale, at);
  return out + "</g>\n";
}

std::string draw_legend(const ValueScale& scale, double x, double y) {
  constexpr double step = 6;
  std::string out;
  for (int level = 0; level < kLevels; level++) out += rectangle(level, x + step * level, y, step, 12, "");
  const double middle = (scale.low + scale.high) / 2, width = step * kLevels;
  out += svg_text("soft", x, y + 26, significant(scale.low, 3), "font-size=\"11\"");
  out += svg_text("soft", x + width / 2, y + 26, significant(middle, 3), "font-size=\"11\" text-anchor=\"middle\"");
  out += svg_text("soft", x + width, y + 26, significant(scale.high, 3), "font-size=\"11\" text-anchor=\"end\"");
  return "<g shape-rendering=\"crispEdges\">\n" + out + "</g>\n";
}

}  // namespace

std::string heat_map_svg(const HeatMap& map) {
  check_sizes(map);
  const Layout at = lay_out(map);
  const ValueScale scale = value_scale(map);
  const bool tooltips = map.rows.size() * map.columns.size() * map.panels.size() <= kMostTooltips;

  std::string out = svg_start(at.width, at.height, map.title, heat_colour_rules(false), heat_colour_rules(true));
  if (!map.title.empty())
    out += svg_text("ink", kPageMargin, kPageMargin + 14, map.title, "font-size=\"17\" font-weight=\"600\"");
  if (!map.note.empty()) out += svg_text("soft", kPageMargin, at.top - 14, map.note, "font-size=\"12\"");
  for (size_t i = 0; i < map.panels.size(); i++) out += draw_panel(map, i, scale, at, tooltips);
  out += draw_legend(scale, kPageMargin, at.height - 52);
  return out + "</svg>\n";
}

std::string plot_attention(const std::vector<float>& weights, const std::vector<std::string>& tokens) {
  return heat_map_svg({"attention weights", tokens, tokens, {{"", weights}}, "what each row's word attends to"});
}

}  // namespace heed::train
