#include "train/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "tensor/error.h"
#include "train/atomic_file.h"
#include "train/safetensors_header.h"
#include "train/utf8.h"

namespace heed::train {

static_assert(std::endian::native == std::endian::little, "numbers are used as they lie in the file");

namespace {

using Entries = std::vector<std::pair<std::string, HeaderEntry>>;

template <class... Parts>
[[noreturn]] void fail_read(const std::string& path, const Parts&... why) {
  throw FileError(text("cannot read \"", path, "\": ", why...));
}

template <class... Parts>
[[noreturn]] void fail_write(const std::string& path, const Parts&... why) {
  throw FileError(text("cannot write \"", path, "\": ", why...));
}

std::shared_ptr<const std::byte> map_file(const std::string& path, size_t& bytes) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // not to wait for a pipe's other end
  if (file < 0) fail_read(path, std::strerror(errno));
  const std::shared_ptr<const int> closer(&file, [](const int* f) { close(*f); });

  struct stat status {};
  if (fstat(file, &status) != 0) fail_read(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail_read(path, "it is not a regular file");
  bytes = static_cast<size_t>(status.st_size);
  if (bytes < 8) fail_read(path, "it has ", bytes, " bytes, too few for a safetensors file");

  void* address = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  if (address == MAP_FAILED) fail_read(path, std::strerror(errno));
  return {static_cast<const std::byte*>(address),
          [bytes](const std::byte* p) { munmap(const_cast<std::byte*>(p), bytes); }};
}

// The tensors must lie one behind the other, without a hole or an overlap, and fill the rest of the file.
void check_layout(const std::string& path, const SafetensorsHeader& header, uint64_t data_bytes) {
  std::vector<const std::pair<const std::string, HeaderEntry>*> order;
  for (const auto& entry : header.entries) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  uint64_t expected = 0;
  for (const auto* named : order) {
    const HeaderEntry& entry = named->second;
    const std::string subject = text("cannot read \"", path, "\": entry ", in_quotes(named->first));
    if (entry.begin != expected || entry.end < entry.begin) {
      throw FileError(text(subject, " has the data_offsets [", entry.begin, ", ", entry.end, "], but must begin at ",
                           expected, " and not end before"));
    }
    const uint64_t bytes = checked_bytes(subject, entry.dtype, entry.shape);
    if (entry.end - entry.begin != bytes) {
      throw FileError(text(subject, " has ", entry.end - entry.begin, " bytes, but ", entry.dtype, " of shape ",
                           shape_text(entry.shape), " needs ", bytes));
    }
    expected = entry.end;
  }
  if (expected != data_bytes) {
    fail_read(path, "its tensors take ", expected, " bytes, but ", data_bytes, " follow the header");
  }
}

// Where each tensor goes. Checks what a reader will check, before any file is touched.
Entries lay_out(const std::string& path, const std::map<std::string, RawTensor>& tensors) {
  Entries entries;
  for (const auto& [name, tensor] : tensors) {
    const std::string subject = text("cannot write \"", path, "\": entry ", in_quotes(name));
    if (name == kMetadataKey) throw FileError(subject + " has the name that is kept for metadata");
    if (find_invalid_utf8(name) != name.npos) throw FileError(subject + " has a name that is not UTF-8");
    const uint64_t bytes = checked_bytes(subject, tensor.dtype, tensor.shape);
    if (bytes != tensor.bytes || (bytes > 0 && !tensor.data)) {
      throw FileError(text(subject, " has ", tensor.data ? tensor.bytes : 0, " bytes, but ", tensor.dtype, " of shape ",
                           shape_text(tensor.shape), " needs ", bytes));
    }
    entries.push_back({name, {tensor.dtype, tensor.shape, 0, bytes}});
  }
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return dtype_rank(a.second.dtype) < dtype_rank(b.second.dtype);
  });
  uint64_t at = 0;
  for (auto& [name, entry] : entries) {
    const uint64_t bytes = entry.end;
    if (bytes > UINT64_MAX - at) fail_write(path, "its tensors are larger than a file can be");
    entry.begin = at;
    entry.end = at += bytes;
  }
  return entries;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  size_t file_bytes = 0;
  mapping_ = map_file(path, file_bytes);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, mapping_.get(), 8);
  if (header_bytes > kMaxHeaderBytes) {
    fail_read(path, "it is not a safetensors file: its header would have ", header_bytes, " bytes (byte 0), more than the limit of ",
              kMaxHeaderBytes);
  }
  if (header_bytes > file_bytes - 8) {
    fail_read(path, "its header would have ", header_bytes, " bytes (byte 0), but only ", file_bytes - 8, " follow");
  }
  const std::string_view json(reinterpret_cast<const char*>(mapping_.get()) + 8, header_bytes);
  SafetensorsHeader header = parse_safetensors_header(path, json);
  check_layout(path, header, file_bytes - 8 - header_bytes);

  const std::byte* data = mapping_.get() + 8 + header_bytes;
  for (auto& [name, entry] : header.entries) {
    tensors_[name] = {entry.dtype, std::move(entry.shape), data + entry.begin, entry.end - entry.begin};
  }
  metadata_ = std::move(header.metadata);
}

const RawTensor& SafetensorsFile::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  std::string names;
  int listed = 0;
  for (const auto& [other, tensor] : tensors_) {
    names += (listed ? ", " : "") + in_quotes(other);
    if (++listed == 20) break;
  }
  if (tensors_.size() > 20) names += text(" and ", tensors_.size() - 20, " more");
  fail_read(path_, "it has no entry ", in_quotes(name), "; it has ", names.empty() ? "none" : names);
}

void write_safetensors(const std::string& path, const std::map<std::string, RawTensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  for (const auto& [key, value] : metadata) {
    if (find_invalid_utf8(key) != key.npos || find_invalid_utf8(value) != value.npos) {
      fail_write(path, "its metadata ", in_quotes(key), " is not UTF-8");
    }
  }
  const Entries entries = lay_out(path, tensors);
  std::string header = safetensors_header_json(entries, metadata);
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > kMaxHeaderBytes) {
    fail_write(path, "its header has ", header.size(), " bytes, more than the limit of ", kMaxHeaderBytes);
  }

  AtomicFile file(path);
  const uint64_t header_bytes = header.size();
  file.write(&header_bytes, 8);
  file.write(header);
  for (const auto& [name, entry] : entries) {
    const RawTensor& tensor = tensors.at(name);
    file.write(tensor.data, tensor.bytes);
  }
  file.commit();
}

}  // namespace heed::train
