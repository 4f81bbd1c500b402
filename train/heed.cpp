// The heed program: its command line.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <iostream>
#include <sstream>

#include "train/commands.h"
#include "train/startup.h"
#include "train/terminal.h"
#include "train/trainer.h"
#include "train/utf8.h"

using namespace heed;
using namespace heed::train;

namespace {

struct Machine {
  std::string device = "cpu";
  int threads = 0;
};

CLI::Validator not_empty() {
  return CLI::Validator([](const std::string& value) { return value.empty() ? std::string("is empty") : std::string(); }, "");
}

// CLI11 would take "" for 0 and 010 for 8, and its own ranges print their bounds to 300 digits.
template <class T>
CLI::Option* add_whole_number(CLI::App& command, const std::string& name, T& value, int64_t least, int64_t most, const std::string& about = "") {
  const auto read = [&value, name, least, most](const std::string& given) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), number);
    if (error != std::errc() || end != given.data() + given.size() || number < least || number > most) {
      throw UsageError(text(name, " is ", in_quotes(given), ", it must be a whole number from ", least, " to ", most));
    }
    value = static_cast<T>(number);
  };
  return command.add_option_function<std::string>(name, read, about)->default_str(std::to_string(value))->type_name("INT");
}

void add_machine_options(CLI::App& command, Machine& machine) {
  command.add_option("--device", machine.device, "reference, cpu, emulated or cuda")->capture_default_str();
  add_whole_number(command, "--threads", machine.threads, 0, kMostThreads, "0: OMP_NUM_THREADS, or all cores");
}

void add_model_option(CLI::App& command, std::string& model) {
  command.add_option("--model", model, "a .safetensors file of heed train")->required()->check(not_empty());
}

void add_train_options(CLI::App& c, TrainOptions& o) {
  c.add_option("--out", o.out, "folder for models, logs and the curve")->capture_default_str()->check(not_empty());
  c.add_flag("--resume", o.resume, "continue the run in --out, with its options");
  for (const TrainOption& option : train_options()) {
    const bool by_data = option.name == "epochs" && o.epochs == 0;
    c.add_option_function<std::string>("--" + option.name, [&](const std::string& value) { option.set(o, value); }, option.about)
        ->default_str(by_data ? "as many as make 2000 steps, 3 at least" : option.get(o))->type_name(option.kind);
  }
}

// The value of --data, before the rest is parsed: the other defaults depend on it.
std::string data_argument(int argc, char** argv) {
  std::string data = "reviews";
  for (int i = 1; i < argc; i++) {
    const std::string argument = argv[i];
    if (argument == "--data" && i + 1 < argc) data = argv[i + 1];
    if (argument.rfind("--data=", 0) == 0) data = argument.substr(7);
  }
  return data;
}

void run(int argc, char** argv) {
  CLI::App app("heed: a tiny reverse-mode autograd tensor, and the text classifier built on it");
  app.require_subcommand(1);
  app.set_version_flag("--version", "heed 0.1.0");
  Machine machine;

  TrainOptions train = defaults_for(data_argument(argc, argv));
  CLI::App* command = app.add_subcommand("train", "train a text classifier; the last line is its test accuracy");
  add_machine_options(*command, machine);
  add_train_options(*command, train);
  command->add_flag("--graph", train.graph, "cuda, emulated: record each step as a CUDA graph and start it as one");
  command->callback([&, command] {
    prepare(machine.device, machine.threads);
    train.device = machine.device, train.threads = machine.threads;
    if (train.resume) train = as_begun(train, [&](const std::string& name) { return command->count("--" + name) > 0; });
    train_command(train);
  });

  EvaluateCommand evaluate;
  command = app.add_subcommand("evaluate", "accuracy, F1 and confusion table of a model");
  add_machine_options(*command, machine);
  add_model_option(*command, evaluate.model);
  command->add_option("--data", evaluate.data, "reviews, a folder or a file")->required()->check(not_empty());
  add_whole_number(*command, "--batch", evaluate.batch, 1, INT64_MAX);
  command->add_flag("--json", evaluate.json);
  command->callback([&] { prepare(machine.device, machine.threads), evaluate_command(evaluate); });

  PredictCommand predict;
  command = app.add_subcommand("predict", "label and probability of texts");
  add_machine_options(*command, machine);
  add_model_option(*command, predict.model);
  command->add_option("text", predict.texts, "texts; without any, one a line from standard input");
  command->add_flag("--json", predict.json);
  command->callback([&] { prepare(machine.device, machine.threads), predict_command(predict); });

  AttendCommand attend;
  command = app.add_subcommand("attend", "heat map of every head's attention weights");
  add_machine_options(*command, machine);
  add_model_option(*command, attend.model);
  command->add_option("text", attend.texts, "the text, in quotes")->required();
  command->add_option("--svg", attend.svg, "write an SVG picture to this file instead of the terminal")->check(not_empty());
  add_whole_number(*command, "--layer", attend.layer, -1, INT64_MAX, "one layer, from 0; -1: all");
  command->callback([&] { prepare(machine.device, machine.threads), attend_command(attend); });

  BenchCommand bench;
  command = app.add_subcommand("bench", "times of training steps, one JSON line each");
  add_machine_options(*command, machine);
  command->add_option("--only", bench.only, "only the benches whose names begin so")->type_name("NAME")->check(not_empty());
  add_whole_number(*command, "--seconds", bench.options.seconds, 0, 86400, "to measure for, each");
  add_whole_number(*command, "--steps", bench.options.steps, 1, 1000000, "steps at least, each");
  add_whole_number(*command, "--warmup", bench.options.warmup, 0, 1000000, "steps before, which are not measured");
  command->add_flag("--small", bench.options.small, "small sizes, for a slow device");
  command->footer("Benches:\n" + bench_names());
  command->callback([&] { prepare(machine.device, machine.threads), bench_command(bench); });

  command = app.add_subcommand("info", "devices, BLAS, threads, versions and a self-check of the matrix product");
  command->callback([] { info_command(); });

  std::string commands;
  bool known = argc < 2 || argv[1][0] == '-';
  for (const CLI::App* each : app.get_subcommands([](CLI::App*) { return true; })) {
    commands += " " + each->get_name();
    known = known || each->get_name() == argv[1];
  }
  if (!known) throw UsageError(std::string("there is no command \"") + argv[1] + "\"; heed has" + commands);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return void(app.exit(error));
    const std::string command = argc > 1 && argv[1][0] != '-' ? std::string(" ") + argv[1] : "";
    throw UsageError(text(printable(error.what()), "; heed", command, " --help tells what there is"));
  }
}

// A message as one line: where it was found, and lists, stand on lines of their own.
std::string sentence(const std::string& what) {
  std::string out;
  std::istringstream lines(what);
  for (std::string line; std::getline(lines, line);) out += (out.empty() ? "" : "; ") + line.substr(std::min(line.find_first_not_of(' '), line.size()));
  return out;
}

int fail(const std::string& what, int status) {
  std::cerr << "heed: " << printable(sentence(what)) << '\n';
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit shall be an error of the write, not the end of the program
  spin_briefly(argv);
  keep_standard_streams();
  try {
    run(argc, argv);
    flush_output();
    return 0;
  } catch (const UsageError& error) {
    return fail(error.what(), 2);
  } catch (const std::bad_alloc&) {
    return fail("out of memory", 1);
  } catch (const std::exception& error) {
    return fail(error.what(), 1);
  }
}
