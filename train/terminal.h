// Terminals: is there one, how wide, may it be coloured; and a progress bar.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace heed::train {

// Of a file descriptor (STDOUT_FILENO, STDERR_FILENO).
bool is_terminal(int file);    // and one that can move the cursor (TERM is not "dumb")
bool wants_colour(int file);   // a terminal, and NO_COLOR (https://no-color.org) is not set
int terminal_width(int file);  // columns; 80 where that is unknown

// Hands on what was printed so far; FileError if standard output cannot be written (a full disk).
void flush_output();

// "0:07", "12:34", "1:02:03"
std::string clock_text(double seconds);

// One line: "epoch 1/5 [######......]  52%  loss 0.432  acc 0.81  0:12 left", never wider than `width`.
std::string progress_line(const std::string& label, int64_t step, int64_t total, const std::string& info,
                          double seconds, int width);

// A progress bar on standard error, redrawn at most ten times a second. Prints nothing where that is not a terminal.
// The line is wiped when the bar is finished or destroyed.
class Progress {
 public:
  Progress(std::string label, int64_t total_steps, int file = 2);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(int64_t step, const std::string& info = "");  // steps done so far, and what to show with them
  void wipe();                                              // for a message; the next update draws the bar again
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  int64_t total_;
  int file_;
  bool active_, drawn_ = false;
  Clock::time_point start_ = Clock::now(), last_ = {};
};

}  // namespace heed::train
