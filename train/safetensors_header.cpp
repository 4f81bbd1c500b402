#include "train/safetensors_header.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "tensor/error.h"
#include "train/utf8.h"

namespace heed::train {

using nlohmann::json;

namespace {

struct Dtype {
  const char* name;
  uint64_t bits;
};

constexpr Dtype kDtypes[] = {{"U64", 64}, {"I64", 64},    {"F64", 64},    {"C64", 64},    {"F32", 32},
                             {"U32", 32}, {"I32", 32},    {"BF16", 16},   {"F16", 16},    {"U16", 16},
                             {"I16", 16}, {"F8_E8M0", 8}, {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"I8", 8},
                             {"U8", 8},   {"F6_E3M2", 6}, {"F6_E2M3", 6}, {"F4", 4},      {"BOOL", 8}};

// Reads the JSON as it is parsed, event by event, without a tree: so a key that occurs twice is seen, and nesting
// deeper than the format's is refused where it starts. The parser itself keeps its stack on the heap.
class HeaderReader final : public json::json_sax_t {
 public:
  explicit HeaderReader(const std::string& path) : path_(path) {}

  SafetensorsHeader header;

  bool start_object(std::size_t) override {
    if (in_ == In::Nothing) return enter(In::Header);
    if (in_ == In::Header) return enter(name_ == kMetadataKey ? In::Metadata : In::Entry);
    unexpected("an object");
  }
  bool end_object() override {
    if (in_ == In::Entry) check_complete();
    return enter(In::Header);
  }
  bool start_array(std::size_t) override {
    if (in_ == In::Entry && field_ == "shape") return enter(In::Shape);
    if (in_ == In::Entry && field_ == "data_offsets") return enter(In::Offsets);
    unexpected("an array");
  }
  bool end_array() override { return enter(In::Entry); }

  bool key(std::string& key) override {
    if (in_ == In::Header) return start_entry(key);
    field_ = key;
    if (in_ == In::Metadata) {
      if (!header.metadata.try_emplace(key).second) fail("its metadata holds the key ", in_quotes(key), " twice");
      return true;
    }
    if (key != "dtype" && key != "shape" && key != "data_offsets") fail_entry("has the unknown field ", in_quotes(key));
    if (!fields_.insert(key).second) fail_entry("has the field ", in_quotes(key), " twice");
    return true;
  }
  bool string(std::string& value) override {
    if (in_ == In::Metadata) {
      header.metadata[field_] = value;
    } else if (in_ == In::Entry && field_ == "dtype") {
      entry_->dtype = value;
    } else {
      unexpected("a string");
    }
    return true;
  }
  bool number_unsigned(uint64_t value) override {
    if (in_ == In::Shape) {
      if (value > std::numeric_limits<int64_t>::max()) fail_entry("has the size ", value, " in its shape");
      entry_->shape.push_back(static_cast<int64_t>(value));
    } else if (in_ == In::Offsets) {
      if (offsets_ == 2) fail_entry("has more than two data_offsets");
      (offsets_++ == 0 ? entry_->begin : entry_->end) = value;
    } else {
      unexpected("a number");
    }
    return true;
  }
  bool number_integer(int64_t value) override { unexpected(text("the negative number ", value)); }
  bool number_float(double, const std::string& digits) override { unexpected("the number " + in_quotes(digits)); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool null() override { unexpected("null"); }
  bool binary(json::binary_t&) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    fail("its header is not valid JSON at byte ", 8 + std::max<std::size_t>(position, 1) - 1);
  }

 private:
  enum class In { Nothing, Header, Metadata, Entry, Shape, Offsets };

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... why) {
    throw FileError(text("cannot read \"", path_, "\": ", why...));
  }
  template <class... Parts>
  [[noreturn]] void fail_entry(const Parts&... why) {
    fail("entry ", in_quotes(name_), " ", why...);
  }
  [[noreturn]] void unexpected(const std::string& what) {
    if (in_ == In::Metadata) fail("its metadata holds ", what, " for ", in_quotes(field_), ", which must be a string");
    if (in_ == In::Header) fail_entry("is ", what, ", not an object");
    fail_entry("has ", what, " in its ", field_);
  }

