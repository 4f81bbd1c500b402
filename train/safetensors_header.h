// The JSON header of a safetensors file, for train/safetensors.cpp.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace heed::train {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr const char* kMetadataKey = "__metadata__";

struct HeaderEntry {
  std::string dtype;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes, from the end of the header
};

struct SafetensorsHeader {
  std::map<std::string, HeaderEntry> entries;
  std::map<std::string, std::string> metadata;
};

// Checks the form: JSON, no key twice, the fields there and of their types. Not yet whether an entry fits its bytes.
// Throws FileError naming the byte or the entry; `path` is for the message, and `json` starts at byte 8 of that file.
SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view json);

std::string safetensors_header_json(const std::vector<std::pair<std::string, HeaderEntry>>& entries,
                                    const std::map<std::string, std::string>& metadata);

// Where a dtype stands in the order of the reference implementation's files (widest first); -1: unknown.
int dtype_rank(const std::string& dtype);

// Bytes that dtype and shape ask for, computed without overflow. FileError says what is wrong with them, preceded by
// `subject` (as in: cannot read "x": entry "fc.weight").
uint64_t checked_bytes(const std::string& subject, const std::string& dtype, const std::vector<int64_t>& shape);

std::string shape_text(const std::vector<int64_t>& shape);  // "[2, 3]"

}  // namespace heed::train
