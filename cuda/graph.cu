#include "cuda/graph.h"

namespace heed::HEED_GPU {

Graph::~Graph() {
  if (executable_) cudaGraphExecDestroy(executable_);
  if (done_) cudaEventDestroy(done_);
}

// Relaxed: the allocator may ask CUDA for memory while a graph is recorded.
void Graph::begin(cudaStream_t stream) {
  stream_ = stream;
  if (!done_) gpu::check(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming), "creating an event");
  gpu::check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "recording a graph");
  recording_ = true;
}

void Graph::launch() {
  recording_ = false;
  cudaGraph_t graph = nullptr;
  gpu::check(cudaStreamEndCapture(stream_, &graph), "recording a graph");
  take_over(graph);
  gpu::check(cudaGraphDestroy(graph), "recording a graph");
  gpu::check(cudaGraphLaunch(executable_, stream_), "starting a graph");
  gpu::check(cudaEventRecord(done_, stream_), "starting a graph");
  free_kept();
}

void Graph::take_over(cudaGraph_t graph) {
  cudaGraphExecUpdateResultInfo result;
  if (executable_ && cudaGraphExecUpdate(executable_, graph, &result) == cudaSuccess) return;
  if (executable_) {
    cudaGetLastError();  // forget it: the nodes are others than the last time
    gpu::check(cudaGraphExecDestroy(executable_), "recording a graph");
  }
  gpu::check(cudaGraphInstantiate(&executable_, graph, 0), "making a graph");
  instantiated_++;
}

// Something failed while it was recorded: none of it is done.
void Graph::abandon() {
  recording_ = false;
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(stream_, &graph) == cudaSuccess && graph) cudaGraphDestroy(graph);
  cudaGetLastError();
  free_kept();
}

void Graph::wait() {
  if (done_) gpu::check(cudaEventSynchronize(done_), "waiting for a graph");
}

void Graph::keep(void* block) { kept_.push_back(block); }

// cudaFree waits for the device by itself.
void Graph::free_kept() {
  for (void* block : kept_) gpu::check(cudaFree(block), "freeing memory");
  kept_.clear();
}

}  // namespace heed::HEED_GPU
