// The GPU device: the class, and where the kernels' bodies are. Every kernel's meaning is in tensor/device.h and its
// plain twin in tensor/reference.cpp.
//
// All work goes to one stream and is done in the order in which it was asked for. A freed block can therefore be used
// again at once: whatever still reads it comes first. Only download and synchronize wait. (graph.h: a stretch of that work
// can be recorded and started as one.)
#pragma once
#include "cuda/gpu.h"
#include "cuda/graph.h"
#include "cuda/index_check.h"
#include "cuda/staging.h"
#include "tensor/device.h"

namespace heed::HEED_GPU {

class Gpu final : public Device {
 public:
  Gpu();

  // device.cu
  void* allocate(size_t bytes) override;
  void release(void* block, size_t bytes) override;
  void upload(void* to, const void* host, size_t bytes) override;
  void download(void* host, const void* from, size_t bytes) override;
  void synchronize() override;
  bool on_host() const override { return false; }
  void begin_capture() override;
  void launch_capture() override;
  void abandon_capture() noexcept override;

  // elementwise.cu
  void unary(Unary op, View y, View x, double p, double q) override;
  void unary_grad(Unary op, View dx, View dy, View x, View y, double p, double q) override;
  void binary(Binary op, View y, View a, View b) override;

  // copy.cu
  void fill(View y, double value) override;
  void copy(View y, View x) override;
  void where(View y, View condition, View a, View b) override;

  // random.cu
  void dropout(View y, View x, const Dropout& dropout) override;
  void uniform(View y, uint64_t key) override;

  // reduce.cu
  void reduce(Reduction op, View y, View x) override;
  void argmax(View y, View x) override;

  // matmul.cu
  void matmul(View c, View a, View b, double alpha, double beta) override;

  // softmax.cu
  void softmax(View y, View x) override;
  void softmax_grad(View dx, View dy, View y) override;
  void log_softmax(View y, View x) override;
  void log_softmax_grad(View dx, View dy, View y) override;

  // norm.cu, norm_grad.cu
  void layer_norm(View y, View mean, View rstd, View x, View w, View b, double eps) override;
  void layer_norm_grad(View dx, View dw, View db, View dy, View x, View w, View mean, View rstd) override;
  void rms_norm(View y, View rrms, View x, View w, double eps) override;
  void rms_norm_grad(View dx, View dw, View dy, View x, View w, View rrms) override;

  // cross_entropy.cu
  void cross_entropy(View loss, View weight, View lse, View logits, View target,
                     const CrossEntropyOptions& options) override;
  void cross_entropy_grad(View dlogits, View dloss, View lse, View logits, View target,
                          const CrossEntropyOptions& options) override;

  // gather.cu, scatter_add.cu
  void gather(View y, View x, View index, int axis) override;
  void scatter_add(View y, View x, View index, int axis) override;

  // unfold.cu
  void unfold(View columns, View x, const ConvOptions& options) override;
  void fold(View x, View columns, const ConvOptions& options) override;

  // attention.cu, attention_grad.cu
  void attention(View o, View lse, View q, View k, View v, const AttentionOptions& options) override;
  void attention_grad(View dq, View dk, View dv, View dout, View q, View k, View v, View o, View lse,
                      const AttentionOptions& options) override;

  // adam.cu
  void adam(View p, View m, View v, View g, View rows, const AdamOptions& options) override;

 private:
  void require_no_recording(const char* what) const;

  cudaStream_t stream_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  Staging staging_;
  Graph graph_;
  WrongIndex* wrong_index_ = nullptr;  // on the device
  bool indexed_ = false;               // has a kernel been launched since that may have written there?
};

}  // namespace heed::HEED_GPU
