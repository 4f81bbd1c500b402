// A stack of its own on which GPU threads run, and the switch from one stack to another.
#pragma once
#include <cstddef>
#include <cstdint>

namespace heed::emulated {

class Fiber {
 public:
  Fiber();                               // the caller's own stack
  explicit Fiber(void (*work)(Fiber&));  // a new stack; the first switch to it calls work, which never returns
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void switch_to(Fiber& next);  // returns when something switches back to this one
  bool owns_stack() const { return mapping_ != nullptr; }

 private:
  static void enter();
  void destroy_race_fiber();

  void* top_ = nullptr;  // where it goes on: its stack pointer (or a ucontext_t)
  void (*work_)(Fiber&) = nullptr;
  void* mapping_ = nullptr;  // of a new stack, with a guard page below it
  const void* bottom_ = nullptr;
  size_t size_ = 0;
  void* fake_stack_ = nullptr;  // AddressSanitizer's
  void* race_fiber_ = nullptr;  // ThreadSanitizer's
  bool entered_ = false;
};

// ThreadSanitizer, if the program was linked with it. It sees each fiber as a thread; nothing orders two of them but
// release and acquire.
namespace races {

bool detected();                          // is there a race detector?
void release(void* object);               // what this fiber did so far happens before ...
void acquire(void* object);               // ... what those that call this do from now on
void forget(void* memory, size_t bytes);  // earlier accesses no longer count

// While an Unseen lives, what its fiber does (the emulator's own bookkeeping) counts as no access; while a Seen lives
// within, it does. A new fiber begins unseen.
struct Unseen {
  Unseen();
  ~Unseen();
};
struct Seen {
  Seen();
  ~Seen();
};

}  // namespace races

}  // namespace heed::emulated
