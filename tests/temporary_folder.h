// A folder of a test's own, removed with everything in it.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

namespace heed::tests {

struct TemporaryFolder {
  TemporaryFolder() {
    char name[] = "/tmp/heed-test-XXXXXX";
    if (mkdtemp(name)) path = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;

  std::string path;
};

}  // namespace heed::tests
