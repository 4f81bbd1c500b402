// Safetensors files, without any tensor: names, shapes and bytes.
//
//   8 bytes   N, the header's size (little-endian)
//   N bytes   JSON: {"__metadata__": {"key": "value"}, "fc.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets":
//   [0, 24]}} the rest  the tensors' bytes, little-endian, C order; data_offsets are relative to its start
//
// The format and the checks are those of https://github.com/huggingface/safetensors.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace heed::train {

// One entry of a file.
struct RawTensor {
  std::string dtype;                // "F32", "F64", "F16", "BF16", "I32", "I64", "U8", ...: the format's own names
  std::vector<int64_t> shape;       // empty: a scalar
  const std::byte* data = nullptr;  // need not be aligned: a file's header may have any length
  size_t bytes = 0;
};

// A file, memory-mapped and checked in whole when opened: every entry it then shows lies inside the file and fits its
// dtype and shape. Copies share the mapping; a RawTensor is valid while one of them lives. (heed replaces files, never
// overwrites them, so the mapping outlasts a save to the same path; another program that shortens the file in place
// would end this one with SIGBUS.)
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);  // FileError: the path, and the byte or entry that is wrong

  const std::map<std::string, RawTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& path() const { return path_; }
  bool contains(const std::string& name) const { return tensors_.count(name) > 0; }
  const RawTensor& at(const std::string& name) const;  // FileError: what is there instead

 private:
  std::string path_;
  std::shared_ptr<const std::byte> mapping_;
  std::map<std::string, RawTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

// Laid out as the reference implementation does: entries by dtype, the widest first, then by name; the header padded
// with spaces to a multiple of 8. The file is replaced as a whole or not at all (see AtomicFile), so tensors may lie
// in the mapping of the very file that is written. FileError: a full disk and the like, or an entry whose bytes do
// not fit its dtype and shape.
void write_safetensors(const std::string& path, const std::map<std::string, RawTensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace heed::train
