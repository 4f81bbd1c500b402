// The heed program as a user meets it: exit statuses, what goes where, and one sentence for every mistake.
#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "tests/temporary_folder.h"

namespace {

const heed::tests::TemporaryFolder& folder() {
  static const heed::tests::TemporaryFolder it;
  return it;
}

struct Outcome {
  int status;
  std::string out, err;
};

std::string read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The program beside this test, with the arguments as a shell reads them; before it perhaps "env A=B".
Outcome run_heed(const std::string& arguments, const std::string& before = "") {
  const std::string program = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "heed").string();
  const std::string out = folder().path + "/out", err = folder().path + "/err";
  const int status = std::system((before + " " + program + " " + arguments + " >" + out + " 2>" + err).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(out), read(err)};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  const size_t begin = text.rfind('\n', end);
  return text.substr(begin + 1, end - begin);
}

// A small model, trained once for all the tests here.
const std::string& model() {
  static const std::string path = [] {
    const Outcome run = run_heed("train --limit 200 --epochs 1 --embed 16 --hidden 16 --heads 2 --ffn 16 --threads 1 --out " + folder().path + "/run");
    INFO(run.err);
    REQUIRE(run.status == 0);
    REQUIRE(last_line(run.out).rfind("test accuracy 0.", 0) == 0);
    REQUIRE(run.err.empty());  // no progress bar where stderr is no terminal
    return folder().path + "/run/best.safetensors";
  }();
  return path;
}

}  // namespace

TEST_CASE("program: predict answers from arguments and from standard input, as text and as JSON") {
  Outcome run = run_heed("predict --model " + model() + " 'A fine film.' ''");
  CHECK(run.status == 0);
  CHECK(std::count(run.out.begin(), run.out.end(), '\n') == 2);
  CHECK(contains(run.out, "A fine film."));
  std::ofstream(folder().path + "/lines") << "A fine film.\n\xff \"quoted\"\n";
  run = run_heed("predict --json --model " + model() + " <" + folder().path + "/lines");
  CHECK(run.status == 0);
  CHECK(std::count(run.out.begin(), run.out.end(), '\n') == 2);
  CHECK(contains(run.out, "\"label\":"));
  CHECK(contains(run.out, "\\\"quoted\\\""));
  run = run_heed("predict --model " + model() + " </dev/null");
  CHECK(run.status == 0);
  CHECK(run.out.empty());
}

TEST_CASE("program: evaluate prints a table, or JSON") {
  Outcome run = run_heed("evaluate --data reviews --model " + model());
  CHECK(run.status == 0);
  CHECK(contains(run.out, "macro F1"));
  CHECK(last_line(run.out).rfind("accuracy 0.", 0) == 0);
  run = run_heed("evaluate --json --data reviews --model " + model());
  CHECK(contains(run.out, "\"macro_f1\":"));
}

TEST_CASE("program: attend draws in the terminal and as SVG, with the words on the axes") {
  Outcome run = run_heed("attend --model " + model() + " 'not a dull film'");
  CHECK(run.status == 0);
  CHECK(contains(run.out, "head 1"));
  CHECK(contains(run.out, "film"));
  CHECK_FALSE(contains(run.out, "\033["));  // no colours where stdout is no terminal
  const std::string svg = folder().path + "/heads.svg";
  run = run_heed("attend --model " + model() + " 'not a dull film' --svg " + svg);
  CHECK(run.status == 0);
  CHECK(contains(read(svg), "<svg"));
  CHECK(contains(read(svg), ">film<"));
  run = run_heed("attend --layer 7 --model " + model() + " x");
  CHECK(run.status == 2);
  CHECK(contains(run.err, "layer 7"));
}

TEST_CASE("program: info lists the devices and checks the BLAS") {
  const Outcome run = run_heed("info");
  CHECK(run.status == 0);
  for (const char* part : {"reference", "cpu", "threads", "OpenBLAS", "self-check"}) {
    INFO(part);
    CHECK(contains(run.out, part));
  }
}

TEST_CASE("program: bench prints a JSON line for each figure") {
  Outcome run = run_heed("bench --small --seconds 0 --steps 3 --warmup 1 --threads 1");
  INFO(run.out << run.err);
  CHECK(run.status == 0);
  CHECK(run.err.empty());
  std::vector<std::string> names;
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json figure = nlohmann::json::parse(line);
    names.push_back(figure.at("name"));
    CHECK(figure.at("device") == "cpu");
    CHECK(figure.at("threads") == 1);
    CHECK(figure.at("small") == true);
    CHECK(figure.at("steps") == 3);
    CHECK(figure.at("min_ms") > 0);
    CHECK(figure.at("median_ms") >= figure.at("min_ms"));
    CHECK(figure.at("peak_bytes") > 1000);
  }
  CHECK(names == std::vector<std::string>{"classifier", "encoder", "attention-512", "attention-1024", "attention-2048"});
  run = run_heed("bench --small --seconds 0 --steps 1 --warmup 0 --device emulated --only attention-5 classifier");
  CHECK(run.status == 0);
  CHECK(std::count(run.out.begin(), run.out.end(), '\n') == 2);
  CHECK(contains(run.out, "\"name\":\"classifier\",\"device\":\"emulated\""));
  run = run_heed("bench --help");
  CHECK(contains(run.out, "--seconds INT=5"));
  CHECK(contains(run.out, "  attention-2048 "));
}

