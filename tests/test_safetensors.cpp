#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <string_view>

#include "tensor/error.h"
#include "tests/message_of.h"
#include "tests/temporary_folder.h"
#include "train/atomic_file.h"
#include "train/safetensors.h"

using namespace heed;
using namespace heed::train;
using heed::tests::message_of;
namespace fs = std::filesystem;
using namespace std::string_view_literals;

namespace {

struct Folder : heed::tests::TemporaryFolder {
  size_t count() const { return static_cast<size_t>(std::distance(fs::directory_iterator(path), {})); }
};

std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string little_endian(uint64_t number) {
  std::string out(8, '\0');
  std::memcpy(out.data(), &number, 8);
  return out;
}

// A file with this header and `data_bytes` bytes behind it.
std::string file_of(const std::string& json, size_t data_bytes = 0) {
  return little_endian(json.size()) + json + std::string(data_bytes, '\0');
}

// The message with which a file of these bytes is refused; "" if it is accepted.
std::string refusal(const Folder& folder, const std::string& bytes) {
  const std::string path = folder / "file.safetensors";
  write_bytes(path, bytes);
  try {
    SafetensorsFile file(path);
    return "";
  } catch (const FileError& error) { return error.what(); }
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

template <class T>
RawTensor raw(const std::string& dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  return {dtype, std::move(shape), reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)};
}

std::string bytes_of(const RawTensor& tensor) { return {reinterpret_cast<const char*>(tensor.data), tensor.bytes}; }

// {"a": F32 (2, 3), "b": U8 (3)} with one entry of metadata: small, but with everything in it.
std::string small_file() {
  return file_of(R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                 R"("b":{"dtype":"U8","shape":[3],"data_offsets":[24,27]}}  )",
                 27);
}

// {"a": {"dtype": "F32", "shape": [...], "data_offsets": [...]}} with 4 bytes behind.
std::string one_entry(const std::string& dtype, const std::string& shape, const std::string& offsets, size_t data = 4) {
  return file_of(R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}", data);
}

}  // namespace

TEST_CASE("safetensors: what is written comes back, every dtype") {
  const Folder folder;
  std::vector<unsigned char> bytes(64);
  for (size_t i = 0; i < bytes.size(); i++) bytes[i] = static_cast<unsigned char>(i * 37);
  std::map<std::string, RawTensor> tensors;
  for (const char* dtype : {"U64", "I64", "F64", "C64"}) tensors[dtype] = {dtype, {2, 4}, nullptr, 64};
  for (const char* dtype : {"F32", "U32", "I32"}) tensors[dtype] = {dtype, {16}, nullptr, 64};
  for (const char* dtype : {"BF16", "F16", "U16", "I16"}) tensors[dtype] = {dtype, {2, 4, 4}, nullptr, 64};
  for (const char* dtype : {"F8_E8M0", "F8_E4M3", "F8_E5M2", "I8", "U8", "BOOL"}) {
    tensors[dtype] = {dtype, {1, 64, 1}, nullptr, 64};
  }
  for (const char* dtype : {"F6_E3M2", "F6_E2M3"}) tensors[dtype] = {dtype, {4}, nullptr, 3};
  tensors["F4"] = {"F4", {2, 5}, nullptr, 5};
  for (auto& [name, tensor] : tensors) tensor.data = reinterpret_cast<const std::byte*>(bytes.data());

  write_safetensors(folder / "x.safetensors", tensors, {{"format", "pt"}, {"note", "line\nline \"quoted\" \\ \t\x01"}});
  const SafetensorsFile file(folder / "x.safetensors");
  REQUIRE(file.tensors().size() == tensors.size());
  for (const auto& named : tensors) {
    const auto& [name, tensor] = named;
    CAPTURE(named.first);
    CHECK(file.at(name).dtype == tensor.dtype);
    CHECK(file.at(name).shape == tensor.shape);
    CHECK(bytes_of(file.at(name)) == bytes_of(tensor));
  }
  CHECK(file.metadata() ==
        std::map<std::string, std::string>{{"format", "pt"}, {"note", "line\nline \"quoted\" \\ \t\x01"}});
}

