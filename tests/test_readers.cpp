// Readers of text collections: folders of classes, tables, splits, and everything odd that files can hold.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "tensor/error.h"
#include "tests/temporary_folder.h"
#include "train/labelled_texts.h"
#include "train/readers.h"
#include "train/vocabulary.h"

using namespace heed;
using namespace heed::train;
using namespace std::string_literals;
namespace fs = std::filesystem;

namespace {

struct Folder : heed::tests::TemporaryFolder {
  std::string write(const std::string& name, const std::string& bytes) const {
    fs::create_directories(fs::path(*this / name).parent_path());
    std::ofstream(*this / name, std::ios::binary) << bytes;
    return *this / name;
  }
};

// What reading gives: the message with the folder's name taken out, or "fine".
std::string outcome(const Folder& folder, const std::function<void()>& read) {
  try {
    read();
  } catch (const FileError& error) {
    std::string message = error.what();
    for (size_t at; (at = message.find(folder.path + "/")) != std::string::npos;) {
      message.erase(at, folder.path.size() + 1);
    }
    CHECK(message.find('\n') == std::string::npos);
    return message;
  }
  return "fine";
}

std::string reading(const Folder& folder, const std::string& name) {
  return outcome(folder, [&] { read_text_dataset(folder / name, 0.1, 1); });
}

std::string reading_table(const std::string& bytes) {
  const Folder folder;
  folder.write("x.tsv", bytes);
  return reading(folder, "x.tsv");
}

// "text>label text>label ..." of a table, in its order.
std::string table(const std::string& bytes) {
  const Folder folder;
  const LabelledTexts read = read_table(folder.write("x.tsv", bytes));
  std::string joined;
  for (size_t i = 0; i < read.texts.size(); i++) joined += read.texts[i] + ">" + read.labels[i] + " ";
  return joined;
}

// n lines of text<TAB>label: label 0 three times as often as label 1.
std::string numbered_table(int n) {
  std::string lines;
  for (int i = 0; i < n; i++) lines += "text" + std::to_string(i) + "\t" + (i % 4 == 0 ? "1" : "0") + "\n";
  return lines;
}

std::set<std::string> texts_of(const std::vector<Example>& examples) {
  std::set<std::string> texts;
  for (const Example& example : examples) texts.insert(example.text);
  return texts;
}

int64_t count_label(const std::vector<Example>& examples, int32_t label) {
  return std::count_if(examples.begin(), examples.end(), [&](const Example& e) { return e.label == label; });
}

void write_reviews(const Folder& folder, const std::string& where, int n) {
  for (int i = 0; i < n; i++) {
    folder.write(where + "/neg/" + std::to_string(i) + "_2.txt", where + " bad " + std::to_string(i));
    folder.write(where + "/pos/" + std::to_string(i) + "_9.txt", where + " good " + std::to_string(i));
  }
}

}  // namespace

TEST_CASE("aclImdb layout: classes by name, files by number, unlabelled reviews skipped") {
  const Folder folder;
  write_reviews(folder, "train", 12);
  write_reviews(folder, "test", 5);
  folder.write("train/unsup/0_0.txt", "no label");
  folder.write("train/urls_neg.txt", "http://...");
  folder.write("train/neg/notes.md", "not a review");
  folder.write("train/pos/without_rating.txt", "fine too");

  const LabelledTexts train = read_class_folders(folder / "train");
  REQUIRE(train.texts.size() == 25);
  CHECK(train.texts[2] == "train bad 2");
  CHECK(train.texts[10] == "train bad 10");  // not behind 1
  CHECK(train.texts[24] == "fine too");

  std::vector<std::string> warnings;
  const TextDataset data = read_text_dataset(folder.path, 0.25, 1, &warnings);
  CHECK(data.name == folder.path);
  CHECK(data.classes == std::vector<std::string>{"neg", "pos"});
  CHECK(data.validation.size() == 6);
  CHECK(data.train.size() == 19);
  CHECK(data.test.size() == 10);
  CHECK(count_label(data.test, 1) == 5);
  CHECK(data.test[7].text == "test good 2");
  CHECK(warnings.empty());
}

