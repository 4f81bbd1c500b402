// Tensors printed like NumPy prints arrays: aligned, as few digits as tell the values apart, long ones shortened.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>

#include "tensor/tensor.h"

namespace heed {

namespace {

constexpr int64_t kThreshold = 1000;  // more elements than this are shortened to the edges
constexpr int64_t kEdge = 3;
constexpr size_t kLineWidth = 75;

struct Format {
  bool integer = false, scientific = false;
  int digits = 0, width = 0;  // after the point; of a whole number, padded on the left
  size_t exponent_digits = 2;

  std::string operator()(double value) const {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    char buffer[512];
    std::snprintf(buffer, sizeof buffer, integer ? "%.*f" : scientific ? "%#.*e" : "%#.*f", digits, value);
    std::string out = buffer;
    if (scientific) {
      const size_t exponent = out.find('e') + 2;  // behind its sign
      out.insert(exponent, exponent_digits - std::min(exponent_digits, out.size() - exponent), '0');
    } else if (!integer) {
      for (size_t i = out.size() - 1; out[i] == '0'; i--) out[i] = ' ';  // 0.25 and not 0.2500, but as wide
    }
    return out;
  }
};

// NumPy's rules: scientific if the largest is 1e8 or more, the smallest below 1e-4, or their ratio above 1000; then as
// few digits after the point as leave every value the same as with all of `precision`.
Format choose_format(const std::vector<double>& values, bool integer, int precision) {
  Format format;
  format.integer = integer;
  double largest = 0, smallest = INFINITY;
  for (double value : values) {
    const double magnitude = std::fabs(value);
    if (!std::isfinite(value) || magnitude == 0) continue;
    largest = std::max(largest, magnitude);
    smallest = std::min(smallest, magnitude);
  }
  format.scientific = !integer && largest > 0 && (largest >= 1e8 || smallest < 1e-4 || largest / smallest > 1000);
  if (!integer) {
    const Format most{false, format.scientific, precision, 0};
    for (double value : values) {
      if (!std::isfinite(value)) continue;
      std::string digits = most(value);
      digits = digits.substr(digits.find('.') + 1, static_cast<size_t>(precision));
      const size_t last = digits.find_last_not_of("0 ");
      format.digits = std::max(format.digits, last == std::string::npos ? 0 : static_cast<int>(last) + 1);
    }
  }
  if (format.scientific) {
    for (double value : values) {
      const std::string out = format(value);
      if (std::isfinite(value))
        format.exponent_digits = std::max(format.exponent_digits, out.size() - out.find('e') - 2);
    }
  }
  for (double value : values) format.width = std::max(format.width, static_cast<int>(format(value).size()));
  return format;
}

// The positions along an axis that are printed; -1 stands for "...".
std::vector<int64_t> positions(int64_t size, bool shorten) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < size; i++) {
    if (shorten && size > 2 * kEdge && i == kEdge) {
      out.push_back(-1);
      i = size - kEdge;
    }
    out.push_back(i);
  }
  return out;
}

void collect(const Tensor& x, bool shorten, std::vector<double>& values) {
  if (x.rank() == 0) {
    values.push_back(x.item());
  } else if (!shorten) {
    values = x.to_vector<double>();
  } else {
    for (int64_t i : positions(x.size(0), shorten)) {
      if (i >= 0) collect(x.select(0, i), shorten, values);
    }
  }
}

void write(std::string& out, const Tensor& x, bool shorten, const Format& format, size_t indent) {
  if (x.rank() == 0) {
    const std::string value = format(x.item());
    out += std::string(static_cast<size_t>(format.width) - value.size(), ' ') + value;
    return;
  }
  out += '[';
  const bool last_axis = x.rank() == 1;
  size_t column = indent + 1;
  bool first = true;
  for (int64_t i : positions(x.size(0), shorten)) {
    const size_t width = i < 0 ? 3 : static_cast<size_t>(format.width);
    if (!first && !last_axis)
      out += std::string(static_cast<size_t>(x.rank() - 1), '\n') + std::string(indent + 1, ' ');
    if (!first && last_axis) {
      const bool wrap = column + 1 + width > kLineWidth;
      while (wrap && out.back() == ' ') out.pop_back();
      out += wrap ? '\n' + std::string(indent + 1, ' ') : " ";
      column = wrap ? indent + 1 : column + 1;
    }
    if (i < 0) {
      out += "...";
    } else {
      write(out, x.select(0, i), shorten, format, indent + 1);
    }
    column += width;
    first = false;
  }
  out += ']';
}

}  // namespace

std::string Tensor::to_string(int precision) const {
  if (!defined()) return "(undefined tensor)";
  precision = std::clamp(precision, 0, 100);
  const bool shorten = numel() > kThreshold;
  std::vector<double> values;
  collect(*this, shorten, values);
  const Format format = choose_format(values, dtype_ == DType::i32, precision);
  std::string out;
  if (rank() == 0 && format.digits == 0 && !format.scientific && !format.integer && std::isfinite(item()))
    return format(item()) + "0";
  write(out, *this, shorten, format, 0);
  return out;
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << tensor.to_string(); }

}  // namespace heed
