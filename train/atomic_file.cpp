#include "train/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tensor/error.h"

namespace heed::train {

namespace fs = std::filesystem;

namespace {

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// The file that a chain of symbolic links leads to, whether it is there or not.
std::string followed(fs::path path, std::error_code& error) {
  for (int links = 0; links < 40; links++) {
    const fs::path next = fs::read_symlink(path, error);
    if (error) return fs::weakly_canonical(path, error).string();
    path = path.parent_path() / next;
  }
  error = std::make_error_code(std::errc::too_many_symbolic_link_levels);
  return "";
}

// Temporaries are called ".NAME.PID-COUNT.tmp": hidden, beside the target, and no longer than a file name may be.
std::string temporary_prefix(const std::string& target) {
  return "." + fs::path(target).filename().string().substr(0, 200) + ".";
}

std::string temporary_path(const std::string& target) {
  static std::atomic<unsigned> count{0};
  return folder_of(target) + text("/", temporary_prefix(target), getpid(), "-", count++, ".tmp");
}

bool is_temporary_name(const std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix) || !name.ends_with(".tmp") || name.size() <= prefix.size() + 4) return false;
  const std::string middle = name.substr(prefix.size(), name.size() - prefix.size() - 4);
  return middle.find_first_not_of("0123456789-") == middle.npos;
}

// A process that was killed leaves its temporary behind. One that still writes holds a lock on it.
void remove_leftovers(const std::string& target) {
  const std::string prefix = temporary_prefix(target);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_of(target), ignored)) {
    if (!is_temporary_name(entry.path().filename().string(), prefix)) continue;
    const int file = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) unlink(entry.path().c_str());
    close(file);
  }
}

// Makes a rename last through a power cut. File systems that cannot flush a folder say so with EINVAL.
int flush_folder(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return 0;  // a folder that may be written but not read
  const int error = fsync(descriptor) != 0 && errno != EINVAL ? errno : 0;
  close(descriptor);
  return error;
}

// A copy of this program's own output if that is what `file` is (/dev/stdout, whatever it is connected to), else -1.
int own_output(const struct stat& file) {
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat own {};
    if (fstat(descriptor, &own) == 0 && own.st_dev == file.st_dev && own.st_ino == file.st_ino) {
      return fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    }
  }
  return -1;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  if (path.empty()) fail(ENOENT);
  struct stat old {};
  const bool exists = stat(path.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) fail(EISDIR);
  if (exists && access(path.c_str(), W_OK) != 0) fail(errno);  // a write-protected file is not replaced
  if (exists && (file_ = own_output(old)) >= 0) return;
  if (exists && !S_ISREG(old.st_mode)) {
    file_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file_ < 0) fail(errno);
    return;
  }
  std::error_code error;
  target_ = followed(path, error);
  if (error) fail(error.value());
  open_temporary(exists ? old.st_mode & 0777 : 0666);
  if (exists && fchmod(file_, old.st_mode & 0777) != 0) return;  // file systems without permissions refuse: no harm
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::open_temporary(unsigned permissions) {
  remove_leftovers(target_);
  do {
    temporary_ = temporary_path(target_);
    file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions);
  } while (file_ < 0 && errno == EEXIST);
  if (file_ < 0) {
    const int error = errno;
    temporary_.clear();
    fail(error);
  }
  flock(file_, LOCK_EX | LOCK_NB);  // says that it is in use; a file system without locks does no harm
}

void AtomicFile::write(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(file_, from, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    from += written;
    bytes -= static_cast<size_t>(written);
  }
}

void AtomicFile::commit() {
  if (temporary_.empty()) {
    const int file = std::exchange(file_, -1);
    if (close(file) != 0 && errno != EINTR) fail(errno);
    return;
  }
  if (fsync(file_) != 0 || rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
  discard();
  if (const int error = flush_folder(folder_of(target_))) fail(error);
}

void AtomicFile::fail(int error) {
  discard();
  throw FileError(text("cannot write \"", path_, "\": ", std::strerror(error)));
}

void AtomicFile::discard() {
  if (file_ >= 0) close(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
  file_ = -1;
  temporary_.clear();
}

void write_text_file(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

}  // namespace heed::train
