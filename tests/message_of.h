#pragma once
#include <string>

namespace heed::tests {

// The message of the E that fn throws, or "(nothing was thrown)"; another exception goes on to the test.
template <class E, class Fn>
std::string message_of(Fn&& fn) {
  try {
    fn();
  } catch (const E& error) { return error.what(); }
  return "(nothing was thrown)";
}

}  // namespace heed::tests
