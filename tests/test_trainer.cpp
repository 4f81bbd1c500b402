// The trainer: it learns, it resumes bit for bit, it refuses what it must, and a model file holds all that prediction needs.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
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
    TrainOptions rest_options = options(parts_folder);
    rest_options.resume = true;
    Trainer rest(rest_options, order_matters(100));
    rest.run();
    INFO(optimizer);
    for (const char* name : {"last.safetensors", "best.safetensors"}) {
      INFO(name);
      CHECK(bytes_of(whole_folder.path + "/" + name) == bytes_of(parts_folder.path + "/" + name));
    }
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

TEST_CASE("early stopping ends a run that does not get better, and the best model is kept") {
  const TemporaryFolder folder;
  TrainOptions options = small_options(folder.path);
  options.epochs = 50, options.patience = 2, options.schedule = "constant";
  Trainer trainer(options, order_matters(200));
  trainer.run();
  CHECK(trainer.records().size() < 50);
  CHECK(static_cast<int64_t>(trainer.records().size()) == trainer.best_epoch() + 2);
  double best = 0;
  for (const EpochRecord& r : trainer.records()) best = std::max(best, r.validation_accuracy);
  CHECK(evaluate(trainer.model(), trainer.model().encode(trainer.dataset().validation)).confusion.accuracy() == doctest::Approx(best));
}

TEST_CASE("a diverging run stops with a sentence and leaves its last files") {
  const TemporaryFolder folder;
  TrainOptions options = small_options(folder.path);
  options.lr = 1e30, options.optimizer = "sgd", options.clip = 0, options.schedule = "constant", options.momentum = 0;
  Trainer trainer(options, order_matters(100));
  CHECK_THROWS_WITH_AS(trainer.run(), doctest::Contains("NaN"), NumericError);
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
  refused(bad, "embedding.weight");
  bad = good;
  bad.tensors.erase("fc.bias");
  refused(bad, "fc.bias");
  bad = good;
  bad.tensors["fc.bias"] = zeros({3});
  refused(bad, "fc.bias");
  bad = good;
  bad.tensors["surplus"] = zeros({1});
  refused(bad, "surplus");
}

TEST_CASE("resuming needs a run, the same classes and the same optimizer") {
  const TemporaryFolder folder;
  TrainOptions options = small_options(folder.path);
  options.epochs = 1, options.resume = true;
  CHECK_THROWS_WITH_AS(Trainer(options, order_matters(50)), doctest::Contains("last.safetensors"), FileError);
  options.resume = false;
  Trainer(options, order_matters(50)).run();
  options.resume = true, options.optimizer = "sgd";
  CHECK_THROWS_WITH_AS(Trainer(options, order_matters(50)), doctest::Contains("adamw"), FileError);
  options.optimizer = "adamw";
  TextDataset other = order_matters(50);
  other.classes = {"left", "right"};
  CHECK_THROWS_WITH_AS(Trainer(options, other), doctest::Contains("classes"), FileError);
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
