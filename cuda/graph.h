// Work recorded and then started as one: a CUDA graph. Starting a kernel takes the host some microseconds, as long as many
// small kernels run; a graph hands hundreds of them to the GPU in one call.
//
// Each training step is recorded anew, so shapes, addresses and numbers may change from step to step. If the nodes are
// of the same kinds in the same order as the last time, the last graph takes over the new ones' arguments, which is much
// cheaper than making a new one.
#pragma once
#include <vector>

#include "cuda/gpu.h"

namespace heed::HEED_GPU {

class Graph {
 public:
  Graph() = default;
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  bool recording() const { return recording_; }
  void begin(cudaStream_t stream);
  void launch();
  void abandon();

  void wait();                // until the last launch is done
  void keep(void* block);     // freed by the host, but what was recorded still uses it
  int64_t instantiated() const { return instantiated_; }  // graphs made, not taken over

 private:
  void take_over(cudaGraph_t graph);
  void free_kept();

  cudaStream_t stream_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
  cudaEvent_t done_ = nullptr;
  std::vector<void*> kept_;
  bool recording_ = false;
  int64_t instantiated_ = 0;
};

}  // namespace heed::HEED_GPU
