#include "cuda/emulator/block.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <memory>
#include <string>

#include "cuda/emulator/settings.h"
#include "tensor/error.h"
#include "tensor/random.h"

namespace heed::emulated {

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace {

const Kernel* kernel;  // null between launches
std::vector<Thread> threads;
Thread* current;
size_t returned, at_barrier;

std::vector<unsigned> order;              // in which threads start, and go on after a barrier
std::vector<unsigned> order_of_warp[32];  // the same within each warp
size_t started;                           // that many of `order`
std::deque<Thread*> ready;                // released, not yet running

// Stacks. The host's own is never among the idle ones.
Fiber* host;
Fiber* running;
std::deque<Fiber*> idle;
std::vector<Fiber*> spent;  // by the race detector's rule, below
std::vector<std::unique_ptr<Fiber>> stacks;

std::exception_ptr failure;

// What orders threads, for the race detector.
char start_of_block, end_of_block, abandoned, barrier_object[2][2];
int parity, barrier_phase;

// Threads that run on one stack are one thread to the race detector, so under it no stack runs two threads of a block,
// nor two of neighbouring blocks (idle stacks wait in a queue), and the host's runs none.
bool one_thread_a_stack() { return races::detected(); }

void work(Fiber& self);

Fiber* idle_stack() {
  if (idle.empty()) {
    stacks.push_back(std::make_unique<Fiber>(&work));
    return stacks.back().get();
  }
  Fiber* fiber = one_thread_a_stack() ? idle.front() : idle.back();
  one_thread_a_stack() ? idle.pop_front() : idle.pop_back();
  return fiber;
}

void make_ready(Thread& thread) {
  thread.state = Thread::State::ready;
  ready.push_back(&thread);
}

void become(Thread& thread) {
  thread.state = Thread::State::running;
  current = &thread;
  threadIdx = thread.index;
}

// Lets whoever can go on go on; returns when this stack's turn has come again.
void go_on() {
  Fiber* next;
  if (!ready.empty()) {
    next = ready.front()->fiber;
    ready.pop_front();
  } else if (started < threads.size()) {
    next = idle_stack();
  } else if (returned == threads.size()) {
    next = host;
  } else {
    fail_stuck();
  }
  Fiber* self = running;
  if (next == self) return;
  running = next;
  self->switch_to(*next);
  if (failure) running = host, std::rethrow_exception(failure);  // it brought us back
}

void start_next() {
  Thread& thread = threads[order[started++]];
  become(thread);
  races::acquire(&start_of_block);
  {
    const races::Seen seen;
    kernel->call(kernel->arguments);
  }
  races::release(&end_of_block);
  thread.state = Thread::State::returned;
  returned++;
}

bool may_start_here() { return started < threads.size() && ready.empty() && !one_thread_a_stack(); }

[[noreturn]] void back_to_host() {
  running->switch_to(*host);
  __builtin_unreachable();
}

// What every stack but the host's does, for ever. An exception unwinds this stack's thread up to here and goes on from
// the host's stack.
void work(Fiber& self) {
  for (;;) {
    try {
      do start_next();
      while (may_start_here());
      one_thread_a_stack() ? spent.push_back(&self) : idle.push_back(&self);
      go_on();
    } catch (...) { failure = std::current_exception(); }
    if (failure) races::release(&abandoned), back_to_host();
  }
}

void choose_order(int64_t block_number) {
  const Settings& now = settings();
  order.resize(threads.size());
  for (unsigned i = 0; i < order.size(); i++) order[i] = i;
  if (now.order == Order::reverse) std::reverse(order.begin(), order.end());
  if (now.order == Order::random) Random(mix_key(now.seed, static_cast<uint64_t>(block_number))).shuffle(order);
  for (auto& lanes : order_of_warp) lanes.clear();
  for (unsigned i : order) order_of_warp[i / warpSize].push_back(i);
}

void make_threads(dim3 size) {
  threads.assign(size_t{size.x} * size.y * size.z, Thread{});
  for (unsigned i = 0; i < threads.size(); i++) {
    threads[i].number = i;
    threads[i].index = {i % size.x, i / size.x % size.y, i / size.x / size.y};
  }
}

std::string tuple(uint3 i) { return text("(", i.x, ", ", i.y, ", ", i.z, ")"); }

[[noreturn]] void throw_error(const std::string& what, Site at) {
  DeviceError error(what);
  error.add_place(at, "");
  throw error;
}

}  // namespace

Thread& current_thread() { return *current; }
Thread* warp_of(const Thread& thread) { return &threads[thread.warp() * warpSize]; }
unsigned lanes_of(const Thread& thread) {
  return std::min<unsigned>(warpSize, static_cast<unsigned>(threads.size()) - thread.warp() * warpSize);
}
int parity_of_block() { return parity; }

void park(Thread& thread) {
  thread.fiber = running;
  races::release(&abandoned);
  go_on();
  become(thread);
}

void let_go_on(Thread* warp, unsigned mask) {
  for (unsigned i : order_of_warp[warp->warp()]) {
    if (mask >> threads[i].lane() & 1) make_ready(threads[i]);
  }
}

std::string running_thread() {
  if (!kernel) return "";
  return text(kernel->name, ": thread ", tuple(current->index), " of block ", tuple(blockIdx));
}

void fail(const std::string& what, Site at) { throw_error(running_thread() + ": " + what, at); }

void fail_stuck() {
  struct Group {
    const Thread* first;
    size_t count;
  };
  std::vector<Group> groups;  // of threads that wait at one place for the same
  for (const Thread& t : threads) {
    if (t.state == Thread::State::returned) continue;
    auto same = [&](const Group& g) {
      return g.first->state == t.state && g.first->at.line == t.at.line && g.first->mask == t.mask;
    };
    auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group != groups.end()) {
      group->count++;
    } else {
      groups.push_back({&t, 1});
    }
  }
  std::string who;
  for (const Group& g : groups) {
    const bool barrier = g.first->state == Thread::State::at_barrier;
    who += text(g.count, g.count == 1 ? " thread waits" : " threads wait", " in ",
                barrier ? std::string("__syncthreads") : "a warp operation with mask " + mask_text(g.first->mask),
                " at ", g.first->at.file, ":", g.first->at.line, " (the first is ", tuple(g.first->index), "), ");
  }
  who += text(returned, " of ", threads.size(), " have returned");
  throw_error(text(kernel->name, ": block ", tuple(blockIdx), " cannot go on: ", who,
                   "; a barrier waits for all threads of the block, a warp operation for all lanes of its mask"),
              groups.front().first->at);
}

