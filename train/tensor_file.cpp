#include "train/tensor_file.h"

#include <cstring>

#include "train/safetensors.h"

namespace heed::train {

namespace {

struct DTypeName {
  DType dtype;
  const char* name;
};
constexpr DTypeName kNames[] = {{DType::f32, "F32"}, {DType::f64, "F64"}, {DType::f16, "F16"}, {DType::bf16, "BF16"}, {DType::i32, "I32"}};

std::string file_name(DType dtype) {
  for (const DTypeName& n : kNames) {
    if (n.dtype == dtype) return n.name;
  }
  return "";
}

DType dtype_from(const std::string& name, const std::string& path, const std::string& entry) {
  for (const DTypeName& n : kNames) {
    if (name == n.name) return n.dtype;
  }
  throw FileError(path + ": tensor \"" + entry + "\" is " + name + "; heed reads F32, F64, F16, BF16 and I32");
}

}  // namespace

void save_tensors(const std::string& path, const TensorFile& file) {
  std::map<std::string, RawTensor> raw;
  std::map<std::string, std::vector<std::byte>> bytes;
  for (const auto& [name, tensor] : file.tensors) {
    const Tensor x = tensor.to_contiguous();
    std::vector<std::byte>& host = bytes[name];
    host.resize(static_cast<size_t>(x.numel()) * size_of(x.dtype()));
    if (!host.empty()) x.device().download(host.data(), x.view().data, host.size());
    raw[name] = {file_name(x.dtype()), std::vector<int64_t>(x.shape().begin(), x.shape().end()), host.data(), host.size()};
  }
  write_safetensors(path, raw, file.metadata);
}

TensorFile load_tensors(const std::string& path) {
  const SafetensorsFile file(path);
  TensorFile out;
  out.metadata = file.metadata();
  for (const auto& [name, raw] : file.tensors()) {
    if (raw.shape.size() > static_cast<size_t>(kMaxRank)) {
      throw FileError(text(path, ": tensor \"", name, "\" has ", raw.shape.size(), " axes; heed has at most ", kMaxRank));
    }
    Tensor x(Shape(raw.shape), dtype_from(raw.dtype, path, name));
    if (raw.bytes > 0) x.device().upload(x.view().data, raw.data, raw.bytes);
    out.tensors[name] = x;
  }
  return out;
}

}  // namespace heed::train