TEST_CASE("program: --resume goes on where a run ended") {
  const std::string out = folder().path + "/resumed";
  CHECK(run_heed("train --limit 100 --embed 8 --hidden 8 --heads 2 --ffn 8 --threads 1 --epochs 1 --out " + out).status == 0);
  Outcome run = run_heed("train --resume --threads 1 --epochs 2 --out " + out);  // with the options it was begun with
  CHECK(run.status == 0);
  CHECK(contains(run.out, "epoch  2"));
  CHECK_FALSE(contains(run.out, "epoch  1 "));
  for (const char* other : {"--hidden 16", "--vocab 9", "--dropout 0.3", "--norm none", "--seed 2", "--limit 99"}) {
    run = run_heed("train --resume --threads 1 --epochs 3 " + std::string(other) + " --out " + out);
    INFO(other << run.err);
    CHECK(run.status == 2);
    CHECK(contains(run.err, "was trained with "));
  }
}

TEST_CASE("program: wrong usage is 2, failed work is 1, each with one sentence on stderr") {
  struct Row {
    const char* arguments;
    int status;
    const char* says;
  };
  const std::string empty = folder().path + "/empty.tsv", text_file = folder().path + "/text.safetensors";
  std::ofstream(empty).close();
  std::ofstream(text_file) << "this is not a model";
  const std::string no_data = "train --data " + folder().path + "/nothing", no_lines = "train --data " + empty;
  const std::string not_a_model = "predict x --model " + text_file, no_folder = "train --limit 10 --out " + empty + "/run";
  const std::string no_svg = "attend x --svg '' --model " + model(), no_quotes = "attend --threads 1 the film is not good --model " + model() + " x";
  std::ofstream(folder().path + "/two.tsv") << "good film\tyes\nbad film\tno\nfine\tyes\ndull\tno\n";
  const Outcome tiny = run_heed("train --epochs 2 --patience 1 --batch 9223372036854775807 --threads 1 --data " + folder().path + "/two.tsv --out " + folder().path + "/two");
  CHECK(tiny.status == 0);
  CHECK(contains(tiny.out, "best epoch: 2"));  // there are no validation texts
  CHECK_FALSE(contains(tiny.out, "validation loss"));
  CHECK(last_line(tiny.out) == "there are no test texts, so there is no test accuracy");
  const std::string other_classes = "evaluate --threads 1 --data reviews --model " + folder().path + "/two/best.safetensors";
  const std::vector<Row> rows = {{"", 2, "A subcommand is required"},
                                 {"fly", 2, "fly"},
                                 {"train --epochs 0", 2, "--epochs"},
                                 {"train --positions spiral", 2, "spiral"},
                                 {"train --heads 3", 2, "heads"},
                                 {"train --device toaster", 1, "toaster"},
                                 {"predict", 2, "--model"},
                                 {"predict --model /nowhere/x x", 1, "/nowhere/x"},
                                 {not_a_model.c_str(), 1, "text.safetensors"},
                                 {no_data.c_str(), 1, "nothing"},
                                 {no_lines.c_str(), 1, "empty.tsv"},
                                 {no_folder.c_str(), 1, "empty.tsv/run"},
                                 {"train --resume --out /nowhere", 1, "/nowhere"},
                                 {"train --bogus", 2, "--bogus"},
                                 {"train --heads", 2, "--heads"},
                                 {"train --out ''", 2, "--out"},
                                 {"train --data ''", 2, "--data"},
                                 {"train --seed ''", 2, "--seed is \"\""},
                                 {"train --seed -1", 2, "--seed is \"-1\""},
                                 {"train --seed 99999999999999999999", 2, "to 18446744073709551615"},
                                 {"train --residual 2", 2, "--residual is \"2\", it must be 1 or 0"},
                                 {"train --lr inf", 2, "--lr"},
                                 {"train --max-length 9223372036854775807", 2, "--max-length"},
                                 {"train --threads 5000", 2, "--threads"},
                                 {"predict --model ''", 2, "--model"},
                                 {"bench --only transformer", 2, "there is no bench \"transformer\"; heed has classifier encoder attention-512 attention-1024 attention-2048"},
                                 {"bench --only ''", 2, "--only"},
                                 {"bench --steps 0", 2, "--steps is \"0\""},
                                 {"bench --seconds 1.5", 2, "--seconds is \"1.5\""},
                                 {"bench encoder", 2, "encoder"},
                                 {"bench --device toaster", 1, "toaster"},
                                 {no_svg.c_str(), 2, "--svg"},
                                 {no_quotes.c_str(), 2, "was given 6; a text of several words needs quotes"},
                                 {other_classes.c_str(), 1, "is not one of the classes \"no\", \"yes\""}};
  for (const Row& row : rows) {
    const Outcome run = run_heed(row.arguments);
    INFO(row.arguments << "\n" << run.err);
    CHECK(run.status == row.status);
    CHECK(contains(run.err, row.says));
    CHECK(run.err.rfind("heed: ", 0) == 0);
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  }
  for (const char* command : {"", "train", "evaluate", "predict", "attend", "bench", "info"}) CHECK(run_heed(std::string(command) + " --help").status == 0);
}

