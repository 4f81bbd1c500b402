// Recording a step and starting it as one (CUDA graphs): that nothing is done before, the same is done after, and what
// cannot be recorded says so. On the emulator, and on a GPU where there is one.
#include <doctest/doctest.h>

#include <fstream>

#include "cuda/graph.h"
#include "tensor/capture.h"
#include "tests/compare_devices.h"
#include "tests/message_of.h"
#include "tests/op_table.h"
#include "tests/temporary_folder.h"
#include "train/reviews.h"
#include "train/trainer.h"

using namespace heed;
using heed::tests::message_of;
using heed::tests::OnDevice;
using Numbers = std::vector<double>;

namespace {

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return true;
}

}  // namespace

TEST_CASE("graph: what is recorded is done at the launch, with memory that was freed in between") {
  for (Device* device : compare::gpu_devices()) {
    const OnDevice on(*device);
    Tensor x = full({1000}, 2, DType::f32);
    for (int64_t n = 1; n <= 3; n++) {  // other sizes, numbers and addresses each time
      Tensor y;
      {
        Capture capture(*device, true);
        Tensor uploaded = from_vector(Numbers(static_cast<size_t>(n), 3), {n}, DType::f32);
        for (int i = 0; i < 3; i++) uploaded = uploaded * static_cast<double>(n);  // frees what it was
        y = matmul(uploaded.reshape({1, n}), ones({n, 1}, DType::f32));
        x.add_(ones({1000}, DType::f32));
        capture.launch();
      }
      CHECK(y.item() == static_cast<double>(3 * n * n * n * n));
      CHECK(x.at({999}) == static_cast<double>(2 + n));
    }
  }
}

TEST_CASE("graph: a recording that is not launched does nothing, and the device works on") {
  for (Device* device : compare::gpu_devices()) {
    const OnDevice on(*device);
    Tensor x = zeros({5}, DType::f32);
    const size_t live = device->memory().live();
    {
      Capture capture(*device, true);
      x.add_(ones({5}, DType::f32));
    }
    CHECK(x.to_vector<double>() == Numbers(5, 0));
    CHECK_THROWS_AS(([&] {
                      Capture capture(*device, true);
                      x.add_(ones({5}, DType::f32));
                      matmul(x, ones({4}, DType::f32));
                    }()),
                    ShapeError);
    CHECK(x.to_vector<double>() == Numbers(5, 0));
    CHECK(device->memory().live() == live);
  }
}

TEST_CASE("graph: what needs the host to wait cannot be recorded, and says so") {
  for (Device* device : compare::gpu_devices()) {
    const OnDevice on(*device);
    Tensor x = zeros({5}, DType::f32);
    {
      Capture capture(*device, true);
      x.add_(ones({5}, DType::f32));
      contains(message_of<DeviceError>([&] { x.to_vector<double>(); }), "while a graph is recorded");
      contains(message_of<DeviceError>([&] { device->synchronize(); }), "while a graph is recorded");
      contains(message_of<DeviceError>([&] { Capture again(*device, true); }), "a graph is being recorded already");
      capture.launch();
    }
    CHECK(x.to_vector<double>() == Numbers(5, 1));
    // An index that is wrong is found after the launch, as ever.
    Capture capture(*device, true);
    const Tensor y = index_select(x, 0, indices({7}));
    capture.launch();
    contains(message_of<IndexError>([&] { y.item(); }), "index 7 is outside [0, 5)");
  }
}

TEST_CASE("graph: devices on the host do at once what is captured") {
  for (const char* name : {"reference", "cpu"}) {
    const OnDevice on(device(name));
    Tensor x = zeros({5}, DType::f32);
    Capture capture(device(name), true);
    x.add_(ones({5}, DType::f32));
    CHECK(x.at({0}) == 1);
  }
}

// ---- the class itself

namespace {

__global__ void add_to(float* x, int n, float value) {
  using namespace emulated;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] += value;
}

}  // namespace

