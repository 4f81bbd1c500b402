// The JSON lines that the program writes, and the one kind that it reads back. All of nlohmann-json's dumping stands in
// json.cpp: every file that includes the library takes seconds to compile.
#pragma once
#include <string>
#include <vector>

#include "train/log.h"
#include "train/metrics.h"
#include "train/text_model.h"

namespace heed::train {

std::string to_json(const EpochRecord& record);
EpochRecord epoch_record(const std::string& json);  // FileError if it is none

std::string to_json(const Metrics& metrics, const std::vector<std::string>& classes);
std::string to_json(const Prediction& prediction, const std::string& text, const std::vector<std::string>& classes);

}  // namespace heed::train
