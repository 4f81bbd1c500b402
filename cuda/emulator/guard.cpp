// Says which thread of which kernel touched a guard page (guard=1), or that the host touched device memory.
#include <csignal>
#include <cstdio>
#include <string>

#include "cuda/emulator/block.h"
#include "cuda/emulator/memory.h"

namespace heed::emulated {

namespace {

struct sigaction handler_before;

// It runs in place of a kernel's or the host's own load or store, never within malloc, so it may use strings.
void on_fault(int, siginfo_t* info, void*) {
  const std::string where = describe_guarded(info->si_addr);
  if (!where.empty()) {
    const std::string who = running_thread();
    std::fprintf(stderr, "%s: access to %s\n", who.empty() ? "the host" : who.c_str(), where.c_str());
  }
  sigaction(SIGSEGV, &handler_before, nullptr);  // and fault again: a debugger or a core file stops at the very place
}

}  // namespace

void report_guard_faults() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGSEGV, &action, &handler_before) == 0;
  }();
  (void)installed;
}

}  // namespace heed::emulated
