// How the emulator runs kernels. From the environment, at the first use:
//
//   HEED_EMULATOR=order=reverse,guard=1
//
//   order=forward|reverse|random  in which order the threads of a block run, and go on after a barrier (default:
//   forward) seed=N                        the order of order=random (default: 1) guard=1                       each
//   device allocation ends at a page that nobody may touch, and all of them are closed
//                                 to the host between kernels: a wrong access faults where it happens
//   unordered=1                   tell the race detector (make races) that blocks do not wait for each other
#pragma once
#include <cstdint>
#include <string>

namespace heed::emulated {

enum class Order { forward, reverse, random };

struct Settings {
  Order order = Order::forward;
  uint64_t seed = 1;
  bool guard = false;
  bool unordered = false;
};

Settings parse_settings(const std::string& words);  // DeviceError names the word that it does not know

// Those in force. A test may change them between kernels; allocations made earlier stay as they are.
Settings& settings();

}  // namespace heed::emulated