TEST_CASE("class folders: any class names, a validation folder, no test folder") {
  const Folder folder;
  for (const char* name : {"sport", "art", "music"}) {
    for (int i = 0; i < 10; i++) folder.write("train/"s + name + "/" + std::to_string(i) + ".txt", name);
    folder.write("dev/"s + name + "/0.txt", name);
  }
  std::vector<std::string> warnings;
  const TextDataset data = read_text_dataset(folder.path, 0.5, 1, &warnings);
  CHECK(data.classes == std::vector<std::string>{"art", "music", "sport"});
  CHECK(data.validation.size() == 3);
  CHECK(data.validation[2].label == 2);
  CHECK(data.train.size() == 27);
  CHECK(data.test.size() == 3);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] == folder.path + " has no test split; 3 of 30 texts were drawn as one");

  folder.write("test/law/0.txt", "x");
  CHECK(reading(folder, "") == "test/law: label \"law\" is not one of the classes \"art\", \"music\", \"sport\"");
}

TEST_CASE("class folders: what is missing or wrong") {
  const Folder folder;
  CHECK(reading(folder, "nowhere") == "cannot read nowhere: No such file or directory");
  CHECK(reading(folder, "").starts_with("no training texts in "));
  write_reviews(folder, "test", 1);
  CHECK(reading(folder, "").starts_with("no training texts in "));
  fs::create_directories(folder / "train");
  CHECK(reading(folder, ".") == "no class folder in ./train; expected ./train/CLASS/*.txt");
  fs::create_directories(folder / "train/pos");
  CHECK(reading(folder, ".") == "no .txt file in ./train/pos");
  folder.write("train/pos/1_8.txt", "good");
  CHECK(reading(folder, ".") == "./train: only one class, \"pos\"; a classifier needs at least two");
  folder.write("train/neg/1_2.txt", "");  // an empty review is a review
  CHECK(reading(folder, ".") == "fine");
  fs::create_directories(folder / "train/neg/folder.txt");
  CHECK(reading(folder, ".") == "cannot read ./train/neg/folder.txt: not a regular file");
}

TEST_CASE("class folders: loops of symbolic links, pipes and unreadable files end in a message, not in waiting") {
  const Folder folder;
  write_reviews(folder, "train", 2);
  fs::create_symlink("loop.txt", folder / "train/neg/loop.txt");
  CHECK(reading(folder, ".") == "cannot read ./train/neg/loop.txt: Too many levels of symbolic links");
  fs::remove(folder / "train/neg/loop.txt");
  fs::create_symlink("nowhere", folder / "train/neg/5_1.txt");
  CHECK(reading(folder, ".") == "cannot read ./train/neg/5_1.txt: No such file or directory");
  fs::remove(folder / "train/neg/5_1.txt");
  fs::create_directory_symlink(".", folder / "train/up");
  CHECK(reading(folder, ".") == "no .txt file in ./train/up");
  fs::remove(folder / "train/up");
  REQUIRE(mkfifo((folder / "train/neg/pipe.txt").c_str(), 0600) == 0);
  CHECK(reading(folder, ".") == "cannot read ./train/neg/pipe.txt: not a regular file");
  fs::remove(folder / "train/neg/pipe.txt");
  fs::create_symlink("0_2.txt", folder / "train/neg/linked.txt");  // an honest link is fine
  CHECK(reading(folder, ".") == "fine");

  if (geteuid() == 0) return;  // root may read everything
  fs::permissions(folder / "train/neg/0_2.txt", fs::perms::none);
  CHECK(reading(folder, ".") == "cannot read ./train/neg/0_2.txt: Permission denied");
  fs::permissions(folder / "train/neg", fs::perms::none);
  CHECK(reading(folder, ".") == "cannot list ./train/neg: Permission denied");
  fs::permissions(folder / "train/neg", fs::perms::owner_all);
}

