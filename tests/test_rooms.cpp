// The walls between the rooms, read off the #include lines.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

namespace fs = std::filesystem;

TEST_CASE("rooms: includes go one way only") {
  // tests and examples may include everything. cuda sees the device contract, the formulas and what they are made of.
  const std::map<std::string, std::set<std::string>> allowed = {{"tensor", {"tensor"}},
                                                                {"autograd", {"autograd", "tensor"}},
                                                                {"nn", {"nn", "autograd", "tensor"}},
                                                                {"train", {"train", "nn", "autograd", "tensor"}},
                                                                {"cuda", {"cuda", "tensor"}}};
  const std::set<std::string> too_high = {"tensor/tensor.h", "tensor/ops.h", "tensor/cpu.h"};  // for cuda
  int includes = 0;
  for (const auto& [room, others] : allowed) {
    REQUIRE_MESSAGE(fs::is_directory(room), "run the tests from the root of the repository");
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(room)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp" && extension != ".cu") continue;
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) {
        const std::string start = "#include \"";
        if (line.rfind(start, 0) != 0) continue;
        const std::string file = line.substr(start.size(), line.find('"', start.size()) - start.size());
        INFO(entry.path().string() << " includes " << file);
        CHECK(fs::exists(file));  // from the root, never relative
        CHECK(others.count(file.substr(0, file.find('/'))) == 1);
        if (room == "cuda") CHECK(too_high.count(file) == 0);
        includes++;
      }
    }
  }
  CHECK(includes > 300);
}

TEST_CASE("rooms: below train/ there is no library but OpenBLAS and CUDA") {
  for (const char* room : {"tensor", "autograd", "nn", "cuda"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(room)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) {
        if (line.rfind("#include <", 0) != 0) continue;
        INFO(entry.path().string() << ": " << line);
        for (const char* foreign : {"CLI", "nlohmann", "doctest"}) CHECK(line.find(foreign) == std::string::npos);
      }
    }
  }
}
