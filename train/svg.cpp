#include "train/svg.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>

#include "tensor/error.h"
#include "train/utf8.h"

namespace heed::train {

namespace {

template <class... Format>
std::string digits(Format... format) {
  char buffer[400];  // 1e308 in fixed notation has 309 digits
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, format...);
  return error == std::errc() ? std::string(buffer, end) : "?";
}

// Oklab to sRGB: https://bottosson.github.io/posts/oklab/
Rgb from_oklab(double lightness, double a, double b) {
  const double l = std::pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
  const double m = std::pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
  const double s = std::pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
  const auto channel = [](double linear) {
    const double x = std::clamp(linear, 0.0, 1.0);
    const double gamma = x <= 0.0031308 ? 12.92 * x : 1.055 * std::pow(x, 1 / 2.4) - 0.055;
    return static_cast<int>(std::lround(255 * gamma));
  };
  return {channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
          channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
          channel(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

}  // namespace

std::string xml(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string fixed(double value, int decimals) {
  const std::string out = digits(value, std::chars_format::fixed, decimals);
  return out.find_first_not_of("-0.") == out.npos && out[0] == '-' ? out.substr(1) : out;  // no "-0.00"
}

std::string coordinate(double value) {
  std::string out = fixed(value, 2);
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out;
}

std::string significant(double value, int number_of_digits) {
  return digits(value, std::chars_format::general, number_of_digits);
}

std::string exact(float value) { return digits(value); }

std::string svg_text(const std::string& css_class, double x, double y, std::string_view content,
                     const std::string& extra) {
  return text("<text class=\"", css_class, "\" x=\"", coordinate(x), "\" y=\"", coordinate(y), '"',
              extra.empty() ? "" : " ", extra, '>', xml(content), "</text>\n");
}

std::string svg_start(double width, double height, const std::string& title, const std::string& light,
                      const std::string& dark) {
  const std::string w = coordinate(width), h = coordinate(height);
  return text(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", w, "\" height=\"", h, "\" viewBox=\"0 0 ", w, ' ', h,
      "\" role=\"img\" aria-label=\"", xml(title), "\"\n",
      "  font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif\">\n"
      "<style>\n.paper { fill: #ffffff } .ink { fill: #1f2328 } .soft { fill: #59636e } .grid { stroke: #d8dee4 }\n",
      light, "@media (prefers-color-scheme: dark) {\n",
      ".paper { fill: #15191f } .ink { fill: #e6edf3 } .soft { fill: #9aa4af } .grid { stroke: #323943 }\n", dark,
      "}\n</style>\n<rect class=\"paper\" width=\"", w, "\" height=\"", h, "\"/>\n");
}

std::string css(Rgb colour) {
  std::string out = "#";
  for (const int channel : {colour.red, colour.green, colour.blue}) {
    out += "0123456789abcdef"[channel / 16];
    out += "0123456789abcdef"[channel % 16];
  }
  return out;
}

Rgb heat_colour(double t) {
  const double lightness = 0.98 - 0.70 * t;
  const double chroma = 0.02 + 0.09 * std::sin(std::numbers::pi * (0.05 + 0.8 * t));
  const double hue = (110 + 160 * t) * std::numbers::pi / 180;
  return from_oklab(lightness, chroma * std::cos(hue), chroma * std::sin(hue));
}

double ValueScale::place(float value) const {
  if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
  return std::clamp((value - low) / (high - low), 0.0, 1.0);
}

ValueScale value_scale(const HeatMap& map) {
  ValueScale scale{0, 0};
  for (const Panel& panel : map.panels) {
    for (const float value : panel.values) {
      if (!std::isfinite(value)) continue;
      scale.low = std::min(scale.low, static_cast<double>(value));
      scale.high = std::max(scale.high, static_cast<double>(value));
    }
  }
  if (scale.low == scale.high) scale.high = 1;
  return scale;
}

void check_sizes(const HeatMap& map) {
  for (const Panel& panel : map.panels) {
    const size_t rows = map.rows.size(), columns = map.columns.size();
    if (panel.values.size() != rows * columns) {
      throw ShapeError(text("heat map: panel ", in_quotes(panel.title), " has ", panel.values.size(), " values, but ",
                            rows, " rows and ", columns, " columns need ", rows * columns));
    }
  }
}

double nice_step(double range, int most) {
  const double power = std::pow(10, std::floor(std::log10(range / most)));
  for (const double factor : {1, 2, 5}) {
    if (range / (factor * power) <= most) return factor * power;
  }
  return 10 * power;
}

}  // namespace heed::train
