// Tensors by name in a safetensors file, with text beside them.
#pragma once
#include <map>
#include <string>

#include "tensor/tensor.h"

namespace heed::train {

struct TensorFile {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// The file is replaced as a whole or not at all. FileError with the path and the reason.
void save_tensors(const std::string& path, const TensorFile& file);
// On the default device, with the dtypes of the file. FileError for a file that is damaged or holds a dtype that heed lacks.
TensorFile load_tensors(const std::string& path);

}  // namespace heed::train