TEST_CASE("graph: one of the same kinds of nodes is taken over, another is made anew") {
  using namespace emulated;
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  float* x = nullptr;
  cudaMalloc(&x, 100 * sizeof(float));
  cudaMemset(x, 0, 100 * sizeof(float));
  Graph graph;
  const auto record = [&](int kernels, int n, float value) {
    graph.begin(stream);
    for (int i = 0; i < kernels; i++) gpu::launch("add_to", add_to, 4, 32, 0, stream, x, n, value);
    graph.launch();
    graph.wait();
  };
  record(2, 50, 1);
  CHECK(graph.instantiated() == 1);
  record(2, 100, 10);
  CHECK(graph.instantiated() == 1);
  record(3, 100, 100);
  CHECK(graph.instantiated() == 2);
  std::vector<float> host(100);
  cudaMemcpy(host.data(), x, 100 * sizeof(float), cudaMemcpyDeviceToHost);
  CHECK(host[0] == 322);
  CHECK(host[99] == 320);
  cudaFree(x);
  cudaStreamDestroy(stream);
}

TEST_CASE("emulator: a stream that records refuses what CUDA's would") {
  using namespace emulated;
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  cudaEvent_t event = nullptr;
  cudaEventCreate(&event);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorIllegalState);
  CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeRelaxed) == cudaErrorStreamCaptureUnsupported);

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaErrorIllegalState);
  cudaEventRecord(event, stream);
  CHECK(cudaEventSynchronize(event) == cudaErrorCapturedEvent);
  float* x = nullptr;
  float host[4] = {};
  cudaMalloc(&x, sizeof host);
  contains(message_of<DeviceError>([&] { cudaMemcpyAsync(x, host, sizeof host, cudaMemcpyHostToDevice, stream); }),
           "is not pinned");
  CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  cudaMemsetAsync(x, 0, sizeof host, stream);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  CHECK(cudaGraphInstantiate(&executable, graph) == cudaSuccess);
  cudaFree(x);  // too early
  contains(message_of<DeviceError>([&] { cudaGraphLaunch(executable, stream); }), "not in device memory");
  cudaGraphDestroy(graph);
  cudaGraphExecDestroy(executable);
  cudaEventDestroy(event);
  cudaStreamDestroy(stream);
}

// ---- training

namespace {

struct Trained {
  std::vector<double> losses;
  std::string model;  // the file's bytes
};

Trained train_on(Device& device, bool graph, const std::string& optimizer) {
  const OnDevice on(device);
  const tests::TemporaryFolder folder;
  train::TrainOptions options;
  options.out = folder.path, options.device = device.name(), options.graph = graph, options.optimizer = optimizer;
  options.network.embed_dim = options.network.hidden_dim = 8;
  options.network.heads = 2, options.network.ffn_dim = 8, options.network.dropout = 0.1;
  options.network.pooling = optimizer == "adamw" ? nn::Pooling::mean : nn::Pooling::class_token;
  options.batch = 4, options.epochs = 2, options.vocab = 200, options.max_length = 12;
  train::TextDataset data = train::built_in_reviews(1);
  data.train.resize(16), data.validation.resize(4);
  train::Trainer trainer(options, data);
  trainer.run();
  Trained out;
  for (const train::EpochRecord& record : trainer.records()) out.losses.insert(out.losses.end(), {record.train_loss, record.grad_norm});
  std::ifstream file(folder.path + "/best.safetensors", std::ios::binary);
  out.model = {std::istreambuf_iterator<char>(file), {}};
  return out;
}

}  // namespace

TEST_CASE("graph: a recorded training step waits for nothing and changes no bit of the model") {
  for (Device* device : compare::gpu_devices()) {
    for (const char* optimizer : {"adamw", "sgd", "rmsprop"}) {
      INFO(device->name() << ", " << optimizer);
      const Trained plain = train_on(*device, false, optimizer), graph = train_on(*device, true, optimizer);
      REQUIRE(plain.losses.size() == 4);
      CHECK(graph.losses == plain.losses);
      CHECK(!plain.model.empty());
      CHECK(graph.model == plain.model);
    }
  }
  const OnDevice on(device("cpu"));
  contains(message_of<UsageError>([] { train_on(device("cpu"), true, "adamw"); }), "--graph is for --device cuda or emulated");
}
