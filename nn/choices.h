// Enums with names, for command lines and files.
#pragma once
#include <string>

#include "tensor/error.h"

namespace heed::nn {

template <class E>
struct Choice {
  E value;
  const char* name;
};

template <class E, size_t N>
std::string name_among(const Choice<E> (&choices)[N], E value) {
  for (const Choice<E>& choice : choices) {
    if (choice.value == value) return choice.name;
  }
  return "?";
}

// UsageError, as in: pooling: there is no "average"; heed has mean, max, class_token.
template <class E, size_t N>
E choice_among(const Choice<E> (&choices)[N], const char* what, const std::string& name) {
  std::string list;
  for (const Choice<E>& choice : choices) {
    if (name == choice.name) return choice.value;
    list += (list.empty() ? "" : ", ") + std::string(choice.name);
  }
  throw UsageError(std::string(what) + ": there is no \"" + name + "\"; heed has " + list);
}

}  // namespace heed::nn