TEST_CASE("tables: text<TAB>label, label<TAB>text, headers") {
  CHECK(table("good\t1\nbad\t0\nfine\t1\n") == "good>1 bad>0 fine>1 ");
  CHECK(table("1\tgood\n0\tbad\n1\tfine\n") == "good>1 bad>0 fine>1 ");
  CHECK(table("pos\tgood film\nneg\tbad film\n") == "good film>pos bad film>neg ");  // a tie: labels are shorter
  CHECK(table("sentence\tlabel\ngood\t1\nbad\t0") == "good>1 bad>0 ");
  CHECK(table("label\ttext\n1\t1\n0\t1\n") == "1>1 1>0 ");
  CHECK(table("id\tSentiment\tReview\n7\t1\tgood\n8\t0\tbad\n") == "good>1 bad>0 ");
  CHECK(table("good\tpos\n") == "good>pos ");
}

TEST_CASE("tables: byte-order mark, CRLF, blank lines, empty texts, odd bytes, no newline at the end") {
  CHECK(table("\xEF\xBB\xBFtext\tlabel\r\ngood\t1\r\n\r\nbad\t0\r\n") == "good>1 bad>0 ");
  CHECK(table("\n\n  \ngood\t1\n\t\nbad\t 0 ") == "good>1 bad>0 ");
  CHECK(table("\t1\nbad\t0\nso\t0\n") == ">1 bad>0 so>0 ");
  CHECK(table("caf\xE9\t1\nb\0ad\t0\n\xFF\xC3\t0\n"s) == "caf\xE9>1 b\0ad>0 \xFF\xC3>0 "s);
}

TEST_CASE("tables: messages name the file and the line") {
  CHECK(reading_table("") == "x.tsv is empty; expected lines of text<TAB>label");
  CHECK(reading_table("\n \r\n") == "x.tsv is empty; expected lines of text<TAB>label");
  CHECK(reading_table("text\tlabel\n") == "x.tsv holds a header and nothing else");
  CHECK(reading_table("index\tsentence\n0\tgood\n") == "x.tsv:1: the header names no label column");
  CHECK(reading_table("label\n1\n") == "x.tsv:1: the header names no text column");
  CHECK(reading_table("good,1\nbad,0\n") == "x.tsv:1: no label column; expected text<TAB>label");
  CHECK(reading_table("good\t1\n\nbad 0\n") == "x.tsv:3: no label column; expected text<TAB>label");
  CHECK(reading_table("good\t1\nbad\tvery\t0\n") == "x.tsv:2: 3 columns where 2 were expected");
  CHECK(reading_table("good\t1\nso\t1\nbad\t \n") == "x.tsv:3: the label is empty");
  CHECK(reading_table("good\t1\nfine\t1\n") == "x.tsv: only one class, \"1\"; a classifier needs at least two");
  CHECK(reading_table("\xFF\xFEg\0\t\0"s) == "x.tsv is UTF-16; please convert it to UTF-8");
}

TEST_CASE("class names that no model could hold are refused where they stand") {
  CHECK(reading_table("good\tpos\nbad\tn\xff\n") == "x.tsv:2: the label \"n\xEF\xBF\xBD\" is not UTF-8");
  CHECK(reading_table("good\tpo\0s\nbad\tneg\n"s) == "x.tsv:1: the label \"po\xEF\xBF\xBDs\" holds a line break or another control character");
  CHECK(reading_table("label\ttext\tlabel\n1\tgood\t0\n") == "x.tsv:1: the header names two label columns");
  CHECK(reading_table("text\ttext\tlabel\na\tb\t0\n") == "x.tsv:1: the header names two text columns");
  const Folder folder;
  folder.write("train/c/1.txt", "x");
  folder.write("train/a\nb/1.txt", "x");
  CHECK(reading(folder, ".") == "./train: the label \"a\xEF\xBF\xBD" "b\" holds a line break or another control character");
}

