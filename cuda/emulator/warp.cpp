// Operations of a warp: each lane records what it brings; the last of the mask computes every lane's result.
#include <bit>
#include <sstream>
#include <string>

#include "cuda/emulator/block.h"
#include "tensor/error.h"

namespace heed::emulated {

namespace {

const char* name_of(WarpOp op) {
  switch (op) {
    case WarpOp::index:
      return "__shfl_sync";
    case WarpOp::up:
      return "__shfl_up_sync";
    case WarpOp::down:
      return "__shfl_down_sync";
    case WarpOp::exclusive_or:
      return "__shfl_xor_sync";
    case WarpOp::ballot:
      return "__ballot_sync";
    case WarpOp::sync:
      return "__syncwarp";
  }
  return "";
}

bool in(unsigned mask, int lane) { return mask >> lane & 1; }

void check(const Thread& self, Site at) {
  const int lane = static_cast<int>(self.lane()), lanes = static_cast<int>(lanes_of(self));
  if (!in(self.mask, lane)) {
    fail(text(name_of(self.op), ": lane ", lane, " is not in its own mask ", mask_text(self.mask)), at);
  }
  if (lanes < warpSize && self.mask >> lanes != 0) {
    fail(text(name_of(self.op), ": mask ", mask_text(self.mask), " names lanes that do not exist; this warp has ",
              lanes),
         at);
  }
  if (self.width < 1 || self.width > warpSize || !std::has_single_bit(static_cast<unsigned>(self.width))) {
    fail(text(name_of(self.op), ": width is ", self.width, "; it must be 1, 2, 4, 8, 16 or 32"), at);
  }
}

// The lane whose value `self` gets; its own where there is none in its group of `width` lanes.
int source_of(const Thread& self) {
  const int lane = static_cast<int>(self.lane()), first = lane & ~(self.width - 1), last = lane | (self.width - 1);
  int source = lane;
  switch (self.op) {
    case WarpOp::index:
      return first | (self.argument & (self.width - 1));
    case WarpOp::up:
      source = lane - self.argument;
      return source < first ? lane : source;
    case WarpOp::down:
      source = lane + self.argument;
      return source > last ? lane : source;
    case WarpOp::exclusive_or:
      source = lane ^ self.argument;
      return source > last ? lane : source;
    case WarpOp::ballot:
    case WarpOp::sync:
      break;
  }
  return lane;
}

void check_same_call(const Thread& self, const Thread& other) {
  if (other.op == self.op && other.at.line == self.at.line && std::string(other.at.file) == self.at.file) return;
  fail(text(name_of(self.op), " with mask ", mask_text(self.mask), ", but lane ", other.lane(), " of the mask is in ",
            name_of(other.op), " at ", other.at.file, ":", other.at.line),
       self.at);
}

// All lanes of the mask have arrived: their results.
void complete(Thread* warp, const Thread& self) {
  unsigned ballot = 0;
  for (int lane = 0; lane < warpSize; lane++) {
    if (in(self.mask, lane) && warp[lane].value) ballot |= 1u << lane;
  }
  for (int lane = 0; lane < warpSize; lane++) {
    if (!in(self.mask, lane)) continue;
    Thread& to = warp[lane];
    const int source = source_of(to);
    if (source < 0 || source >= warpSize || !in(self.mask, source)) {
      fail(text(name_of(self.op), ": lane ", lane, " reads lane ", source, ", which is not in the mask ",
                mask_text(self.mask)),
           self.at);
    }
    to.result = self.op == WarpOp::ballot ? ballot : warp[source].value;
  }
}

// Two objects in turn for each warp, as with barriers; a shuffle moves a value and orders nothing else.
char sync_object[2][32][2];
unsigned char sync_phase[32];

}  // namespace

std::string mask_text(unsigned mask) {
  std::ostringstream out;
  out << "0x" << std::hex << mask;
  return out.str();
}

uint64_t exchange(WarpOp op, unsigned mask, uint64_t value, int argument, int width, Site at) {
  const races::Unseen unseen;
  Thread& self = current_thread();
  self.op = op, self.mask = mask, self.value = value, self.argument = argument, self.width = width, self.at = at;
  check(self, at);
  void* const object = &sync_object[parity_of_block()][self.warp()][sync_phase[self.warp()]];
  if (op == WarpOp::sync) races::release(object);
  self.state = Thread::State::in_warp_op;

  Thread* warp = warp_of(self);
  bool all = true;
  for (int lane = 0; lane < warpSize && all; lane++) {
    if (in(mask, lane)) all = warp[lane].state == Thread::State::in_warp_op && warp[lane].mask == mask;
  }
  if (all) {
    for (int lane = 0; lane < warpSize; lane++) {
      if (in(mask, lane)) check_same_call(self, warp[lane]);
    }
    complete(warp, self);
    if (op == WarpOp::sync) sync_phase[self.warp()] ^= 1;
    let_go_on(warp, mask);
  }
  park(self);
  if (op == WarpOp::sync) races::acquire(object);
  return self.result;
}

}  // namespace heed::emulated
