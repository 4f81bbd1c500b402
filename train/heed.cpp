// The heed program: its command line.
#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>

#include "tensor/error.h"
#include "train/commands.h"

using namespace heed;
using namespace heed::train;

namespace {

struct Machine {
  std::string device = "cpu";
  int threads = 0;
};

// CLI11's own ranges print their bounds to 300 digits.
CLI::Validator number_where(bool (*holds)(double), const std::string& rule) {
  const auto check = [holds, rule](const std::string& text) {
    double value = 0;
    return CLI::detail::lexical_cast(text, value) && holds(value) ? std::string() : "is " + text + ", it must be a number " + rule;
  };
  return CLI::Validator(check, rule);
}

void add_machine_options(CLI::App& command, Machine& machine) {
  command.add_option("--device", machine.device, "reference, cpu, emulated or cuda")->capture_default_str();
  command.add_option("--threads", machine.threads, "0: all cores")->capture_default_str()->check(number_where([](double v) { return v >= 0 && v <= 4096; }, "from 0 to 4096"));
}

// An option whose values are the names of an enum.
template <class E, size_t N>
void add_choice(CLI::App& command, const char* name, E& value, const nn::Choice<E> (&choices)[N], const char* about = "") {
  std::vector<std::string> names;
  for (const nn::Choice<E>& choice : choices) names.push_back(choice.name);
  command.add_option_function<std::string>(name, [&value, &choices, name](const std::string& chosen) { value = nn::choice_among(choices, name, chosen); }, about)
      ->check(CLI::IsMember(names))->default_str(nn::name_among(choices, value));
}

void add_train_options(CLI::App& c, TrainOptions& o) {
  const CLI::Validator positive = number_where([](double v) { return v > 0; }, "above 0"), at_least_0 = number_where([](double v) { return v >= 0; }, "at least 0"),
                       share = number_where([](double v) { return v >= 0 && v <= 1; }, "from 0 to 1"),
                       probability = number_where([](double v) { return v >= 0 && v < 1; }, "from 0, below 1");
  c.add_option("--data", o.data, "reviews (built in), a folder in the layout of aclImdb, or a FILE of text<TAB>label lines")->capture_default_str();
  c.add_option("--out", o.out, "folder for models, logs and the curve")->capture_default_str();
  c.add_flag("--resume", o.resume, "continue the run in --out");
  c.add_option("--epochs", o.epochs)->default_str(o.epochs > 0 ? std::to_string(o.epochs) : "as many as make 2000 steps, 3 at least")->check(positive);
  c.add_option("--batch", o.batch, "texts of a training step")->capture_default_str()->check(positive);
  c.add_option("--seed", o.seed)->capture_default_str();
  c.add_option("--limit", o.limit, "use only this many training texts, drawn by seed; 0: all")->capture_default_str()->check(at_least_0);
  c.add_option("--max-length", o.max_length, "tokens of a text")->capture_default_str()->check(positive);
  c.add_option("--truncate", o.truncate, "which part of a longer text is kept")->capture_default_str()->check(CLI::IsMember({"head", "tail", "head_tail"}));
  c.add_option("--vocab", o.vocab, "largest vocabulary")->capture_default_str()->check(number_where([](double v) { return v >= 4; }, "at least 4"));
  c.add_option("--min-count", o.min_count, "rarer words are unknown")->capture_default_str()->check(positive);
  c.add_option("--validation-share", o.validation_share, "of the training texts (a stretch of each class), if the data has no split of its own")->capture_default_str()->check(number_where([](double v) { return v >= 0 && v <= 0.5; }, "from 0 to 0.5"));
  c.add_option("--optimizer", o.optimizer)->capture_default_str()->check(CLI::IsMember({"sgd", "adam", "adamw", "rmsprop"}));
  c.add_option("--lr", o.lr, "highest learning rate")->capture_default_str()->check(at_least_0);
  c.add_option("--momentum", o.momentum, "of sgd and rmsprop")->capture_default_str()->check(share);
  c.add_option("--weight-decay", o.weight_decay, "not on biases and norms")->capture_default_str()->check(at_least_0);
  c.add_option("--schedule", o.schedule, "of the learning rate")->capture_default_str()->check(CLI::IsMember({"constant", "step", "cosine", "one_cycle"}));
  c.add_option("--warmup", o.warmup, "cosine: share of the steps")->capture_default_str()->check(share);
  c.add_option("--clip", o.clip, "largest norm of all gradients; 0: none")->capture_default_str()->check(at_least_0);
  c.add_option("--label-smoothing", o.label_smoothing)->capture_default_str()->check(share);
  c.add_option("--patience", o.patience, "stop after so many epochs without a better validation accuracy; 0: never")->capture_default_str()->check(at_least_0);

  nn::TextClassifierOptions& n = o.network;
  c.add_option("--model", o.model, "printed: as the article prints it")->capture_default_str()->check(CLI::IsMember({"full", "printed"}));
  c.add_option("--embed", n.embed_dim, "width of the embedding")->capture_default_str()->check(positive);
  c.add_option("--hidden", n.hidden_dim, "width of the model")->capture_default_str()->check(positive);
  c.add_option("--layers", n.layers)->capture_default_str()->check(positive);
  c.add_option("--heads", n.heads)->capture_default_str()->check(positive);
  c.add_option("--ffn", n.ffn_dim, "width of the feed-forward layer; 0: none")->capture_default_str()->check(at_least_0);
  c.add_option("--dropout", n.dropout)->capture_default_str()->check(probability);
  c.add_option("--word-dropout", n.word_dropout, "whole words hidden in training")->capture_default_str()->check(probability);
  add_choice(c, "--positions", n.positions, nn::kPositions);
  add_choice(c, "--norm", n.norm, nn::kNorms);
  add_choice(c, "--pooling", n.pooling, nn::kPoolings);
  c.add_option("--residual", n.residual, "1 or 0")->capture_default_str();
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

int run(int argc, char** argv) {
  CLI::App app("heed: a tiny reverse-mode autograd tensor, and the text classifier built on it");
  app.require_subcommand(1);
  app.set_version_flag("--version", "heed 0.1.0");
  Machine machine;

  TrainOptions train = defaults_for(data_argument(argc, argv));
  CLI::App* command = app.add_subcommand("train", "train a text classifier; the last line is its test accuracy");
  add_machine_options(*command, machine);
  add_train_options(*command, train);
  command->callback([&] { prepare(machine.device, machine.threads), train.device = machine.device, train.threads = machine.threads, train_command(train); });

  EvaluateCommand evaluate;
  command = app.add_subcommand("evaluate", "accuracy, F1 and confusion table of a model");
  add_machine_options(*command, machine);
  command->add_option("--model", evaluate.model, "a .safetensors file of heed train")->required();
  command->add_option("--data", evaluate.data, "reviews, a folder or a file")->required();
  command->add_option("--batch", evaluate.batch)->capture_default_str()->check(number_where([](double v) { return v > 0; }, "above 0"));
  command->add_flag("--json", evaluate.json);
  command->callback([&] { prepare(machine.device, machine.threads), evaluate_command(evaluate); });

  PredictCommand predict;
  command = app.add_subcommand("predict", "label and probability of texts");
  add_machine_options(*command, machine);
  command->add_option("--model", predict.model, "a .safetensors file of heed train")->required();
  command->add_option("text", predict.texts, "texts; without any, one a line from standard input");
  command->add_flag("--json", predict.json);
  command->callback([&] { prepare(machine.device, machine.threads), predict_command(predict); });

  AttendCommand attend;
  command = app.add_subcommand("attend", "heat map of every head's attention weights");
  add_machine_options(*command, machine);
  command->add_option("--model", attend.model, "a .safetensors file of heed train")->required();
  command->add_option("text", attend.text, "the text")->required();
  command->add_option("--svg", attend.svg, "write an SVG picture to this file instead of the terminal");
  command->add_option("--layer", attend.layer, "one layer, from 0; -1: all")->capture_default_str();
  command->callback([&] { prepare(machine.device, machine.threads), attend_command(attend); });

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
    return app.exit(error) == 0 ? 0 : 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit shall be an error of the write, not the end of the program
  try {
    return run(argc, argv);
  } catch (const UsageError& error) {
    std::cerr << "heed: " << error.what() << '\n';
    return 2;
  } catch (const Error& error) {
    std::cerr << "heed: " << error.what() << '\n';
  } catch (const std::bad_alloc&) {
    std::cerr << "heed: out of memory\n";
  } catch (const std::exception& error) {
    std::cerr << "heed: " << error.what() << '\n';
  }
  return 1;
}
