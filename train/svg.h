// What the pictures of plot.h share: text and numbers for SVG, and colours.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "train/plot.h"

namespace heed::train {

// Printable and with <, >, &, quotes escaped: safe in an element and in an attribute, whatever the bytes.
std::string xml(std::string_view text);

// Numbers are written the same under every locale.
std::string coordinate(double value);  // at most two decimals
std::string fixed(double value, int decimals);
std::string significant(double value, int digits);  // "0.0123", "1.2e-07"
std::string exact(float value);                     // the shortest text that reads back as the same float

// <text class="..." x="..." y="..." EXTRA>CONTENT</text>
std::string svg_text(const std::string& css_class, double x, double y, std::string_view content,
                     const std::string& extra = "");

// <svg> with a title, background and the classes paper, ink (text), soft (lesser text) and grid (lines), for light and
// dark pages. `light` and `dark` are further rules for each.
std::string svg_start(double width, double height, const std::string& title, const std::string& light,
                      const std::string& dark);

struct Rgb {
  int red, green, blue;  // 0..255
};

std::string css(Rgb colour);  // "#rrggbb"

// From pale yellow (t = 0) over teal to dark blue (t = 1): lightness falls evenly, as the eye sees it.
Rgb heat_colour(double t);

// Where a value lies between the least and the greatest of a heat map.
struct ValueScale {
  double low = 0, high = 1;
  double place(float value) const;  // 0..1; NaN if the value is not finite
};

ValueScale value_scale(const HeatMap& map);
void check_sizes(const HeatMap& map);  // ShapeError

// A step of 1, 2 or 5 times a power of ten that cuts `range` into at most `most` parts.
double nice_step(double range, int most);

}  // namespace heed::train
