// Pictures without a library: heat maps of attention weights and learning curves, as SVG or for the terminal.
#pragma once
#include <string>
#include <vector>

namespace heed::train {

// One square of a heat map; usually one head.
struct Panel {
  std::string title;
  std::vector<float> values;  // (rows, columns)
};

// Panels that share their words and their colour scale. Words may hold any bytes and have any length.
struct HeatMap {
  std::string title;
  std::vector<std::string> rows, columns;  // row i attends to column j
  std::vector<Panel> panels;
  std::string note = {};  // a line under the title
};

// An SVG picture for light and dark pages: panels side by side and in rows, words on both axes, and the exact number of
// each cell when pointed at (left out above 20,000 cells). The scale runs from 0, or the least value if that is
// negative, to the greatest one; values that are not finite are grey. ShapeError: a panel's size is not rows x columns.
std::string heat_map_svg(const HeatMap& map);

// The same for a terminal of `width` columns (at least 24). With `colour` in the 256 colours that every terminal has,
// else in shades of " .:-=+*#%@".
std::string heat_map_text(const HeatMap& map, bool colour, int width = 80);

// The articles' picture: weights (T, T) of T tokens, row i the weights that token i gives to each token.
std::string plot_attention(const std::vector<float>& weights, const std::vector<std::string>& tokens);

// values[i] belongs to epoch i + 1; a value that is not finite leaves a gap.
struct Curve {
  std::string name;
  std::vector<double> values;
};

// Curves that share an axis: the loss of training and validation, say.
struct CurvePanel {
  std::string title;
  std::vector<Curve> curves;
};

// An SVG picture for light and dark pages, panels side by side, with the last value of each curve in its legend.
std::string curve_svg(const std::string& title, const std::vector<CurvePanel>& panels,
                      const std::string& x_name = "epoch");

}  // namespace heed::train
