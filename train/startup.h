// What the program does before its work: how long threads spin, standard streams that are closed, room for the BLAS.
#pragma once
#include <cstddef>

namespace heed::train {

// OpenMP's threads wait for each other by spinning for milliseconds, which on cores that other programs keep busy costs many times
// the work. libgomp reads how long before main begins, so the program begins once more with a count that suits these loops: longer
// ones gain nothing, and none at all costs a tenth. (Without /proc it goes on as it is.)
void spin_briefly(char** argv);

// A standard stream that is closed gets a descriptor that refuses: else the next file opened would take its place.
void keep_standard_streams();

// Room for OpenBLAS's buffers: where there is none for one it tries for ever, so the room is tried before; for the threads of the
// start even before the library is loaded, by a function that runs before main (startup.cpp).
constexpr size_t kBlasBuffer = 128 << 20;  // bytes, one for each thread
constexpr size_t kMostThreads = 1024;

// Can this process map so many buffers (at most two for each of kMostThreads), and `rest` bytes more? Maps them and gives them back.
bool has_room(size_t buffers, size_t rest);

}  // namespace heed::train
