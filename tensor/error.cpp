#include "tensor/error.h"

#include <sstream>

#include "tensor/shape.h"

namespace heed {

namespace {

constexpr char kMark = '\1';  // followed by one digit: the operand's index

std::string render(const std::string& text, const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] != kMark) {
      out += text[i];
    } else {
      const size_t index = static_cast<size_t>(text[++i] - '0');
      if (index < names.size() && !names[index].empty()) out += " \"" + names[index] + "\"";
    }
  }
  return out;
}

}  // namespace

Error::Error(std::string text) : text_(std::move(text)), what_(render(text_, {})) {}

void Error::name_operands(const std::vector<std::string>& names) {
  if (!placed_) what_ = render(text_, names);
}

void Error::add_place(Site at, const std::string& module) {
  if (placed_) return;
  placed_ = true;
  what_ += heed::text("\n  at ", at.file, ":", at.line);
  if (!module.empty()) what_ += ", in " + module;
}

std::string operand(int index, const char* label, const Shape& shape) {
  return text(label, " ", shape, kMark, static_cast<char>('0' + index));
}

std::ostream& Printable::print_chars(std::ostream& out, const void* s) { return out << static_cast<const char*>(s); }

std::string join(std::initializer_list<Printable> parts) {
  std::ostringstream out;
  for (const Printable& part : parts) out << part;
  return out.str();
}

}  // namespace heed