TEST_CASE("safetensors: scalars, empty tensors, no tensors, names in any script, NaN and infinity") {
  const Folder folder;
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("1");
  const std::vector<float> values{nan, inf, -inf, -0.0f, 1e-42f, 3.5f};
  const std::vector<double> scalar{42.25};
  const std::vector<float> none;
  const std::map<std::string, RawTensor> tensors{
      {"scalar", raw("F64", {}, scalar)},
      {"empty", raw("F32", {0}, none)},
      {"empty rows", raw("F32", {3, 0, 5}, none)},
      {"", raw("F32", {6}, values)},
      {"注意.weight", raw("F32", {2, 3}, values)},
      {"\"quoted\"\\\n", raw("F32", {6, 1}, values)},
      {std::string("zero\0byte", 9), raw("F32", {1, 6}, values)},
  };
  write_safetensors(folder / "x.safetensors", tensors);
  const SafetensorsFile file(folder / "x.safetensors");
  REQUIRE(file.tensors().size() == tensors.size());
  for (const auto& [name, tensor] : tensors) {
    CHECK(file.at(name).shape == tensor.shape);
    CHECK(bytes_of(file.at(name)) == bytes_of(tensor));  // bits, so that NaN counts
  }
  CHECK(file.metadata().empty());

  write_safetensors(folder / "none.safetensors", {});
  CHECK(read_bytes(folder / "none.safetensors") == little_endian(8) + "{}      ");
  CHECK(SafetensorsFile(folder / "none.safetensors").tensors().empty());
}

TEST_CASE("safetensors: the layout is the reference writer's") {
  const Folder folder;
  const std::vector<unsigned char> bytes(24);
  // Widest dtype first, then by name; the header padded with spaces to a multiple of 8.
  write_safetensors(folder / "x.safetensors",
                    {{"a", raw("U8", {1}, std::vector<unsigned char>{7})},
                     {"c", {"F32", {2}, reinterpret_cast<const std::byte*>(bytes.data()), 8}},
                     {"b", {"F32", {}, reinterpret_cast<const std::byte*>(bytes.data()), 4}},
                     {"d", {"I64", {0}, nullptr, 0}}},
                    {{"k", "v"}});
  const std::string json =
      R"({"__metadata__":{"k":"v"},"d":{"dtype":"I64","shape":[0],"data_offsets":[0,0]},)"
      R"("b":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"c":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"
      R"("a":{"dtype":"U8","shape":[1],"data_offsets":[12,13]}})";
  const std::string padded = json + std::string((8 - json.size() % 8) % 8, ' ');
  CHECK(read_bytes(folder / "x.safetensors") == little_endian(padded.size()) + padded + std::string(12, '\0') + '\7');
}

TEST_CASE("safetensors: what other writers may do is read") {
  const Folder folder;
  const auto accepted = [&](const std::string& bytes) { CHECK(refusal(folder, bytes) == ""); };
  accepted(small_file());
  accepted(one_entry("\"F32\"", "[]", "[0,4]"));
  accepted(one_entry("\"F32\"", "[1,1,1]", "[0,4]"));
  accepted(one_entry("\"F32\"", "[0,1000000,1000000]", "[0,0]", 0));
  accepted(file_of("{}"));
  accepted(file_of("{ }  \t\r\n"));
  accepted(file_of(R"({"__metadata__":{}})"));
  accepted(file_of(
      R"({"b":{"shape":[1],"data_offsets":[1,2],"dtype":"U8"},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
      2));
  accepted(file_of(R"({"\u00e9\ud83d\ude00":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})"));
  // Empty tensors share their place with the next one.
  accepted(file_of(
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
      R"("c":{"dtype":"U8","shape":[0,2],"data_offsets":[1,1]}})",
      1));
}

