#include <cstdio>

#include "tensor/error.h"
#include "train/bench.h"
#include "train/commands.h"
#include "train/json.h"
#include "train/terminal.h"

namespace heed::train {

namespace {

// The benches whose names begin as wanted: "attention" stands for all of its lengths.
std::vector<Bench> chosen(const std::vector<std::string>& wanted) {
  const auto begins = [](const Bench& bench, const std::string& with) { return bench.name.rfind(with, 0) == 0; };
  std::string names;
  for (const Bench& bench : benches()) names += " " + bench.name;
  for (const std::string& name : wanted) {
    bool known = false;
    for (const Bench& bench : benches()) known = known || begins(bench, name);
    if (!known) throw UsageError("--only: there is no bench \"" + name + "\"; heed has" + names);
  }
  std::vector<Bench> out;
  for (const Bench& bench : benches()) {
    bool taken = wanted.empty();
    for (const std::string& name : wanted) taken = taken || begins(bench, name);
    if (taken) out.push_back(bench);
  }
  return out;
}

}  // namespace

std::string bench_names() {
  std::string out;
  for (const Bench& bench : benches())
    out += "  " + bench.name + std::string(16 - bench.name.size(), ' ') + bench.about + "\n";
  return out;
}

void bench_command(const BenchCommand& command) {
  for (const Bench& bench : chosen(command.only)) {
    std::printf("%s\n", to_json(measure(bench, command.options)).c_str());
    flush_output();
  }
}

}  // namespace heed::train
