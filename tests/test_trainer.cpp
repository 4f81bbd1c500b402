// The trainer: it learns, it resumes bit for bit, it refuses what it must, and a model file holds all that prediction needs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "autograd/ops.h"
#include "tests/temporary_folder.h"
#include "train/trainer.h"

using namespace heed;
using namespace heed::train;
using heed::tests::TemporaryFolder;

namespace {

// Label 1 if "good" comes before "bad": words alone do not tell.
TextDataset order_matters(int64_t count) {
  TextDataset data{"order", {"no", "yes"}, {}, {}, {}, {}};
  Random random(5);
  const std::vector<std::string> fillers = {"the", "film", "was", "long", "and"};
  for (int64_t i = 0; i < count + 100; i++) {
    const bool yes = i % 2 == 0;
    std::string words;
    for (int part = 0; part < 2; part++) {
      for (uint64_t n = random.below(3); n > 0; n--) words += fillers[random.below(fillers.size())] + " ";
      words += (part == 0) == yes ? "good " : "bad ";
    }
    (i < count ? data.train : i < count + 50 ? data.validation : data.test).push_back({words, yes});
  }
  return data;
}

TrainOptions small_options(const std::string& out) {
  TrainOptions o;
  o.out = out;
  o.network.embed_dim = o.network.hidden_dim = 16;
  o.network.heads = 2, o.network.ffn_dim = 32;
  o.max_length = 12, o.epochs = 4, o.batch = 8, o.lr = 0.01;
  return o;
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("the trainer learns what needs word order, and writes its files") {
  const TemporaryFolder folder;
  Trainer trainer(small_options(folder.path), order_matters(400));
  trainer.run();
  CHECK(evaluate(trainer.model(), trainer.model().encode(trainer.dataset().test)).confusion.accuracy() > 0.95);
  CHECK(trainer.records().size() == 4);
  CHECK(trainer.records().back().train_loss < trainer.records().front().train_loss);
  for (const char* name : {"best.safetensors", "last.safetensors", "log.csv", "log.jsonl", "curve.svg"}) {
    INFO(name);
    CHECK(std::filesystem::file_size(folder.path + "/" + name) > 0);
  }
}

TEST_CASE("without positions the same data cannot be told apart") {
  const TemporaryFolder folder;
  TrainOptions options = small_options(folder.path);
  options.network.positions = nn::Positions::none;
  Trainer trainer(options, order_matters(400));
  trainer.run();
  CHECK(evaluate(trainer.model(), trainer.model().encode(trainer.dataset().test)).confusion.accuracy() < 0.75);
}

TEST_CASE("without a number of epochs there are as many as make 2000 steps, and 3 at least") {
  const TemporaryFolder folder;
  TrainOptions options = small_options(folder.path);
  options.epochs = 0, options.batch = 2;
  const auto epochs_of = [&](int64_t texts) {
    Trainer trainer(options, order_matters(texts));
    trainer.run();
    return trainer.records().size();
  };
  CHECK(epochs_of(800) == 5);
  CHECK(epochs_of(1998) == 3);
  CHECK(epochs_of(2200) == 3);
}

TEST_CASE("a limit draws from all training texts, although files come class by class") {
  const TemporaryFolder folder;
  TextDataset data = order_matters(400);
  std::stable_sort(data.train.begin(), data.train.end(), [](const Example& a, const Example& b) { return a.label < b.label; });
  TrainOptions options = small_options(folder.path);
  options.limit = 40;
  const Trainer trainer(options, data);
  REQUIRE(trainer.dataset().train.size() == 40);
  int64_t yes = 0;
  for (const Example& e : trainer.dataset().train) yes += e.label;
  CHECK(yes > 10);
  CHECK(yes < 30);
}

TEST_CASE("a run that is stopped and resumed ends in the same bytes as one that is not") {
  for (const char* optimizer : {"adamw", "sgd", "rmsprop"}) {
    const TemporaryFolder whole_folder, parts_folder;
    const auto options = [&](const TemporaryFolder& folder) {
      TrainOptions o = small_options(folder.path);
      o.optimizer = optimizer;
      o.network.word_dropout = 0.1;
      o.threads = 1;
      return o;
    };
    Trainer whole(options(whole_folder), order_matters(100));
    whole.run();

    struct Stop {};
    {
      Trainer first(options(parts_folder), order_matters(100));
      first.on_epoch = [](const EpochRecord& r, bool) {
        if (r.epoch == 2) throw Stop();
      };
      CHECK_THROWS_AS(first.run(), Stop);
    }
    // As if it had been killed right behind the checkpoint: the logs lack an epoch.
    std::filesystem::remove(parts_folder.path + "/log.csv");
    std::ofstream(parts_folder.path + "/log.jsonl") << "{\"epoch\": 1, \"steps\"";
    TrainOptions rest_options = options(parts_folder);
    rest_options.resume = true;
    Trainer rest(rest_options, order_matters(100));
    rest.run();
    INFO(optimizer);
    for (const char* name : {"last.safetensors", "best.safetensors"}) {
      INFO(name);
      CHECK(bytes_of(whole_folder.path + "/" + name) == bytes_of(parts_folder.path + "/" + name));
    }
    const std::string log = bytes_of(parts_folder.path + "/log.csv"), lines = bytes_of(parts_folder.path + "/log.jsonl");
    CHECK(std::count(log.begin(), log.end(), '\n') == 5);
    CHECK(std::count(lines.begin(), lines.end(), '\n') == 4);
    REQUIRE(rest.records().size() == whole.records().size());
    for (size_t i = 0; i < rest.records().size(); i++) {
      CHECK(rest.records()[i].train_loss == whole.records()[i].train_loss);
      CHECK(rest.records()[i].validation_loss == whole.records()[i].validation_loss);
    }
  }
}

TEST_CASE("the same seed gives the same run, another seed another") {
  std::vector<double> losses;
  for (uint64_t seed : {1, 1, 2}) {
    const TemporaryFolder folder;
    TrainOptions options = small_options(folder.path);
    options.seed = seed, options.epochs = 1, options.threads = 1;
    Trainer trainer(options, order_matters(100));
    trainer.run();
    losses.push_back(trainer.records()[0].train_loss);
  }
  CHECK(losses[0] == losses[1]);
  CHECK(losses[0] != losses[2]);
}

TEST_CASE("the better model has the higher validation accuracy, among equals the lower loss") {
  const auto record = [](double accuracy, double loss) {
    EpochRecord r;
    r.validation_accuracy = accuracy, r.validation_loss = loss;
    return r;
  };
  CHECK(is_better(record(0.9, 0.5), record(0.8, 0.1)));
  CHECK(!is_better(record(0.8, 0.1), record(0.9, 0.5)));
  CHECK(is_better(record(0.9, 0.1), record(0.9, 0.2)));
  CHECK(!is_better(record(0.9, 0.2), record(0.9, 0.1)));
  CHECK(!is_better(record(0.9, 0.1), record(0.9, 0.1)));
}

TEST_CASE("early stopping ends a run that does not get better, and the best model is kept") {
  const TemporaryFolder folder;
  TrainOptions options = small_options(folder.path);
  options.epochs = 50, options.patience = 2, options.schedule = "constant";
  Trainer trainer(options, order_matters(200));
  trainer.run();
  CHECK(trainer.records().size() < 50);
  CHECK(static_cast<int64_t>(trainer.records().size()) == trainer.best_epoch() + 2);
  EpochRecord best = trainer.records()[0];
  for (const EpochRecord& r : trainer.records()) {
    if (is_better(r, best)) best = r;
  }
  CHECK(best.epoch == trainer.best_epoch());
  CHECK(evaluate(trainer.model(), trainer.model().encode(trainer.dataset().validation)).loss == doctest::Approx(best.validation_loss));
}

TEST_CASE("without validation texts the last epoch's model is the best, and nothing stops early") {
  const TemporaryFolder folder;
  TrainOptions options = small_options(folder.path);
  options.patience = 1;
  TextDataset data = order_matters(50);
  data.validation.clear();
  Trainer trainer(options, data);
  trainer.run();
  CHECK(trainer.best_epoch() == 4);
  CHECK(std::isnan(trainer.records().back().validation_loss));
  options.resume = true, options.epochs = 5;
  Trainer more(options, data);
  CHECK(more.epoch() == 4);
  more.run();
  CHECK(more.best_epoch() == 5);
}

TEST_CASE("a diverging run stops with a sentence and leaves its last files") {
  const TemporaryFolder folder;
  TrainOptions options = small_options(folder.path);
  options.lr = 1e30, options.optimizer = "sgd", options.clip = 0, options.schedule = "constant", options.momentum = 0;
  Trainer trainer(options, order_matters(100));
  CHECK_THROWS_WITH_AS(trainer.run(), doctest::Contains("NaN"), NumericError);
}

TEST_CASE("weights that the last step of an epoch made infinite are never saved") {
  const TemporaryFolder folder;
  TrainOptions options = small_options(folder.path);
  options.lr = 1e300, options.optimizer = "sgd", options.clip = 0, options.schedule = "constant", options.momentum = 0;
  options.batch = std::numeric_limits<int64_t>::max();  // one step
  TextDataset data = order_matters(50);
  data.validation.clear();
  CHECK_THROWS_WITH_AS(Trainer(options, data).run(), doctest::Contains("at step 1, in epoch 1: the weights of"), NumericError);
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("options outside their rules are refused, and none overflows") {
  const TemporaryFolder folder;
  const auto refused = [&](const char* name, auto change) {
    TrainOptions options = small_options(folder.path);
    change(options);
    INFO(name);
    CHECK_THROWS_WITH_AS(Trainer(options, order_matters(50)), doctest::Contains(name), UsageError);
  };
  refused("--batch is \"0\"", [](TrainOptions& o) { o.batch = 0; });
  refused("--epochs", [](TrainOptions& o) { o.epochs = std::numeric_limits<int64_t>::max(); });
  refused("--max-length", [](TrainOptions& o) { o.max_length = std::numeric_limits<int64_t>::max(); });
  refused("--layers", [](TrainOptions& o) { o.network.layers = 1000000000; });
  refused("--lr", [](TrainOptions& o) { o.lr = std::nan(""); });
  refused("--schedule", [](TrainOptions& o) { o.schedule = "spiral"; });
  for (const TrainOption& option : train_options()) {
    INFO(option.name);
    TrainOptions options = small_options(folder.path);
    const std::string before = option.get(options);
    option.set(options, before);
    CHECK(option.get(options) == before);
    CHECK_THROWS_AS(option.set(options, option.name == "data" ? "" : "-1x"), UsageError);
  }
}

TEST_CASE("a model file holds all that prediction needs, and predicts the same") {
  const TemporaryFolder folder;
  for (nn::Pooling pooling : {nn::Pooling::mean, nn::Pooling::max, nn::Pooling::class_token}) {
    TrainOptions options = small_options(folder.path);
    options.epochs = 1, options.network.pooling = pooling;
    Trainer trainer(options, order_matters(100));
    trainer.run();
    const EncodedTexts texts = trainer.model().encode({{"good then bad", 0}, {"", 0}, {"\xff\xfe unheard of", 0}});
    const std::vector<Prediction> here = predict(trainer.model(), texts);
    TextModel loaded = load_model(folder.path + "/last.safetensors");
    const std::vector<Prediction> there = predict(loaded, loaded.encode({{"good then bad", 0}, {"", 0}, {"\xff\xfe unheard of", 0}}));
    CHECK(loaded.classes == std::vector<std::string>{"no", "yes"});
    for (size_t i = 0; i < 3; i++) {
      CHECK(here[i].label == there[i].label);
      CHECK(here[i].probabilities[0] == doctest::Approx(there[i].probabilities[0]).epsilon(1e-5));
      CHECK(here[i].probabilities[0] + here[i].probabilities[1] == doctest::Approx(1));
    }
  }
}

TEST_CASE("a file that is not a model is refused with its path and the reason") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/x.safetensors";
  const auto refused = [&](const TensorFile& file, const char* reason) {
    save_tensors(path, file);
    INFO(reason);
    CHECK_THROWS_WITH_AS(load_model(path), doctest::Contains(reason), FileError);
    CHECK_THROWS_WITH_AS(load_model(path), doctest::Contains("x.safetensors"), FileError);
  };
  TextModel model = make_model({.embed_dim = 4, .hidden_dim = 4, .heads = 2, .ffn_dim = 4}, Vocabulary(), {"a", "b"}, {16, Truncate::head}, 1);
  const TensorFile good = to_file(model);
  save_tensors(path, good);
  CHECK_NOTHROW(load_model(path));
  refused({}, "has no \"format\"");
  TensorFile bad = good;
  bad.metadata["format"] = "another";
  refused(bad, "another");
  bad = good;
  bad.metadata["encode.max_length"] = "12x";
  refused(bad, "encode.max_length");
  bad = good;
  bad.metadata["positions"] = "spiral";
  refused(bad, "spiral");
  bad = good;
  bad.metadata["vocabulary"] += "surplus\n";  // one word more than the embedding has rows
  refused(bad, "vocab_size is 2, but the words of the vocabulary are 3");
  bad.metadata["vocab_size"] = "3";
  refused(bad, "embedding.weight");
  for (const auto& [key, value] : good.metadata) {
    bad = good;
    bad.metadata.erase(key);
    refused(bad, ("has no \"" + key + "\"").c_str());
  }
  for (const char* key : {"layers", "classes", "embed_dim", "ffn_dim", "vocab_size", "max_length", "encode.max_length"}) {
    for (const char* value : {"3", "1000000000", "9223372036854775807"}) {
      bad = good;
      bad.metadata[key] = value;
      refused(bad, "");
    }
  }
  for (const char* names : {"a\na\n", "a\n\n", "a\n\x1b\n", "a\n"}) {
    bad = good;
    bad.metadata["class_names"] = names;
    refused(bad, "");
  }
  bad = good;
  bad.tensors["fc.bias"] = full({2}, std::nan(""));
  refused(bad, "fc.bias\" holds NaN");
  bad = good;
  bad.tensors.erase("fc.bias");
  refused(bad, "fc.bias");
  bad = good;
  bad.tensors["fc.bias"] = zeros({3});
  refused(bad, "fc.bias");
  bad = good;
  bad.tensors["surplus"] = zeros({1});
  refused(bad, "surplus");

  for (const auto& [name, tensor] : good.tensors) bad.tensors[name] = full(tensor.shape(), 1e30);  // finite, but not what comes of them
  bad.tensors.erase("surplus");
  save_tensors(path, bad);
  TextModel huge = load_model(path);
  CHECK_THROWS_WITH_AS(predict(huge, huge.encode({{"x", 0}})), doctest::Contains("NaN"), NumericError);
}

TEST_CASE("resuming needs a run, the same texts and the same options") {
  const TemporaryFolder folder;
  TrainOptions options = small_options(folder.path);
  options.epochs = 2, options.resume = true;
  CHECK_THROWS_WITH_AS(Trainer(options, order_matters(50)), doctest::Contains("last.safetensors"), FileError);
  options.resume = false;
  Trainer(options, order_matters(50)).run();
  options.resume = true;
  const auto refused = [&](const char* reason, auto change) {
    TrainOptions other = options;
    change(other);
    INFO(reason);
    CHECK_THROWS_WITH_AS(Trainer(other, order_matters(50)), doctest::Contains(reason), UsageError);
  };
  refused("--optimizer is sgd, but", [](TrainOptions& o) { o.optimizer = "sgd"; });
  refused("was trained with 16", [](TrainOptions& o) { o.network.hidden_dim = 32; });
  refused("--seed is 9", [](TrainOptions& o) { o.seed = 9; });
  refused("--norm is none", [](TrainOptions& o) { o.network.norm = nn::Norm::none; });
  refused("--epochs is 1, but", [](TrainOptions& o) { o.epochs = 1; });
  TextDataset other = order_matters(50);
  other.classes = {"left", "right"};
  CHECK_THROWS_WITH_AS(Trainer(options, other), doctest::Contains("classes"), FileError);
  other = order_matters(50);
  other.train[3].text += " and";
  CHECK_THROWS_WITH_AS(Trainer(options, other), doctest::Contains("other texts"), FileError);

  // What the command line does not name is the checkpoint's.
  TrainOptions defaults;
  defaults.out = folder.path, defaults.epochs = 7, defaults.seed = 3;
  const TrainOptions begun = as_begun(defaults, [](const std::string& name) { return name == "epochs"; });
  CHECK(begun.epochs == 7);
  CHECK(begun.seed == 1);
  CHECK(begun.network.heads == 2);
  CHECK_THROWS_WITH_AS(as_begun(defaults, [](const std::string& name) { return name == "seed"; }), doctest::Contains("--seed is 3"), UsageError);
}

TEST_CASE("a damaged checkpoint is refused with the key or tensor that is wrong") {
  const TemporaryFolder folder;
  TrainOptions options = small_options(folder.path);
  options.epochs = 2;
  Trainer(options, order_matters(50)).run();
  options.resume = true;
  const std::string path = folder.path + "/last.safetensors", best = folder.path + "/best.safetensors";
  const TensorFile good = load_tensors(path);
  const auto refused = [&](const std::string& what, const TensorFile& file) {
    save_tensors(path, file);
    INFO(what);
    CHECK_THROWS_WITH_AS(Trainer(options, order_matters(50)), doctest::Contains(what.c_str()), FileError);
    CHECK_THROWS_WITH_AS(Trainer(options, order_matters(50)), doctest::Contains("last.safetensors"), FileError);
  };
  for (const auto& [key, value] : good.metadata) {
    if (key.rfind("train.", 0) != 0) continue;
    TensorFile bad = good;
    bad.metadata.erase(key);
    refused(key, bad);
  }
  for (const char* key : {"train.lr", "train.epochs", "train.history", "train.unheard_of"}) {
    TensorFile bad = good;
    bad.metadata[key] = "junk";
    refused(key, bad);
  }
  for (const char* part : {"\"epoch\":1", "\"steps\":14", "\"train_loss\"", "[", "]"}) {
    TensorFile bad = good;
    std::string& history = bad.metadata["train.history"];
    REQUIRE(history.find(part) != std::string::npos);
    history.insert(history.find(part) + std::string(part).size() - 1, "9");
    refused("train.history", bad);
  }
  const std::string moment = "optimizer/fc.weight/exp_avg", steps = "optimizer/fc.weight/steps";
  for (const Tensor& tensor : {full({2, 16}, std::nan("")), zeros({2, 15}), zeros({2, 16}, DType::f64)}) {
    TensorFile bad = good;
    bad.tensors[moment] = tensor;
    refused(moment, bad);
  }
  for (const int32_t count : {-1, 1000}) {
    TensorFile bad = good;
    bad.tensors[steps] = indices({count});
    refused(steps, bad);
  }

  // A run that was killed before the best model was written makes it from the checkpoint, or misses it at once.
  save_tensors(path, good);
  const Trainer whole(options, order_matters(50));
  std::filesystem::remove(best);
  if (whole.best_epoch() == 2) {
    CHECK_NOTHROW(Trainer(options, order_matters(50)));
    CHECK(std::filesystem::exists(best));
  } else {
    CHECK_THROWS_WITH_AS(Trainer(options, order_matters(50)), doctest::Contains("best.safetensors"), FileError);
  }
}

TEST_CASE("metrics") {
  Confusion c(2);
  for (int i = 0; i < 3; i++) c.add(0, 0);
  c.add(0, 1);
  for (int i = 0; i < 2; i++) c.add(1, 1);
  CHECK(c.accuracy() == doctest::Approx(5.0 / 6));
  CHECK(c.precision(1) == doctest::Approx(2.0 / 3));
  CHECK(c.recall(0) == doctest::Approx(0.75));
  CHECK(c.f1(1) == doctest::Approx(0.8));
  CHECK(Confusion(3).accuracy() == 0);
  CHECK(Confusion(3).macro_f1() == 0);
}
