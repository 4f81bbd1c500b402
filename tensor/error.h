// Errors: one family, one form. The first line says the op, the values and the rule; the second says where.
//
//   matmul: inner sizes differ: a (2, 3) "x" and b (4, 5) "fc.weight"; a's last must equal b's second to last
//     at shapes.cpp:10, in encoder.layers.0.fc
#pragma once
#include <exception>
#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

#include "tensor/site.h"

namespace heed {

class Shape;

class Error : public std::exception {
 public:
  explicit Error(std::string text);
  const char* what() const noexcept override { return what_.c_str(); }

  // The first of these to be called wins: the innermost place knows best.
  void name_operands(const std::vector<std::string>& names);  // names[i] is the name of operand i, or ""
  void add_place(Site at, const std::string& module);

 private:
  std::string text_;  // still holds the marks that operand() left
  std::string what_;
  bool placed_ = false;
};

struct ShapeError : Error { using Error::Error; };    // sizes, ranks, axes
struct DTypeError : Error { using Error::Error; };    // an element type that an op cannot take
struct IndexError : Error { using Error::Error; };    // an index outside its range
struct DeviceError : Error { using Error::Error; };   // a device that is absent, full, or differs
struct FileError : Error { using Error::Error; };     // files and their contents
struct NumericError : Error { using Error::Error; };  // NaN, infinity, a BLAS that computes wrongly
struct UsageError : Error { using Error::Error; };    // a call in the wrong state (backward twice, in-place after saving)

// "a (2, 3)" plus an invisible mark after which the operand's name is put, once a caller that knows names does so.
std::string operand(int index, const char* label, const Shape& shape);

// What text() takes: anything that can be printed to a stream. By its address, so that no call is a template of its own.
class Printable {
 public:
  Printable(const char* s) : value_(s), print_(print_chars) {}
  template <class T>
  Printable(const T& value) : value_(&value), print_(print_value<T>) {}
  friend std::ostream& operator<<(std::ostream& out, const Printable& x) { return x.print_(out, x.value_); }

 private:
  static std::ostream& print_chars(std::ostream& out, const void* s);
  template <class T>
  static std::ostream& print_value(std::ostream& out, const void* value) {
    return out << *static_cast<const T*>(value);
  }
  const void* value_;
  std::ostream& (*print_)(std::ostream&, const void*);
};
std::string join(std::initializer_list<Printable> parts);

// Joins its arguments: text("softmax: axis ", axis, " is outside rank ", rank).
template <class... Parts>
std::string text(const Parts&... parts) {
  return join({Printable(parts)...});
}

}  // namespace heed
