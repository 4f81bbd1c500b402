// Where in the user's source a call was made; it travels into error messages and the tape.
#pragma once

namespace heed {

struct Site {
  const char* file = "";
  int line = 0;

  // As a default argument (`Site at = Site::here()`) it names the caller's line. std::source_location is not
  // usable with clang 14, which the fuzzers and clang-tidy need.
  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};

}  // namespace heed