// Tables of plain pointers: arrays of std::string take a sanitizer build minutes to compile.
struct BadHeader {
  const char* name;
  std::string_view json;
  size_t data;  // bytes behind the header
  const char* reason;
};

constexpr BadHeader kBadHeaders[] = {
    {"not UTF-8", "{\"\xff\":1}", 0, "not UTF-8 at byte 10"},
    {"overlong UTF-8", "{\"\xc0\xaf\":1}", 0, "not UTF-8 at byte 10"},
    {"nothing", "", 0, "start with '{'"},
    {"an array", "[]", 0, "start with '{'"},
    {"leading space", " {}", 0, "start with '{'"},
    {"byte order mark", "\xef\xbb\xbf{}", 0, "start with '{'"},
    {"not JSON", "{hello}", 0, "not valid JSON at byte 9"},
    {"JSON cut short", "{\"a\":", 0, "not valid JSON at byte 13"},
    {"padded with zero bytes", "{}\0\0"sv, 0, "not valid JSON at byte 10"},
    {"something hidden behind a zero byte", "{}\0{\"a\":1}"sv, 0, "not valid JSON at byte 10"},
    {"two objects", "{}{}", 0, "not valid JSON at byte 10"},
    {"trailing comma", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},})", 1, "not valid JSON"},
    {"comment", "{/**/}", 0, "not valid JSON"},
    {"lone surrogate", R"({"\ud800":1})", 0, "not valid JSON"},
    {"control character in a name", "{\"a\nb\":1}", 0, "not valid JSON"},
    {"name twice", R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{}})", 0, "entry \"a\" occurs twice"},
    {"name twice, once escaped", R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u0061":{}})", 0,
     "entry \"a\" occurs twice"},
    {"metadata twice", R"({"__metadata__":{},"__metadata__":{}})", 0, "\"__metadata__\" occurs twice"},
    {"metadata key twice", R"({"__metadata__":{"k":"1","k":"2"}})", 0, "\"k\" twice"},
    {"metadata is a string", R"({"__metadata__":"x"})", 0, "\"__metadata__\" is a string"},
    {"metadata is null", R"({"__metadata__":null})", 0, "\"__metadata__\" is null"},
    {"metadata holds a number", R"({"__metadata__":{"k":1}})", 0, "must be a string"},
    {"metadata holds an object", R"({"__metadata__":{"k":{}}})", 0, "must be a string"},
    {"entry is a number", R"({"a":1})", 0, "\"a\" is a number"},
    {"entry is an array", R"({"a":["F32",[1],[0,4]]})", 4, "\"a\" is an array"},
    {"field twice", R"({"a":{"dtype":"U8","dtype":"F32","shape":[1],"data_offsets":[0,1]}})", 1, "\"dtype\" twice"},
    {"unknown field", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})", 1, "unknown field \"x\""},
    {"no dtype", R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1, "\"a\" has no dtype"},
    {"no shape", R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1, "\"a\" has no shape"},
    {"no offsets", R"({"a":{"dtype":"U8","shape":[1]}})", 1, "\"a\" has no data_offsets"},
    {"end before begin",
     R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", 1,
     "not end before"},
    {"a hole",
     R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})", 4,
     "must begin at 1"},
    {"an overlap",
     R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2,
     "must begin at 1"},
    {"bytes but no tensor", "{}", 1, "take 0 bytes, but 1 follow"},
};

struct BadEntry {
  const char *name, *dtype, *shape, *offsets;
  size_t data;
  const char* reason;
};

