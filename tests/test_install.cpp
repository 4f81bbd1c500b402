// What is installed works from outside the tree: a program with an op, a module and a training loop of its own.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>

#include "tests/temporary_folder.h"

TEST_CASE("a program outside the tree is built by pkg-config after make install, and runs") {
  if (std::getenv("HEED_SANITIZE")) return;  // the library there is compiled with flags that an outside program lacks
  const heed::tests::TemporaryFolder folder;
  const std::string log = folder.path + "/log";
  const auto run = [&](const std::string& command) {
    const int status = std::system(("(" + command + ") >>" + log + " 2>&1").c_str());
    std::ifstream in(log);
    const std::string output((std::istreambuf_iterator<char>(in)), {});
    INFO(command << "\n" << output);
    CHECK(status == 0);
    return output;
  };
  run("env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make install PREFIX=" + folder.path);
  std::filesystem::copy_file("tests/outside/own_op.cpp", folder.path + "/own_op.cpp");
  const std::string flags = "$(PKG_CONFIG_PATH=" + folder.path + "/lib/pkgconfig pkg-config --cflags --libs heed)";
  run("cd " + folder.path + " && g++ -O1 own_op.cpp " + flags + " -o own_op");
  const std::string output = run(folder.path + "/own_op");
  CHECK(output.find("gradcheck of softplus: passed") != std::string::npos);
  CHECK(output.find("below 0.001: yes") != std::string::npos);
}
