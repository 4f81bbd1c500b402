// The fast CPU device: OpenBLAS for matrix products, vectorised and multi-threaded loops, fused kernels.
// Every kernel's meaning is in device.h and its plain twin in reference.cpp; the bodies here are in cpu_*.cpp.
#pragma once
#include "tensor/device.h"

namespace heed {

class Cpu final : public Device {
 public:
  Cpu();

  // cpu.cpp
  void* allocate(size_t bytes) override;
  void release(void* block, size_t bytes) override;
  void upload(void* to, const void* host, size_t bytes) override;
  void download(void* host, const void* from, size_t bytes) override;

  // cpu_elementwise.cpp
  void fill(View y, double value) override;
  void copy(View y, View x) override;
  void unary(Unary op, View y, View x, double p, double q) override;
  void unary_grad(Unary op, View dx, View dy, View x, View y, double p, double q) override;
  void binary(Binary op, View y, View a, View b) override;
  void where(View y, View condition, View a, View b) override;

  // cpu_random.cpp
  void dropout(View y, View x, const Dropout& dropout) override;
  void uniform(View y, uint64_t key) override;

  // cpu_reduce.cpp
  void reduce(Reduction op, View y, View x) override;
  void argmax(View y, View x) override;

  // cpu_matmul.cpp
  void matmul(View c, View a, View b, double alpha, double beta) override;

  // cpu_rows.cpp
  void softmax(View y, View x) override;
  void softmax_grad(View dx, View dy, View y) override;
  void log_softmax(View y, View x) override;
  void log_softmax_grad(View dx, View dy, View y) override;
  void cross_entropy(View loss, View weight, View lse, View logits, View target, const CrossEntropyOptions& options) override;
  void cross_entropy_grad(View dlogits, View dloss, View lse, View logits, View target,
                          const CrossEntropyOptions& options) override;

  // cpu_norm.cpp
  void layer_norm(View y, View mean, View rstd, View x, View w, View b, double eps) override;
  void layer_norm_grad(View dx, View dw, View db, View dy, View x, View w, View mean, View rstd) override;
  void rms_norm(View y, View rrms, View x, View w, double eps) override;
  void rms_norm_grad(View dx, View dw, View dy, View x, View w, View rrms) override;

  // cpu_index.cpp
  void gather(View y, View x, View index, int axis) override;
  void scatter_add(View y, View x, View index, int axis) override;
  void unfold(View columns, View x, const ConvOptions& options) override;
  void fold(View x, View columns, const ConvOptions& options) override;

  // cpu_attention.cpp
  void attention(View o, View lse, View q, View k, View v, const AttentionOptions& options) override;
  void attention_grad(View dq, View dk, View dv, View dout, View q, View k, View v, View o, View lse,
                      const AttentionOptions& options) override;

  // cpu_adam.cpp
  void adam(View p, View m, View v, View g, View rows, const AdamOptions& options) override;
};

}  // namespace heed