constexpr BadEntry kBadEntries[] = {
    {"unknown dtype", "\"F31\"", "[1]", "[0,4]", 4, "unknown dtype \"F31\""},
    {"dtype in small letters", "\"f32\"", "[1]", "[0,4]", 4, "unknown dtype"},
    {"dtype is a number", "32", "[1]", "[0,4]", 4, "a number in its dtype"},
    {"shape is a number", "\"F32\"", "1", "[0,4]", 4, "a number in its shape"},
    {"shape is null", "\"F32\"", "null", "[0,4]", 4, "null in its shape"},
    {"negative size", "\"F32\"", "[-1]", "[0,4]", 4, "negative number -1 in its shape"},
    {"fractional size", "\"F32\"", "[1.0]", "[0,4]", 4, "\"1.0\" in its shape"},
    {"size with exponent", "\"F32\"", "[1e0]", "[0,4]", 4, "in its shape"},
    {"size is a string", "\"F32\"", "[\"1\"]", "[0,4]", 4, "a string in its shape"},
    {"size is an array", "\"F32\"", "[[1]]", "[0,4]", 4, "an array in its shape"},
    {"size of 2^63", "\"F32\"", "[9223372036854775808]", "[0,4]", 4, "9223372036854775808"},
    {"size of 2^64", "\"F32\"", "[18446744073709551616]", "[0,4]", 4, "in its shape"},
    {"product overflows to 0", "\"F32\"", "[4294967296,4294967296]", "[0,0]", 0, "overflows"},
    {"product overflows to 4 bytes", "\"U8\"", "[6148914691236517205,3,4]", "[0,4]", 4, "overflows"},
    {"bytes overflow", "\"F64\"", "[2305843009213693952]", "[0,0]", 0, "overflows"},
    {"overflow beside a size of 0", "\"F32\"", "[0,4294967296,4294967296]", "[0,0]", 0, "overflows"},
    {"one offset", "\"F32\"", "[1]", "[4]", 4, "fewer than two data_offsets"},
    {"three offsets", "\"F32\"", "[1]", "[0,4,8]", 4, "more than two data_offsets"},
    {"negative offset", "\"F32\"", "[1]", "[-4,0]", 4, "negative number -4"},
    {"offset of 2^64", "\"F32\"", "[1]", "[0,18446744073709551616]", 4, "in its data_offsets"},
    {"offsets that wrap around", "\"F32\"", "[1]", "[18446744073709551612,0]", 4, "must begin at 0"},
    {"end near 2^64", "\"F32\"", "[1]", "[0,18446744073709551615]", 4, "needs 4"},
    {"shape larger than its bytes", "\"F32\"", "[2]", "[0,4]", 4, "has 4 bytes, but F32 of shape [2] needs 8"},
    {"shape smaller than its bytes", "\"U8\"", "[2]", "[0,4]", 4, "has 4 bytes, but U8 of shape [2] needs 2"},
    {"half a byte", "\"F4\"", "[3]", "[0,2]", 2, "ends within a byte"},
    {"first tensor not at 0", "\"F32\"", "[1]", "[4,8]", 8, "must begin at 0"},
    {"data cut short", "\"F32\"", "[1]", "[0,4]", 3, "take 4 bytes, but 3 follow"},
    {"bytes behind the last tensor", "\"F32\"", "[1]", "[0,4]", 5, "take 4 bytes, but 5 follow"},
};

TEST_CASE("safetensors: malformed files are refused with the reason") {
  const Folder folder;
  const auto refused = [&](const char* name, const std::string& bytes, const std::string& reason) {
    CAPTURE(std::string(name));
    const std::string message = refusal(folder, bytes);
    CAPTURE(message);
    CHECK(has(message, reason));
    CHECK(has(message, "file.safetensors\": "));
    CHECK(message.size() < 400);
    CHECK(message.find('\n') == message.npos);
  };
  refused("empty file", "", "0 bytes");
  refused("seven bytes", std::string(7, '\0'), "7 bytes");
  refused("a text", "this is a text", "not a safetensors file");
  refused("header over the limit", little_endian(100'000'001) + "{}", "limit of 100000000");
  refused("header size of 2^64-1", little_endian(UINT64_MAX) + "{}", "18446744073709551615 bytes");
  refused("header size of 2^63", little_endian(1ull << 63) + "{}", "9223372036854775808 bytes");
  refused("header longer than the file", little_endian(100) + "{}", "only 2 follow");
  refused("header of one byte too many", little_endian(3) + "{}", "only 2 follow");
  for (const BadHeader& bad : kBadHeaders) refused(bad.name, file_of(std::string(bad.json), bad.data), bad.reason);
  for (const BadEntry& bad : kBadEntries) {
    refused(bad.name, one_entry(bad.dtype, bad.shape, bad.offsets, bad.data), bad.reason);
  }
  std::string deep;
  for (int i = 0; i < 1'000'000; i++) deep += "{\"a\":";
  refused("a million objects, one in the other", file_of(deep), "unknown field \"a\"");
  refused("a million arrays, one in the other", one_entry("\"F32\"", std::string(1'000'000, '['), "[0,4]"),
          "an array in its shape");
}