void __syncthreads(Site at) {
  const races::Unseen unseen;
  Thread& self = *current;
  self.at = at;
  self.mask = 0;
  self.state = Thread::State::at_barrier;
  void* const object = &barrier_object[parity][barrier_phase];
  races::release(object);
  if (++at_barrier == threads.size()) {
    const auto elsewhere = [&](const Thread& t) { return t.at.line != at.line || std::string(t.at.file) != at.file; };
    if (std::any_of(threads.begin(), threads.end(), elsewhere)) fail_stuck();
    at_barrier = 0;
    barrier_phase ^= 1;  // a thread that reaches the next barrier must not be seen by those that leave this one
    for (unsigned i : order) make_ready(threads[i]);
  }
  park(self);
  races::acquire(object);
}

void begin_launch(const Kernel& started_kernel) {
  static Fiber own;  // stands for whichever stack calls
  kernel = &started_kernel;
  host = running = &own;
  failure = nullptr;
  ready.clear();
  make_threads(started_kernel.block);
  choose_order(0);
  // Two blocks' worth, so that neighbouring blocks use different stacks.
  while (one_thread_a_stack() && settings().unordered && stacks.size() < 2 * threads.size()) {
    stacks.push_back(std::make_unique<Fiber>(&work));
    idle.push_back(stacks.back().get());
  }
}

void run_block(int64_t block_number) {
  returned = at_barrier = started = 0;
  parity = static_cast<int>(block_number & 1);
  if (settings().order == Order::random) choose_order(block_number);
  if (!settings().unordered || block_number == 0) races::release(&start_of_block);
  while (returned < threads.size()) {
    if (may_start_here()) {
      start_next();
    } else {
      go_on();
    }
  }
  idle.insert(idle.end(), spent.begin(), spent.end());
  spent.clear();
  if (!settings().unordered) races::acquire(&end_of_block);
}

void end_launch() {
  races::acquire(&end_of_block);
  kernel = nullptr;
}

void abandon_launch() {
  end_launch();
  races::acquire(&abandoned);
  stacks.clear();
  idle.clear();
  spent.clear();
}

}  // namespace heed::emulated
