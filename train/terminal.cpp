#include "train/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "tensor/error.h"
#include "train/utf8.h"

namespace heed::train {

namespace {

constexpr std::string_view kWipe = "\r\x1b[K";
constexpr int kLongestBar = 24, kShortestBar = 6;

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// A terminal that is gone or stuck is no reason to stop.
void print(int file, std::string_view line) {
  while (!line.empty()) {
    const ssize_t written = write(file, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    line.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

bool is_terminal(int file) { return isatty(file) == 1 && environment("TERM") != "dumb"; }

bool wants_colour(int file) { return is_terminal(file) && environment("NO_COLOR").empty(); }

int terminal_width(int file) {
  winsize size{};
  if (ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

void flush_output() {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return;
  throw FileError(text("cannot write standard output: ", std::strerror(errno ? errno : EIO)));
}

std::string clock_text(double seconds) {
  if (!(seconds >= 0 && seconds < 1e9)) return "?";
  const int64_t all = std::llround(seconds), hours = all / 3600, minutes = all / 60 % 60, rest = all % 60;
  const auto two = [](int64_t n) { return text(n < 10 ? "0" : "", n); };
  return hours > 0 ? text(hours, ':', two(minutes), ':', two(rest)) : text(minutes, ':', two(rest));
}

std::string progress_line(const std::string& label, int64_t step, int64_t total, const std::string& info,
                          double seconds, int width) {
  const double done = total > 0 ? std::clamp(static_cast<double>(step) / static_cast<double>(total), 0.0, 1.0) : 0;
  const std::string percent = text(static_cast<int>(done * 100), '%');
  std::string after = "  " + std::string(4 - percent.size(), ' ') + percent;
  if (!info.empty()) after += "  " + info;
  if (done > 0) after += "  " + clock_text(seconds * (1 - done) / done) + " left";

  const int room = width - display_width(label) - display_width(after) - 3;  // for the bar, without " []"
  if (room < kShortestBar) return shorten(label + after, std::max(width, 0));
  const int bar = std::min(room, kLongestBar), full = static_cast<int>(done * bar);
  return label + " [" + std::string(static_cast<size_t>(full), '#') +
         std::string(static_cast<size_t>(bar - full), '.') + ']' + after;
}

Progress::Progress(std::string label, int64_t total_steps, int file)
    : label_(std::move(label)), total_(total_steps), file_(file), active_(is_terminal(file)) {}

void Progress::update(int64_t step, const std::string& info) {
  if (!active_) return;
  const auto now = Clock::now();
  if (drawn_ && now - last_ < std::chrono::milliseconds(100)) return;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  // The last column stays free: some terminals wrap as soon as it is written.
  const int width = terminal_width(file_) - 1;
  print(file_, "\r" + progress_line(printable(label_), step, total_, printable(info), seconds, width) + "\x1b[K");
  last_ = now;
  drawn_ = true;
}

void Progress::wipe() {
  if (drawn_) print(file_, kWipe);
  drawn_ = false;
}

void Progress::finish() {
  wipe();
  active_ = false;
}

}  // namespace heed::train
