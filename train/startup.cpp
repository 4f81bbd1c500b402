#include "train/startup.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace heed::train {

bool has_room(size_t buffers, size_t rest) {
  void* taken[2 * kMostThreads];  // no heap: it is called before main
  buffers = std::min(buffers, 2 * kMostThreads);
  const auto map = [](size_t bytes) { return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); };
  size_t count = 0;
  while (count < buffers && (taken[count] = map(kBlasBuffer)) != MAP_FAILED) count++;
  void* const last = count == buffers ? map(rest) : MAP_FAILED;
  if (last != MAP_FAILED) munmap(last, rest);
  for (size_t i = 0; i < count; i++) munmap(taken[i], kBlasBuffer);
  return last != MAP_FAILED;
}

namespace {

// As soon as OpenBLAS is loaded it takes a buffer for each thread, and tries for ever where there is no room. So the room is tried
// before any library begins.
void try_room(int, char**, char** environment) {
  constexpr std::string_view kThreads = "OMP_NUM_THREADS=";
  cpu_set_t cores;
  size_t threads = sched_getaffinity(0, sizeof cores, &cores) == 0 ? static_cast<size_t>(CPU_COUNT(&cores)) : 1;
  for (; *environment; environment++) {
    const std::string_view variable = *environment;
    if (variable.substr(0, kThreads.size()) == kThreads) threads = static_cast<size_t>(std::max(1, std::atoi(*environment + kThreads.size())));
  }
  if (has_room(std::min<size_t>(threads, 64), 0x1000)) return;  // 64: what Debian's OpenBLAS has at most
  constexpr std::string_view kMessage = "heed: out of memory: the BLAS needs 128 MB of address space for each thread; set OMP_NUM_THREADS=1 or raise the limit (ulimit -v)\n";
  _exit(write(STDERR_FILENO, kMessage.data(), kMessage.size()) < 0 ? 2 : 1);
}
__attribute__((section(".preinit_array"), used)) void (*const before_libraries)(int, char**, char**) = try_room;

}  // namespace

void keep_standard_streams() {
  for (int stream = 0; stream <= 2; stream++) {
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", (stream == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);  // takes the lowest free number
  }
}

void spin_briefly(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  setenv("GOMP_SPINCOUNT", "10000", 1);
  execv("/proc/self/exe", argv);
}

}  // namespace heed::train