TEST_CASE("program: output that cannot be written, input that cannot be read and memory that is not there are errors") {
  const std::string err = folder().path + "/err";
  const std::string predict = "predict --threads 1 --model " + model();
  const auto refused = [&](const std::string& arguments, const std::string& redirection, const char* says, const std::string& before = "") {
    const std::string program = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "heed").string();
    const int status = std::system((before + program + " " + arguments + " " + redirection + " 2>" + err).c_str());
    INFO(arguments << " " << redirection << "\n" << read(err));
    CHECK(WEXITSTATUS(status) == 1);
    CHECK(last_line(read(err)).rfind(std::string("heed: ") + says, 0) == 0);
  };
  const std::string evaluate = "evaluate --threads 1 --data reviews --model " + model();
  const std::string train = "train --limit 20 --epochs 1 --embed 8 --hidden 8 --heads 2 --ffn 8 --threads 1 --out " + folder().path + "/full";
  for (const std::string& command : {predict + " x", evaluate, evaluate + " --json", "attend --threads 1 x --model " + model(), std::string("info"), std::string("bench --small --seconds 0 --steps 1 --only attention-512"), train,
                                     std::string("--help"), std::string("train --help")}) {
    refused(command, ">/dev/full", "cannot write standard output: No space left on device");
  }
  refused(predict + " x", ">&-", "cannot write standard output");
  refused(predict, "</ >/dev/null", "cannot read standard input: Is a directory");
  refused(predict, "<&- >/dev/null", "cannot read standard input");
  if (!std::getenv("HEED_SANITIZE")) {
    refused(predict + " x", ">/dev/null", "out of memory: 1 thread needs", "export OMP_NUM_THREADS=1; ulimit -v 300000; ");
    refused("info", ">/dev/null", "out of memory", "unset OMP_NUM_THREADS; ulimit -v 200000; ");  // before main
  }
}

TEST_CASE("program: OMP_NUM_THREADS counts, and the threads spin briefly unless the user says how they wait") {
  const auto environment = [](const std::string& variables) {
    const Outcome run = run_heed("info", "env -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY OMP_DISPLAY_ENV=verbose " + variables);
    CHECK(run.status == 0);
    return run.out + run.err;
  };
  CHECK(contains(environment("OMP_NUM_THREADS=1"), "\nthreads 1\n"));
  CHECK(contains(environment(""), "GOMP_SPINCOUNT = '10000'"));
  CHECK(!contains(environment("OMP_WAIT_POLICY=active"), "GOMP_SPINCOUNT = '10000'"));
  CHECK(contains(environment("GOMP_SPINCOUNT=77"), "GOMP_SPINCOUNT = '77'"));
}

TEST_CASE("program: every device is listed, and an absent one says what is missing") {
  const Outcome info = run_heed("info");
  CHECK(info.status == 0);
  for (const char* device : {"device reference", "device cpu", "device emulated", "device cuda"}) {
    CHECK(contains(info.out, device));
  }
  if (!contains(info.out, "absent: ")) return;  // a machine with a GPU
  const Outcome run = run_heed("train --device cuda --out " + folder().path + "/cuda");
  CHECK(run.status == 1);
  CHECK(contains(run.err, "heed: device: \"cuda\" is absent: "));
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
}

TEST_CASE("program: train --device emulated: the losses are those of cpu") {
  const std::string table = folder().path + "/few.tsv";  // the built-in reviews have thousands to evaluate on
  std::ofstream lines(table);
  for (int i = 0; i < 60; i++) lines << "a film of " << i % 7 << " and " << i % 11 << '\t' << (i % 3 == 0 ? "good" : "bad") << '\n';
  lines.close();
  const auto train = [&](const std::string& device) {
    const std::string out = folder().path + "/" + device;
    const Outcome run = run_heed(
        "train --data " + table + " --batch 8 --epochs 4 --embed 8 --hidden 8 --heads 2 --ffn 8 --threads 1 --device " +
        device + " --out " + out);
    INFO(run.err);
    REQUIRE(run.status == 0);
    std::vector<double> losses;
    std::ifstream log(out + "/log.csv");
    std::string line;
    REQUIRE(std::getline(log, line));
    REQUIRE(line.rfind("epoch,steps,train_loss,", 0) == 0);
    while (std::getline(log, line)) losses.push_back(std::stod(line.substr(line.find(',', line.find(',') + 1) + 1)));
    return losses;
  };
  const std::vector<double> expected = train("cpu"), got = train("emulated");  // 20 steps
  REQUIRE(got.size() == 4);
  REQUIRE(expected.size() == 4);
  for (size_t i = 0; i < got.size(); i++) CHECK(std::abs(got[i] - expected[i]) <= 1e-4);
}
