#include "cuda/emulator/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

#if !defined(__x86_64__) || defined(HEED_UCONTEXT)
#define HEED_UCONTEXT 1
#include <ucontext.h>
#endif

// The sanitizers' interfaces for programs that switch stacks. Weak: null in a program without that sanitizer, so the
// same object file serves all builds.
extern "C" {
__attribute__((weak)) void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, size_t size);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void* fake_stack, const void** old_bottom, size_t* old_size);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void* memory, size_t bytes);
__attribute__((weak)) void* __tsan_get_current_fiber();
__attribute__((weak)) void* __tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void* fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void* fiber, unsigned flags);
__attribute__((weak)) void __tsan_release(void* object);
__attribute__((weak)) void __tsan_acquire(void* object);
__attribute__((weak)) void __tsan_java_init(unsigned long begin, unsigned long size);
__attribute__((weak)) void __tsan_java_alloc(unsigned long begin, unsigned long size);
__attribute__((weak)) void __tsan_ignore_thread_begin();
__attribute__((weak)) void __tsan_ignore_thread_end();
}

#ifndef HEED_UCONTEXT
// Saves the registers that a function must preserve and the stack pointer, then loads the other stack's.
extern "C" void heed_switch_stack(void** save_top, void* load_top);
asm(R"(
.text
.globl heed_switch_stack
.type heed_switch_stack, @function
heed_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size heed_switch_stack, .-heed_switch_stack
)");
#endif

namespace heed::emulated {

namespace {

constexpr size_t kStackBytes = 256 << 10;  // pages are only taken when touched
constexpr unsigned kNoSync = 1;            // __tsan_switch_to_fiber: the switch orders nothing

Fiber *switched_from, *switched_to;

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

Fiber::Fiber() {
#ifdef HEED_UCONTEXT
  top_ = new ucontext_t;
#endif
  if (races::detected()) race_fiber_ = __tsan_get_current_fiber();
}

Fiber::Fiber(void (*work)(Fiber&)) : work_(work) {
  mapping_ = mmap(nullptr, kStackBytes + page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  mprotect(mapping_, page_bytes(), PROT_NONE);
  bottom_ = static_cast<char*>(mapping_) + page_bytes();
  size_ = kStackBytes;
#ifdef HEED_UCONTEXT
  auto* context = new ucontext_t;
  getcontext(context);
  context->uc_stack.ss_sp = const_cast<void*>(bottom_);
  context->uc_stack.ss_size = size_;
  makecontext(context, &Fiber::enter, 0);
  top_ = context;
#else
  // What heed_switch_stack pops: six registers, then the address to go to. Above it lies that function's own return
  // address, 0, where debuggers stop; it makes the stack pointer 8 below a multiple of 16, as after a call.
  auto** top = reinterpret_cast<void**>(static_cast<char*>(mapping_) + page_bytes() + kStackBytes);
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(&Fiber::enter);
  for (int i = 0; i < 6; i++) *--top = nullptr;
  top_ = top;
#endif
  if (races::detected()) race_fiber_ = __tsan_create_fiber(0);
}

Fiber::~Fiber() {
  if (mapping_) {
    destroy_race_fiber();
    if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(bottom_, size_);
    munmap(mapping_, kStackBytes + page_bytes());
  }
#ifdef HEED_UCONTEXT
  delete static_cast<ucontext_t*>(top_);
#endif
}

void Fiber::destroy_race_fiber() {
  if (!race_fiber_) return;
  if (entered_) {  // it must not end unseen
    void* self = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(race_fiber_, kNoSync);
    __tsan_ignore_thread_end();
    __tsan_switch_to_fiber(self, kNoSync);
  }
  __tsan_destroy_fiber(race_fiber_);
}

void Fiber::switch_to(Fiber& next) {
  switched_from = this, switched_to = &next;
  if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(&fake_stack_, next.bottom_, next.size_);
  if (race_fiber_) __tsan_switch_to_fiber(next.race_fiber_, kNoSync);
#ifdef HEED_UCONTEXT
  swapcontext(static_cast<ucontext_t*>(top_), static_cast<ucontext_t*>(next.top_));
#else
  heed_switch_stack(&top_, next.top_);
#endif
  if (__sanitizer_finish_switch_fiber) {
    __sanitizer_finish_switch_fiber(fake_stack_, &switched_from->bottom_, &switched_from->size_);
  }
}

void Fiber::enter() {
  if (__sanitizer_finish_switch_fiber) {
    __sanitizer_finish_switch_fiber(nullptr, &switched_from->bottom_, &switched_from->size_);
  }
  if (races::detected()) __tsan_ignore_thread_begin();
  switched_to->entered_ = true;
  switched_to->work_(*switched_to);
}

namespace races {

bool detected() { return __tsan_create_fiber != nullptr; }
void release(void* object) {
  if (detected()) __tsan_release(object);
}
void acquire(void* object) {
  if (detected()) __tsan_acquire(object);
}

Unseen::Unseen() {
  if (detected()) __tsan_ignore_thread_begin();
}
Unseen::~Unseen() {
  if (detected()) __tsan_ignore_thread_end();
}
Seen::Seen() {
  if (detected()) __tsan_ignore_thread_end();
}
Seen::~Seen() {
  if (detected()) __tsan_ignore_thread_begin();
}

void forget(void* memory, size_t bytes) {
  if (!detected() || bytes == 0) return;
  const auto begin = reinterpret_cast<unsigned long>(memory);
  static const bool started = (__tsan_java_init(begin, bytes), true);
  (void)started;
  __tsan_java_alloc(begin, bytes);
}

}  // namespace races

}  // namespace heed::emulated
