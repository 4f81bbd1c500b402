// The JSON lines that the program writes, and those that it reads back, all in one file: each file that includes
// nlohmann-json takes seconds to compile. (The header of a safetensors file is read and written in safetensors_header.cpp.)
#pragma once
#include <string>
#include <vector>

#include "train/bench.h"
#include "train/log.h"
#include "train/metrics.h"
#include "train/text_model.h"

namespace heed::train {

std::string to_json(const EpochRecord& record);
EpochRecord epoch_record(const std::string& line);  // FileError if it is none

// The same of all epochs, as one array and without the seconds, which differ from run to run.
std::string history_json(const std::vector<EpochRecord>& records);
std::vector<EpochRecord> history(const std::string& json);  // FileError if it is none

std::string to_json(const Metrics& metrics, const std::vector<std::string>& classes);
std::string to_json(const BenchFigure& figure);
std::string to_json(const Prediction& prediction, const std::string& text, const std::vector<std::string>& classes);

}  // namespace heed::train
