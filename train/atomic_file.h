// A file that appears whole or not at all.
#pragma once
#include <string>
#include <string_view>

namespace heed::train {

// Bytes go to a temporary file in the same folder; commit() flushes it to the disk and renames it over `path`. Until
// then `path` is untouched, whatever happens: a full disk, an exception, a crash, a lost power supply. It may even be
// mapped by the very process that replaces it. Every failure is a FileError with the path and the system's reason,
// and the temporary is removed; that of a process that was killed is removed by the next one to write the same path.
//
// A symbolic link stays one: the file it points to is replaced. A replaced file keeps its permissions; a new one gets
// the usual ones (umask). What cannot be renamed over is written directly: a device, a pipe, and this program's own
// output (/dev/stdout) even where that goes to a file.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();

 private:
  [[noreturn]] void fail(int error);
  void open_temporary(unsigned permissions);
  void discard();

  std::string path_;       // as the user wrote it, for messages
  std::string target_;     // path_ with symbolic links followed
  std::string temporary_;  // empty: written directly, or done
  int file_ = -1;
};

void write_text_file(const std::string& path, std::string_view content);

}  // namespace heed::train
