// Text collections on disk.
//
// A folder in the layout of aclImdb, with any class names:      A folder of tables, with or without a prefix:
//   DIR/train/CLASS/*.txt                                         DIR/train.tsv             or NAME-train
//   DIR/test/CLASS/*.txt                                          DIR/test.tsv              or NAME-test
//   DIR/validation/CLASS/*.txt  (or valid, val, dev)              DIR/validation.tsv        (or valid, val, dev)
//
// Or one table, FILE.tsv: see read_table. What is missing is drawn from the training texts.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "train/dataset.h"

namespace heed::train {

// Reads all splits. Where there is no validation split, validation_share (0 to 0.5) of the training texts becomes one;
// where there is no test split, a tenth is set aside first. Both are drawn by `seed` with the same proportion of every
// class, as stretches of neighbouring texts. Classes are those of training: in order of value if all are whole numbers, else in byte order.
//
// FileError, with file and line where there is one, for what is not readable, not in this form, or has one class only.
// `warnings` receives sentences on what was done that one may not expect.
TextDataset read_text_dataset(const std::string& path, double validation_share, uint64_t seed,
                              std::vector<std::string>* warnings = nullptr);

// For evaluation with the classes of a model: the test split of the built-in reviews ("reviews"), every line of a file, the
// test split of a folder, or the texts of a folder that holds class folders itself. FileError for a label that is not among the classes.
std::vector<Example> read_examples(const std::string& path, const std::vector<std::string>& classes);

}  // namespace heed::train