  bool enter(In in) {
    in_ = in;
    return true;
  }
  bool start_entry(const std::string& name) {
    name_ = name;
    if (name == kMetadataKey) {
      if (std::exchange(has_metadata_, true)) fail_entry("occurs twice");
      return true;
    }
    const auto [place, is_new] = header.entries.try_emplace(name);
    if (!is_new) fail_entry("occurs twice");
    entry_ = &place->second;
    fields_.clear();
    offsets_ = 0;
    return true;
  }
  void check_complete() {
    for (const char* field : {"dtype", "shape", "data_offsets"}) {
      if (!fields_.count(field)) fail_entry("has no ", field);
    }
    if (offsets_ < 2) fail_entry("has fewer than two data_offsets");
  }

  const std::string& path_;
  In in_ = In::Nothing;
  std::string name_, field_;  // of the entry and its field, or of the metadata and its key
  HeaderEntry* entry_ = nullptr;
  std::set<std::string> fields_;
  int offsets_ = 0;
  bool has_metadata_ = false;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view json_text) {
  const auto refuse = [&](const char* why, size_t at) {
    throw FileError(text("cannot read \"", path, "\": ", why, " at byte ", 8 + at));
  };
  if (json_text.empty() || json_text[0] != '{') refuse("it is not a safetensors file: its header does not start with '{'", 0);
  if (const size_t at = find_invalid_utf8(json_text); at != json_text.npos) refuse("its header is not UTF-8", at);
  // The parser would take a zero byte for the end.
  if (const size_t at = json_text.find('\0'); at != json_text.npos) refuse("its header is not valid JSON", at);
  HeaderReader reader(path);
  json::sax_parse(json_text.begin(), json_text.end(), &reader);
  return std::move(reader.header);
}

std::string safetensors_header_json(const std::vector<std::pair<std::string, HeaderEntry>>& entries,
                                    const std::map<std::string, std::string>& metadata) {
  std::string out = "{";
  if (!metadata.empty()) out += text('"', kMetadataKey, "\":", json(metadata).dump(), entries.empty() ? "" : ",");
  for (size_t i = 0; i < entries.size(); i++) {
    const auto& [name, entry] = entries[i];
    out += text(i ? "," : "", json(name).dump(), ":{\"dtype\":\"", entry.dtype,
                "\",\"shape\":", json(entry.shape).dump(), ",\"data_offsets\":[", entry.begin, ",", entry.end, "]}");
  }
  return out + "}";
}

int dtype_rank(const std::string& dtype) {
  const auto* found =
      std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const Dtype& d) { return dtype == d.name; });
  return found == std::end(kDtypes) ? -1 : static_cast<int>(found - kDtypes);
}

uint64_t checked_bytes(const std::string& subject, const std::string& dtype, const std::vector<int64_t>& shape) {
  const int rank = dtype_rank(dtype);
  if (rank < 0) throw FileError(text(subject, " has the unknown dtype ", in_quotes(dtype)));
  // A size of 0 does not excuse others that overflow: strides are products of them too.
  uint64_t bits = kDtypes[rank].bits;
  bool is_empty = false;
  for (const int64_t size : shape) {
    if (size < 0) throw FileError(text(subject, " has a negative size in its shape ", shape_text(shape)));
    if (size == 0) is_empty = true;
    if (size > 0 && bits > std::numeric_limits<int64_t>::max() / static_cast<uint64_t>(size)) {
      throw FileError(text(subject, " has a shape whose product overflows: ", shape_text(shape)));
    }
    if (size > 0) bits *= static_cast<uint64_t>(size);
  }
  if (is_empty) return 0;
  if (bits % 8) throw FileError(text(subject, " ends within a byte: ", dtype, " of shape ", shape_text(shape)));
  return bits / 8;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size() && i < 10; i++) out += text(i ? ", " : "", shape[i]);
  return out + (shape.size() > 10 ? ", ...]" : "]");
}

}  // namespace heed::train