TEST_CASE("tables: a 10 MB line, 100,000 classes") {
  const std::string text(10'000'000, 'x');
  CHECK(table(text + "\t1\nbad\t0\nso\t0\n").size() == text.size() + 3 + 6 + 5);

  std::string lines;
  for (int i = 0; i < 100'000; i++) lines += "a text\tclass" + std::to_string(i) + "\n";
  const Folder folder;
  std::vector<std::string> warnings;
  folder.write("x.tsv", "text\tlabel\n" + lines);
  const TextDataset data = read_text_dataset(folder / "x.tsv", 0.1, 1, &warnings);
  CHECK(data.classes.size() == 100'000);
  CHECK(data.train.size() == 100'000);
  REQUIRE(warnings.size() == 3);
  CHECK(warnings[0] == folder / "x.tsv: 100000 classes among 100000 texts; are these the labels?");
}

TEST_CASE("labels: whole numbers in order of value, names in byte order") {
  const Folder folder;
  const auto classes = [&](const std::string& bytes) {
    return read_text_dataset(folder.write("x.tsv", "text\tlabel\n" + bytes), 0, 1).classes;
  };
  CHECK(classes("a\t10\nb\t9\nc\t-1\n") == std::vector<std::string>{"-1", "9", "10"});
  CHECK(classes("a\t10\nb\t9\nc\tx\n") == std::vector<std::string>{"10", "9", "x"});
  CHECK(classes("a\tpos\nb\tneg\n") == std::vector<std::string>{"neg", "pos"});
}

TEST_CASE("splits of one table: seeded, in proportion, nothing lost or twice") {
  const Folder folder;
  folder.write("x.tsv", numbered_table(400));
  const auto read = [&](double share, uint64_t seed) { return read_text_dataset(folder / "x.tsv", share, seed); };
  const TextDataset data = read(0.1, 1);
  CHECK(data.test.size() == 40);
  CHECK(count_label(data.test, 1) == 10);
  CHECK(data.validation.size() == 36);
  CHECK(count_label(data.validation, 1) == 9);
  CHECK(data.train.size() == 324);
  std::set<std::string> all = texts_of(data.train);
  all.merge(texts_of(data.validation));
  all.merge(texts_of(data.test));
  CHECK(all.size() == 400);

  CHECK(texts_of(read(0.1, 1).validation) == texts_of(data.validation));
  CHECK(texts_of(read(0.1, 2).validation) != texts_of(data.validation));
  CHECK(texts_of(read(0.1, 2).test) != texts_of(data.test));
  CHECK(texts_of(read(0.5, 1).test) == texts_of(data.test));  // whatever the validation share
  CHECK(read(0, 1).validation.empty());
  CHECK_THROWS_AS(read(0.6, 1), UsageError);
  CHECK_THROWS_AS(read(-0.1, 1), UsageError);
}

TEST_CASE("splits: of each class one stretch of neighbours is drawn") {
  const Folder folder;
  std::string lines = "text\tlabel\n";
  for (int i = 0; i < 400; i++) lines += std::to_string(i) + "\t" + (i % 2 ? "odd" : "even") + "\n";
  folder.write("x.tsv", lines);
  const TextDataset data = read_text_dataset(folder / "x.tsv", 0.1, 1);
  const std::set<std::string> validation = texts_of(data.validation), test = texts_of(data.test);
  for (int first : {0, 1}) {
    std::vector<bool> drawn;  // of the class's texts that are not for the test, in their order
    for (int i = first; i < 400; i += 2) {
      if (!test.count(std::to_string(i))) drawn.push_back(validation.count(std::to_string(i)) == 1);
    }
    CHECK(std::count(drawn.begin(), drawn.end(), true) == 18);
    int ends = 0;  // the last text's neighbour is the first
    for (size_t i = 0; i < drawn.size(); i++) ends += drawn[i] != drawn[(i + 1) % drawn.size()];
    CHECK(ends == 2);
  }
}

TEST_CASE("splits: every class of two or more keeps a training text; too few texts are told") {
  const Folder folder;
  std::string lines = "text\tlabel\n";
  for (int i = 0; i < 40; i++) lines += "t\tc" + std::to_string(i / 2) + "\n";
  folder.write("x.tsv", lines + "t\tonly\n");
  const TextDataset data = read_text_dataset(folder / "x.tsv", 0.5, 1);
  for (int32_t label = 0; label < 21; label++) CHECK(count_label(data.train, label) >= 1);

  std::vector<std::string> warnings;
  folder.write("x.tsv", "good\t1\nbad\t0\n");
  CHECK(read_text_dataset(folder / "x.tsv", 0.1, 1, &warnings).train.size() == 2);
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[1] == folder / "x.tsv: 2 texts are too few to draw a validation split");
}

TEST_CASE("folders of tables: with and without a prefix, columns as in training") {
  const Folder folder;
  folder.write("train.tsv", "1\tgood\n0\tbad\n0\tdull\n");
  folder.write("valid.tsv", "0\t1\n");
  folder.write("test.tsv", "text\tlabel\nso\t1\n");
  folder.write("README.md", "train\n");
  const TextDataset data = read_text_dataset(folder.path, 0.5, 1);
  CHECK(data.train.size() == 3);
  REQUIRE(data.validation.size() == 1);
  CHECK(data.validation[0].text == "1");
  CHECK(data.validation[0].label == 0);
  REQUIRE(data.test.size() == 1);
  CHECK(data.test[0].text == "so");

  folder.write("dev.txt", "0\t1\n");
  CHECK(reading(folder, ".") == "both ./dev.txt and ./valid.tsv could be meant; please keep one");
  fs::remove(folder / "dev.txt");
  folder.write("valid.tsv", "0\tbad\n2\tgood\n");
  CHECK(reading(folder, ".") == "./valid.tsv:2: label \"2\" is not one of the classes \"0\", \"1\"");

  for (const char* part : {"train", "dev", "test"}) folder.write("sst/sentiment-"s + part, numbered_table(8));
  const TextDataset sst = read_text_dataset(folder / "sst", 0.5, 1);
  CHECK(sst.train.size() + sst.validation.size() + sst.test.size() == 24);
}

TEST_CASE("examples for evaluation: a file, a test split, a folder of classes") {
  const Folder folder;
  write_reviews(folder, "train", 2);
  const std::vector<std::string> classes{"neg", "pos"};
  const std::string file = folder.write("x.tsv", "good\tpos\nfine\tpos\n");
  CHECK(count_label(read_examples(file, classes), 1) == 2);
  CHECK(read_examples(folder / "train", classes).size() == 4);
  CHECK(outcome(folder, [&] { read_examples(folder / ".", classes); }) == "no test split in .");
  write_reviews(folder, "test", 3);
  CHECK(read_examples(folder.path, classes).size() == 6);
  CHECK(outcome(folder, [&] { read_examples("reviews", classes); }).ends_with("is not one of the classes \"neg\", \"pos\""));
  CHECK(read_examples("reviews", {"negative", "positive"})[0].label != read_examples("reviews", {"positive", "negative"})[0].label);
  CHECK(outcome(folder, [&] {
          read_examples(file, {"0", "1"});
        }) == "x.tsv:1: label \"pos\" is not one of the classes \"0\", \"1\"");
}

TEST_CASE("texts without words, with break tags or with odd bytes go all the way to ids") {
  const Folder folder;
  folder.write("train/neg/1.txt", "<br /><br />");
  folder.write("train/neg/2.txt", "\0\0\xFF"s);
  folder.write("train/pos/1.txt", "");
  folder.write("train/pos/2.txt", "\xEF\xBB\xBFGood<br />film");
  const TextDataset data = read_text_dataset(folder.path, 0, 1);
  const Vocabulary vocabulary = build_vocabulary(data.train, 100, 1);
  REQUIRE(data.train.size() == 4);
  for (int i = 0; i < 3; i++) CHECK(vocabulary.encode(data.train[i].text, 8) == std::vector<int32_t>{1});
  CHECK(vocabulary.encode(data.train[3].text, 8) == std::vector<int32_t>{3, 2});
}