TEST_CASE("safetensors: a file cut anywhere is refused") {
  const Folder folder;
  const std::string whole = small_file();
  REQUIRE(refusal(folder, whole) == "");
  for (size_t size = 0; size < whole.size(); size++) {
    CAPTURE(size);
    CHECK(refusal(folder, whole.substr(0, size)) != "");
  }
}

TEST_CASE("safetensors: whatever byte of the header is changed, what is accepted is sound") {
  const Folder folder;
  const std::string path = folder / "file.safetensors";
  const std::string whole = one_entry("\"U16\"", "[2]", "[0,4]");
  const size_t header_end = whole.size() - 4;
  write_bytes(path, whole);
  std::fstream bytes(path, std::ios::binary | std::ios::in | std::ios::out);
  const auto set = [&](size_t at, char value) { bytes.seekp(static_cast<std::streamoff>(at)).put(value).flush(); };
  int refused = 0, accepted = 0;
  for (size_t at = 0; at < header_end; at++) {
    for (int value = 0; value < 256; value++) {
      set(at, static_cast<char>(value));
      try {
        const SafetensorsFile file(path);
        accepted++;
        unsigned sum = 0;
        for (const auto& [name, tensor] : file.tensors()) {
          for (size_t i = 0; i < tensor.bytes; i++) sum += static_cast<unsigned>(tensor.data[i]);  // all are readable
        }
        CHECK(sum == 0);
      } catch (const FileError&) { refused++; }
    }
    set(at, whole[at]);
  }
  CHECK(refused > 200 * static_cast<int>(header_end));
  CHECK(accepted > 0);  // another letter in a name, for one
}

TEST_CASE("safetensors: an absent file, a folder, a pipe and an absent entry are named") {
  const Folder folder;
  CHECK(has(message_of<FileError>([&] { SafetensorsFile(folder / "absent"); }), "absent\": No such file or directory"));
  CHECK(has(message_of<FileError>([&] { SafetensorsFile(folder.path); }), "not a regular file"));
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(has(message_of<FileError>([&] { SafetensorsFile(folder / "pipe"); }), "not a regular file"));

  write_bytes(folder / "small", small_file());
  const SafetensorsFile file(folder / "small");
  CHECK(file.contains("a"));
  CHECK(!file.contains("fc.weight"));
  CHECK(has(message_of<FileError>([&] { file.at("fc.weight"); }), "no entry \"fc.weight\"; it has \"a\", \"b\""));
}

TEST_CASE("safetensors: tensors that do not fit their dtype and shape are not written") {
  const Folder folder;
  const std::vector<float> two{1, 2};
  const std::string path = folder / "x.safetensors";
  const auto message = [&](const std::string& name, const RawTensor& tensor) {
    return message_of<FileError>([&] { write_safetensors(path, {{name, tensor}}); });
  };
  CHECK(has(message("w", raw("F32", {3}, two)), "\"w\" has 8 bytes, but F32 of shape [3] needs 12"));
  CHECK(has(message("w", {"F32", {2}, nullptr, 8}), "\"w\" has 0 bytes"));
  CHECK(has(message("w", raw("float", {2}, two)), "unknown dtype \"float\""));
  CHECK(has(message("w", raw("F32", {-2}, two)), "negative size"));
  CHECK(has(message("w", raw("F32", {1ll << 32, 1ll << 32}, two)), "overflows"));
  CHECK(has(message("__metadata__", raw("F32", {2}, two)), "kept for metadata"));
  CHECK(has(message("\xff", raw("F32", {2}, two)), "not UTF-8"));
  CHECK(has(message_of<FileError>([&] { write_safetensors(path, {}, {{"k", "\xff"}}); }), "not UTF-8"));
  CHECK(folder.count() == 0);
}

