#include "cuda/emulator/graph.h"

namespace heed::emulated {

struct ExecutableGraph {
  std::vector<GraphNode> nodes;
};

namespace {

// As CUDA has it: the new nodes must be of the old ones' kinds, in the same order; all else may have changed.
bool same_kinds(const std::vector<GraphNode>& a, const std::vector<GraphNode>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); i++) {
    if (a[i].kind != b[i].kind) return false;
  }
  return true;
}

}  // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!stream) return cudaErrorStreamCaptureUnsupported;  // the default stream
  if (stream->recorded) return cudaErrorIllegalState;
  stream->recorded = std::make_unique<RecordedGraph>();
  stream->invalid = false;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!recording(stream)) return cudaErrorIllegalState;
  const std::unique_ptr<RecordedGraph> recorded = std::move(stream->recorded);
  if (stream->invalid) return cudaErrorStreamCaptureInvalidated;
  *graph = new RecordedGraph(*recorded);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  return *executable = new ExecutableGraph{graph->nodes}, cudaSuccess;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo*) {
  if (!same_kinds(executable->nodes, graph->nodes)) return cudaErrorGraphExecUpdateFailure;
  executable->nodes = graph->nodes;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (recording(stream)) return cudaErrorStreamCaptureUnsupported;
  for (const GraphNode& node : executable->nodes) node.run();
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) { return delete executable, cudaSuccess; }

}  // namespace heed::emulated
