// A labelled text collection, as every reader (folder, file, built-in grammar) returns it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace heed::train {

struct Example {
  std::string text;
  int32_t label = 0;  // index into TextDataset::classes
};

struct TextDataset {
  std::string name;                  // for messages: the folder, the file or "reviews"
  std::vector<std::string> classes;  // for reviews: {"negative", "positive"}
  std::vector<Example> train, validation, test;
  std::vector<Example> test_new;  // built-in reviews only: written with templates that training never saw
};

}  // namespace heed::train