TEST_CASE("safetensors: a file is saved over the one its tensors are mapped from") {
  const Folder folder;
  const std::string path = folder / "x.safetensors";
  std::vector<float> values(100'000);
  for (size_t i = 0; i < values.size(); i++) values[i] = static_cast<float>(i);
  write_safetensors(path, {{"w", raw("F32", {100'000}, values)}});
  const std::string before = read_bytes(path);

  const SafetensorsFile file(path);
  write_safetensors(path, file.tensors(), {{"again", "yes"}});
  CHECK(bytes_of(file.at("w")) == bytes_of(raw("F32", {100'000}, values)));  // the old mapping lives on
  CHECK(bytes_of(SafetensorsFile(path).at("w")) == bytes_of(file.at("w")));
  write_safetensors(path, file.tensors());
  CHECK(read_bytes(path) == before);
  CHECK(folder.count() == 1);
}

TEST_CASE("safetensors: a copy keeps the mapping alive") {
  const Folder folder;
  write_bytes(folder / "small", small_file());
  auto first = std::make_unique<SafetensorsFile>(folder / "small");
  const SafetensorsFile second = *first;
  first.reset();
  CHECK(bytes_of(second.at("a")) == std::string(24, '\0'));
}

TEST_CASE("atomic file: the old file survives until commit, and nothing else is left") {
  const Folder folder;
  const std::string path = folder / "file";
  write_text_file(path, "old");
  {
    AtomicFile file(path);
    file.write("half of the n");
    CHECK(read_bytes(path) == "old");
    CHECK(folder.count() == 2);
  }
  CHECK(read_bytes(path) == "old");
  CHECK(folder.count() == 1);
  write_text_file(path, "new");
  CHECK(read_bytes(path) == "new");
  CHECK(folder.count() == 1);
}

TEST_CASE("atomic file: what a killed process left is removed, what others are writing is not") {
  const Folder folder;
  write_bytes(folder / ".file.4711-0.tmp", "half");
  write_bytes(folder / ".file.mine.tmp", "not ours");
  write_bytes(folder / ".other.4711-0.tmp", "half");
  AtomicFile first(folder / "file");
  first.write("first");
  write_text_file(folder / "file", "second");
  CHECK(!fs::exists(folder / ".file.4711-0.tmp"));
  CHECK(fs::exists(folder / ".file.mine.tmp"));
  CHECK(fs::exists(folder / ".other.4711-0.tmp"));
  CHECK(read_bytes(folder / "file") == "second");
  first.commit();
  CHECK(read_bytes(folder / "file") == "first");
  CHECK(folder.count() == 3);
}

TEST_CASE("atomic file: a full disk is reported and harms nothing") {
  const Folder folder;
  const std::string path = folder / "x.safetensors";
  const std::vector<float> small(10, 1.0f), large(100'000, 2.0f);
  write_safetensors(path, {{"w", raw("F32", {10}, small)}});
  const std::string before = read_bytes(path);

  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit limit{64 * 1024, old.rlim_max};  // no file may grow larger: write() fails in the middle of the tensor
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &limit);
  const std::string message = message_of<FileError>([&] { write_safetensors(path, {{"w", raw("F32", {100'000}, large)}}); });
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);

  CHECK(message == "cannot write \"" + path + "\": File too large");
  CHECK(read_bytes(path) == before);
  CHECK(folder.count() == 1);
  CHECK(message_of<FileError>([&] { write_text_file("/dev/full", "x"); }) ==
        "cannot write \"/dev/full\": No space left on device");
  CHECK(fs::is_character_file("/dev/full"));  // a device is written to, not replaced
}

TEST_CASE("atomic file: folders that are absent or may not be written, and targets that cannot be replaced") {
  const Folder folder;
  CHECK(has(message_of<FileError>([&] { write_text_file(folder / "absent/file", "x"); }), "No such file or directory"));
  CHECK(has(message_of<FileError>([&] { write_text_file("", "x"); }), "No such file or directory"));
  fs::create_directory(folder / "inner");
  CHECK(has(message_of<FileError>([&] { write_text_file(folder / "inner", "x"); }), "Is a directory"));
  write_text_file(folder / "file", "x");
  CHECK(has(message_of<FileError>([&] { write_text_file(folder / "file/below", "x"); }), "Not a directory"));
  fs::create_symlink("loop", folder / "loop");
  CHECK(has(message_of<FileError>([&] { write_text_file(folder / "loop", "x"); }), "Too many levels of symbolic links"));
  CHECK(has(message_of<FileError>([&] { write_text_file(folder / std::string(300, 'n'), "x"); }), "File name too long"));
  CHECK(folder.count() == 3);
  if (geteuid() == 0) return;  // root may write anywhere
  fs::permissions(folder / "file", fs::perms::owner_read);
  CHECK(has(message_of<FileError>([&] { write_text_file(folder / "file", "y"); }), "Permission denied"));
  fs::permissions(folder.path, fs::perms::owner_read | fs::perms::owner_exec);
  CHECK(has(message_of<FileError>([&] { write_text_file(folder / "new", "y"); }), "Permission denied"));
  CHECK(read_bytes(folder / "file") == "x");
}

TEST_CASE("atomic file: permissions, links and long names") {
  const Folder folder;
  const auto permissions = [&](const std::string& name) { return fs::status(folder / name).permissions(); };
  const mode_t old = umask(027);
  write_text_file(folder / "new", "x");
  umask(old);
  CHECK(permissions("new") == fs::perms(0640));
  fs::permissions(folder / "new", fs::perms(0666));
  write_text_file(folder / "new", "y");
  CHECK(permissions("new") == fs::perms(0666));

  fs::create_directory(folder / "inner");
  write_text_file(folder / "inner/real", "old");
  fs::create_symlink("inner/real", folder / "link");
  write_text_file(folder / "link", "new");
  CHECK(fs::is_symlink(folder / "link"));
  fs::create_symlink("inner/not yet", folder / "dangling");
  write_text_file(folder / "dangling", "new");
  CHECK(fs::is_symlink(folder / "dangling"));
  CHECK(read_bytes(folder / "inner/not yet") == "new");
  CHECK(read_bytes(folder / "inner/real") == "new");

  const std::string longest(255, 'n');
  write_text_file(folder / longest, "x");
  CHECK(read_bytes(folder / longest) == "x");
  CHECK(folder.count() == 5);
}

TEST_CASE("atomic file: standard output is written to, not replaced, even where it is a file") {
  const Folder folder;
  std::fflush(stdout);
  const int old = dup(STDOUT_FILENO), file = open((folder / "out").c_str(), O_WRONLY | O_CREAT, 0600);
  dup2(file, STDOUT_FILENO);
  const bool before = write(STDOUT_FILENO, "before, ", 8) == 8;
  const std::string message = message_of<FileError>([] { write_text_file("/dev/stdout", "picture"); });
  const bool after = write(STDOUT_FILENO, ", after", 7) == 7;
  dup2(old, STDOUT_FILENO);
  close(old);
  close(file);
  CHECK((before && after));
  CHECK(message == "(nothing was thrown)");
  CHECK(read_bytes(folder / "out") == "before, picture, after");
}
