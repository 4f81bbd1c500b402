// Streams that record: what CUDA graphs are made of. Outside of a recording work is done in the call.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "cuda/emulator/runtime.h"

namespace heed::emulated {

struct GraphNode {
  enum class Kind { kernel, copy, set, product };
  Kind kind;
  std::function<void()> run;
};

struct RecordedGraph {
  std::vector<GraphNode> nodes;
};

struct Stream {
  std::unique_ptr<RecordedGraph> recorded;  // while it records
  bool invalid = false;                     // the recording was spoilt by a call that cannot be in one
};

inline bool recording(cudaStream_t stream) { return stream && stream->recorded; }

// Does it at once, or when the graph is launched.
template <class Run>
void submit(cudaStream_t stream, GraphNode::Kind kind, Run run) {
  if (recording(stream)) {
    stream->recorded->nodes.push_back({kind, run});
  } else {
    run();
  }
}

}  // namespace heed::emulated
