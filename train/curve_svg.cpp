#include <algorithm>
#include <cmath>
#include <limits>

#include "tensor/error.h"
#include "train/plot.h"
#include "train/svg.h"
#include "train/utf8.h"

namespace heed::train {

namespace {

constexpr double kWidth = 400, kHeight = 240;  // of the area the curves are drawn in
constexpr double kLeft = 62, kRight = 28, kBelow = 48, kEdge = 12, kLine = 18;
constexpr size_t kMostDots = 40;  // more epochs: a line alone

constexpr const char* kCurveColours[][2] = {{"#0969da", "#58a6ff"}, {"#d4580a", "#f0883e"}, {"#1a7f37", "#3fb950"},
                                       {"#8250df", "#bc8cff"}, {"#bf3989", "#f778ba"}, {"#7d6608", "#d6b93c"}};
constexpr size_t kColourCount = std::size(kCurveColours);

// NaN, infinity and what is as good as infinite leave a gap.
bool can_draw(double value) { return std::fabs(value) < 1e100; }

struct Axis {
  double low, high, step;
  double place(double value) const { return (value - low) / (high - low); }  // 0..1
};

// From the least to the greatest value, widened to whole steps.
Axis value_axis(const CurvePanel& panel) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const Curve& curve : panel.curves) {
    for (const double value : curve.values) {
      if (!can_draw(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  if (low > high) return {0, 1, 0.2};
  const double least = std::max(1e-9, 1e-6 * std::max(std::fabs(low), std::fabs(high)));
  if (high - low < least) {  // a flat curve
    const double spread = low == 0 ? 1 : 0.1 * std::fabs(low);
    low -= spread;
    high += spread;
  }
  const double step = nice_step(high - low, 5);
  return {step * std::floor(low / step), step * std::ceil(high / step), step};
}

Axis epoch_axis(const std::vector<CurvePanel>& panels) {
  size_t epochs = 1;
  for (const CurvePanel& panel : panels) {
    for (const Curve& curve : panel.curves) epochs = std::max(epochs, curve.values.size());
  }
  if (epochs == 1) return {0.5, 1.5, 1};
  const double last = static_cast<double>(epochs);
  return {1, last, std::max(1.0, nice_step(last - 1, 8))};
}

std::string tick_text(double value, double step) {
  if (step < 1e-5 || std::fabs(value) >= 1e6) return significant(value, 4);
  return fixed(value, static_cast<int>(std::max(0.0, -std::floor(std::log10(step) + 1e-9))));
}

std::string curve_colour_rules(bool dark) {
  std::string out;
  for (size_t i = 0; i < kColourCount; i++) {
    out += text(".line", i, " { stroke: ", kCurveColours[i][dark], " } .dot", i, " { fill: ", kCurveColours[i][dark], " }\n");
  }
  return out;
}

std::string line(const std::string& css_class, double x1, double y1, double x2, double y2) {
  return text("<line class=\"", css_class, "\" x1=\"", coordinate(x1), "\" y1=\"", coordinate(y1), "\" x2=\"",
              coordinate(x2), "\" y2=\"", coordinate(y2), "\"/>\n");
}

std::string draw_axes(const Axis& x, const Axis& y, const std::string& x_name) {
  std::string out;
  const int ticks = static_cast<int>(std::lround((y.high - y.low) / y.step));
  for (int i = 0; i <= ticks; i++) {
    const double value = y.low + i * y.step, at = kHeight * (1 - y.place(value));
    out += line("grid", 0, at, kWidth, at);
    out += svg_text("soft", -8, at + 4, tick_text(value, y.step), "text-anchor=\"end\"");
  }
  for (double epoch = x.step; epoch <= x.high; epoch += x.step) {
    const double at = kWidth * x.place(epoch);
    out += line("grid", at, kHeight, at, kHeight + 5);
    out += svg_text("soft", at, kHeight + 19, tick_text(epoch, x.step), "text-anchor=\"middle\"");
  }
  return out + svg_text("soft", kWidth / 2, kHeight + 38, x_name, "text-anchor=\"middle\"");
}

// A path that is interrupted where a value is missing. Few points are marked and tell their value when pointed at; one
// with no neighbour is always marked, since no line shows it.
std::string draw_curve(const Curve& curve, size_t colour, const Axis& x, const Axis& y, const std::string& x_name) {
  const auto& values = curve.values;
  const auto there = [&](size_t i) { return i < values.size() && can_draw(values[i]); };
  std::string path, dots;
  for (size_t i = 0; i < values.size(); i++) {
    if (!there(i)) continue;
    const double epoch = static_cast<double>(i + 1);
    const std::string at_x = coordinate(kWidth * x.place(epoch)), at_y = coordinate(kHeight * (1 - y.place(values[i])));
    const bool starts = !there(i - 1);  // i = 0: i - 1 is past the end
    path += text(starts ? 'M' : 'L', at_x, ' ', at_y);
    if (values.size() > kMostDots && !(starts && !there(i + 1))) continue;
    dots +=
        text("<circle class=\"dot", colour, "\" cx=\"", at_x, "\" cy=\"", at_y, "\" r=\"3\"><title>", xml(curve.name),
             ", ", xml(x_name), ' ', i + 1, ": ", significant(values[i], 6), "</title></circle>\n");
  }
  return text("<path class=\"line", colour, "\" fill=\"none\" stroke-width=\"", values.size() > kMostDots ? "1.5" : "2",
              "\" stroke-linejoin=\"round\" d=\"", path, "\"/>\n") +
         dots;
}

struct Legend {
  std::string svg;
  double height = 0;
};

// One entry a curve, as many on a line as fit: a dash in its colour, its name and its last value.
Legend draw_legend(const CurvePanel& panel) {
  Legend legend;
  double x = 0;
  for (size_t i = 0; i < panel.curves.size(); i++) {
    const Curve& curve = panel.curves[i];
    std::string name = shorten(curve.name, 30);
    if (!curve.values.empty()) name += " " + significant(curve.values.back(), 4);
    const double width = 42 + 7.2 * display_width(name);
    if (x > 0 && x + width > kWidth) x = 0, legend.height += kLine;
    const double y = legend.height + kLine;
    legend.svg += text("<g stroke-width=\"3\">", line(text("line", i % kColourCount), x, y - 4, x + 18, y - 4), "</g>");
    legend.svg += svg_text("ink", x + 24, y, name);
    x += width;
  }
  legend.height += kLine;
  return legend;
}

}  // namespace

std::string curve_svg(const std::string& title, const std::vector<CurvePanel>& panels, const std::string& x_name) {
  std::vector<Legend> legends;
  double legend_height = 0;
  for (const CurvePanel& panel : panels) {
    legends.push_back(draw_legend(panel));
    legend_height = std::max(legend_height, legends.back().height);
  }
  const double top = kEdge + (title.empty() ? 0 : 34), above = 20 + legend_height + 18;
  const double panel_width = kLeft + kWidth + kRight;
  const double width = 2 * kEdge + panel_width * static_cast<double>(std::max<size_t>(panels.size(), 1));
  const Axis x = epoch_axis(panels);

  std::string out =
      svg_start(width, top + above + kHeight + kBelow + kEdge, title, curve_colour_rules(false), curve_colour_rules(true));
  if (!title.empty()) out += svg_text("ink", 2 * kEdge, kEdge + 20, title, "font-size=\"17\" font-weight=\"600\"");
  for (size_t i = 0; i < panels.size(); i++) {
    const Axis y = value_axis(panels[i]);
    out += text("<g font-size=\"12\" transform=\"translate(",
                coordinate(kEdge + kLeft + panel_width * static_cast<double>(i)), ' ', coordinate(top), ")\">\n");
    out += svg_text("ink", 0, 18, panels[i].title, "font-size=\"13\" font-weight=\"600\"");
    out += text("<g transform=\"translate(0 24)\">\n", legends[i].svg, "</g>\n");
    out += text("<g transform=\"translate(0 ", coordinate(above), ")\">\n", draw_axes(x, y, x_name));
    for (size_t j = 0; j < panels[i].curves.size(); j++) {
      out += draw_curve(panels[i].curves[j], j % kColourCount, x, y, x_name);
    }
    out += "</g>\n</g>\n";
  }
  return out + "</svg>\n";
}

}  // namespace heed::train
