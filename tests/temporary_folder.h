// A folder of a test's own, removed with everything in it.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace heed::tests {

struct TemporaryFolder {
  TemporaryFolder() : path((std::filesystem::temp_directory_path() / "heed-test-XXXXXX").string()) {
    if (!mkdtemp(path.data())) throw std::runtime_error("no temporary folder can be made: " + path);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return path + "/" + name; }

  std::string path;
};

}  // namespace heed::tests
