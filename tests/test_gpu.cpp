// What holds for the CUDA kernels alone, run by the emulator: that each is tested, that they fill a GPU, that no order
// of threads changes a bit, wrong indices, and training. Their values: test_kernels*.cpp and test_ops.cpp.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "cuda/gpu.h"
#include "nn/scaled_dot_product.h"
#include "tests/compare_devices.h"
#include "tests/message_of.h"
#include "tests/op_table.h"
#include "tests/temporary_folder.h"
#include "train/reviews.h"
#include "train/trainer.h"

using namespace heed;
using heed::tests::message_of;
using heed::tests::OnDevice;

namespace {

Device& emulated_device() { return device("emulated"); }

std::string read(const std::string& path) {
  std::ifstream in(path);
  REQUIRE_MESSAGE(in.good(), "run the tests from the root of the repository");
  return {std::istreambuf_iterator<char>(in), {}};
}

// The sanitizers take ten times as long: sizes are then chosen to reach every path once.
bool sanitized() { return std::getenv("HEED_SANITIZE") != nullptr; }

struct InOrder {  // of the emulator's threads, while it lives
  explicit InOrder(const std::string& words) : before(emulated::settings()) {
    emulated::settings() = emulated::parse_settings(words);
  }
  ~InOrder() { emulated::settings() = before; }
  emulated::Settings before;
};

}  // namespace

TEST_CASE("gpu: every kernel of the contract is compared with reference on the emulator") {
  REQUIRE(!compare::gpu_devices().empty());
  CHECK(compare::gpu_devices()[0] == &emulated_device());
  const std::string contract = read("tensor/device.h");
  const std::string tests =
      read("tests/test_kernels.cpp") + read("tests/test_kernels_matmul.cpp") + read("tests/test_kernels_attention.cpp");
  // The first four are used by every test; captures: test_graph.cpp.
  const std::set<std::string> memory = {"release", "upload", "download", "synchronize", "begin_capture", "launch_capture", "abandon_capture"};
  const std::regex kernel("virtual void (\\w+)\\(");
  int kernels = 0;
  for (std::sregex_iterator it(contract.begin(), contract.end(), kernel), end; it != end; ++it) {
    const std::string name = (*it)[1];
    if (memory.contains(name)) continue;
    CHECK_MESSAGE(tests.find("." + name + "(") != std::string::npos, name, " is not in tests/test_kernels*.cpp");
    kernels++;
  }
  CHECK(kernels >= 28);
}

// ---- launches

namespace {

struct Filled {  // device memory of `count` f32 elements
  explicit Filled(int64_t count, double value = 0.5) : tensor(OnDeviceTensor(count, value)) {}
  static Tensor OnDeviceTensor(int64_t count, double value) {
    const OnDevice on(emulated_device());
    return full({count}, value, DType::f32);
  }
  View as(const Shape& shape) const { return tensor.reshape(shape).view(); }
  Tensor tensor;
};

View transposed(View v) {
  std::swap(v.shape[0], v.shape[1]), std::swap(v.strides[0], v.strides[1]);
  return v;
}

}  // namespace

TEST_CASE("gpu: at 4 million elements every kernel launches at least 128 blocks of at least 128 threads") {
  if (sanitized()) return;  // counts launches, whose memory the other cases go through
  constexpr int64_t kRows = 4096, kColumns = 1024;
  const Shape all = {kRows, kColumns}, flat = {kRows * kColumns}, per_row = {kRows, 1}, one = {1, 1};
  Device& d = emulated_device();
  const OnDevice on(d);
  const Filled a(flat[0]), b(flat[0]), c(flat[0]), e(flat[0]);
  const Filled small(kRows), small_2(kRows);
  const View x = a.as(all), y = b.as(all), z = c.as(all), u = e.as(all), none;
  const View r = small.as(per_row), s = small_2.as(per_row);
  const View w = {small.tensor.view().data, {kColumns}, {1}, DType::f32};
  const View dw = {small_2.tensor.view().data, {kColumns}, {1}, DType::f32};
  const Tensor index = zeros({kRows}, DType::i32), squares = zeros({1, 1}, DType::f64);
  const Tensor halves = zeros(all, DType::f16);
  const View target = index.view(), rows = {target.data, all, {1, 0}, DType::i32};
  const View columns = {y.data, {1, 4, kRows * kColumns / 4}, {kRows * kColumns, kRows * kColumns / 4, 1}, DType::f32};
  const View image = {x.data, {1, 4, 1024, 1024}, {1 << 22, 1 << 20, 1 << 10, 1}, DType::f32};
  const auto narrow = [](View v) { return v.shape = {1, kColumns}, v.strides = {0, 1}, v; };

  const auto check = [&](const char* name, const std::function<void()>& run) {
    INFO(name);
    gpu::LaunchRecord record;
    run();
    REQUIRE(!record.launches.empty());
    for (const gpu::Launch& launch : record.launches) {
      INFO(launch.name);
      // The few parts of each output that a first kernel left.
      if (&launch != &record.launches.front() && (launch.name == "combine_parts" || launch.name == "sum")) continue;
      CHECK(uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z >= 128);
      CHECK(launch.block.x * launch.block.y * launch.block.z >= 128);
    }
  };
  check("fill", [&] { d.fill(y, 0.5); });
  check("copy", [&] { d.copy(y, x); });
  check("copy, converting", [&] { d.copy(halves.view(), x); });
  check("copy, transposing", [&] { d.copy(y, transposed(View{x.data, {kColumns, kRows}, {kRows, 1}, DType::f32})); });
  check("unary", [&] { d.unary(Unary::affine, y, x, 2, 1); });
  check("unary, strided", [&] {
    d.unary(Unary::affine, y, transposed(View{x.data, {kColumns, kRows}, {kRows, 1}, DType::f32}), 2, 1);
  });
  check("unary_grad", [&] { d.unary_grad(Unary::relu, z, y, x, none, 0, 0); });
  check("binary", [&] { d.binary(Binary::add, z, x, y); });
  check("where", [&] { d.where(z, x, x, y); });
  check("dropout", [&] { d.dropout(y, x, {0.5, 1, 0}); });
  check("uniform", [&] { d.uniform(b.as(flat), 1); });
  for (const Reduction op : {Reduction::sum, Reduction::max, Reduction::min}) {
    check("reduce all", [&] { d.reduce(op, View{r.data, one, one, DType::f32}, x); });
    check("reduce rows", [&] { d.reduce(op, r, x); });
    check("reduce columns", [&] { d.reduce(op, narrow(w), x); });
  }
  check("sum_squares", [&] { d.reduce(Reduction::sum_squares, squares.view(), x); });
  const View picked = {target.data, per_row, {1, 0}, DType::i32};
  check("argmax of rows", [&] { d.argmax(picked, x); });
  check("argmax of columns", [&] { d.argmax(View{target.data, {1, kColumns}, {0, 1}, DType::i32}, x); });
  d.fill(target, 0);
  check("softmax", [&] { d.softmax(y, x); });
  check("softmax_grad", [&] { d.softmax_grad(z, x, y); });
  check("log_softmax", [&] { d.log_softmax(y, x); });
  check("log_softmax_grad", [&] { d.log_softmax_grad(z, x, y); });
  check("layer_norm", [&] { d.layer_norm(y, r, s, x, w, w, 1e-5); });
  check("layer_norm_grad", [&] { d.layer_norm_grad(z, dw, none, y, x, w, r, s); });
  check("rms_norm", [&] { d.rms_norm(y, s, x, w, 1e-5); });
  check("rms_norm_grad", [&] { d.rms_norm_grad(z, dw, y, x, w, s); });
  const View loss = {r.data, {kRows}, {1}, DType::f32}, lse = {s.data, {kRows}, {1}, DType::f32};
  const View weight = {z.data, {kRows}, {1}, DType::f32};
  check("cross_entropy", [&] { d.cross_entropy(loss, weight, lse, x, target, {}); });
  check("cross_entropy_grad", [&] { d.cross_entropy_grad(y, loss, lse, x, target, {}); });
  check("gather", [&] { d.gather(y, x, rows, 0); });
  check("unfold", [&] { d.unfold(columns, image, {}); });
  check("fold", [&] { d.fold(image, columns, {}); });
  check("adam", [&] { d.adam(x, y, z, u, none, {1e-3, 0.9, 0.999, 1e-8, 0, true, 1, {}}); });
}

TEST_CASE("gpu: halves are multiplied as they lie, no kernel widens them first") {
  const OnDevice on(emulated_device());
  for (DType half : {DType::f16, DType::bf16}) {
    const Tensor x = ones({2, 3, 4}, half), w = ones({5, 4}, half);
    gpu::LaunchRecord record;
    CHECK(linear(x, w).dtype() == DType::f32);
    matmul(x, x.transpose(1, 2));
    CHECK(record.launches.empty());  // cuBLAS's own are not counted
  }
}

// ---- the order of threads

namespace {

std::vector<char> bytes_of(const Tensor& x) {
  const std::vector<double> values = x.to_vector<double>();
  std::vector<char> bytes(values.size() * sizeof(double));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// y and all gradients.
std::vector<std::vector<char>> outcome(const tests::OpRow& row, int64_t n, DType dtype) {
  const OnDevice on(emulated_device());
  std::vector<Variable> leaves;
  for (const Tensor& input : make_inputs(row, n, dtype, emulated_device())) leaves.emplace_back(input, true);
  const Variable y = row.apply(leaves);
  y.backward(tests::make_input({y.shape()}, 99, dtype, emulated_device()));
  std::vector<std::vector<char>> all = {bytes_of(y.value())};
  for (const Variable& leaf : leaves) all.push_back(bytes_of(leaf.grad()));
  return all;
}

}  // namespace

TEST_CASE("gpu: the order of threads changes no bit of any op and its gradients") {
  for (const tests::OpRow& row : tests::op_table()) {
    for (const int64_t n : {int64_t{7}, int64_t{33}}) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        const auto forward = outcome(row, n, dtype);
        for (const char* order : {"order=reverse", "order=random,seed=3"}) {
          INFO(row.name << ", " << row.variant << ", n = " << n << ", " << order);
          const InOrder in(order);
          CHECK(outcome(row, n, dtype) == forward);
        }
      }
    }
  }
}

TEST_CASE("gpu: nor does it for longer sums, where blocks and parts share the work") {
  using compare::random;
  Device& d = emulated_device();
  const auto same = [&](const std::vector<compare::Array>& arrays, const compare::Run& run) {
    const std::vector<compare::Array> forward = compare::results(d, arrays, run);
    for (const char* order : {"order=reverse", "order=random,seed=3"}) {
      const InOrder in(order);
      const std::vector<compare::Array> again = compare::results(d, arrays, run);
      for (size_t k = 0; k < arrays.size(); k++) CHECK(again[k].bytes() == forward[k].bytes());
    }
  };
  const Shape shape = {300, 1300};
  same({random({1, 1}, DType::f32), random({300, 1}, DType::f32), random({1, 1300}, DType::f32),
        random(shape, DType::f32)},
       [](Device& device, const std::vector<View>& v) {
         for (int i = 0; i < 3; i++) device.reduce(Reduction::sum, v[i], v[3]);
       });
  same({random(shape, DType::f32), random(shape, DType::f32), random({1300}, DType::f32), random({300, 1}, DType::f32),
        random({300, 1}, DType::f32), random({1300}, DType::f32), random({1300}, DType::f32)},
       [](Device& device, const std::vector<View>& v) {
         device.softmax(v[1], v[0]);
         device.layer_norm(v[1], v[3], v[4], v[0], v[2], v[2], 1e-5);
         device.layer_norm_grad(v[1], v[5], v[6], v[1], v[0], v[2], v[3], v[4]);
       });
  compare::Array index = random({3000}, DType::i32, compare::Layout::contiguous, 0, 40);
  same({random({40, 5}, DType::f32), random({3000, 5}, DType::f32), index},
       [](Device& device, const std::vector<View>& v) {
         device.scatter_add(v[0], v[1], View{v[2].data, {3000, 5}, {1, 0}, DType::i32}, 0);
       });
}

// ---- indices outside their range

TEST_CASE("gpu: a wrong index is an error when the host next waits, and the device works on") {
  for (Device* device : compare::gpu_devices()) {
    CAPTURE(device->name());
    const OnDevice on(*device);
    const Tensor table = zeros({5, 3}, DType::f32), rows = zeros({2, 3}, DType::f32), wrong = indices({4, 7});
    const auto contains = [](const std::string& text, const std::string& part) {
      INFO(text);
      CHECK(text.find(part) != std::string::npos);
    };
    contains(message_of<IndexError>([&] { index_select(table, 0, wrong).to_vector<double>(); }),
             "gather: index 7 is outside [0, 5)");
    contains(message_of<IndexError>([&] { index_add(table, 0, wrong, rows).to_vector<double>(); }),
             "scatter_add: index 7 is outside [0, 5)");
    contains(message_of<IndexError>([&] {
               cross_entropy_rows(rows, indices({1, 3}), {}).loss.to_vector<double>();
             }),
             "cross_entropy: target 3 is outside [0, 3)");
    const Tensor n = zeros({2}, DType::f32), q = zeros({1, 1, 2, 3}, DType::f32);
    contains(message_of<IndexError>([&] {
               cross_entropy_grad(n, n, rows, indices({1, 3}), {}).to_vector<double>();
             }),
             "cross_entropy: target 3 is outside [0, 3)");
    for (const int32_t index : {7, -1}) {
      contains(message_of<IndexError>([&] { one_hot(indices({index}), 3).to_vector<double>(); }),
               text("index ", index, " is outside [0, 3)"));
      contains(message_of<IndexError>([&] { attention(q, q, q, {.lengths = indices({index})}).o.to_vector<double>(); }),
               text("attention: length ", index, " is outside [0, 3)"));
    }
    CHECK(one_hot(indices({2, 0}), 3).to_vector<double>() == std::vector<double>{0, 0, 1, 1, 0, 0});
    CHECK(index_select(table, 0, indices({4})).to_vector<double>() == std::vector<double>(3, 0));
  }
}

// ---- attention

namespace {

struct AttentionRun {
  Tensor output, dq, dk, dv;
};

AttentionRun run_attention(Device& device, bool fused, const Shape& shape, const std::function<nn::Mask()>& mask) {
  const OnDevice on(device);
  std::vector<Variable> qkv;
  for (size_t i = 0; i < 3; i++) qkv.emplace_back(tests::make_input({shape}, i, DType::f64, device), true);
  const Variable o = fused ? nn::fused_scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], mask())
                           : nn::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], mask()).output;
  o.backward(tests::make_input({shape}, 3, DType::f64, device));
  return {o.value(), qkv[0].grad(), qkv[1].grad(), qkv[2].grad()};
}

double difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double largest = x.size() == y.size() ? 0 : INFINITY;
  for (size_t i = 0; i < x.size(); i++) {
    if (!(std::fabs(x[i] - y[i]) <= largest)) largest = std::fabs(x[i] - y[i]);
  }
  return largest;
}

}  // namespace

TEST_CASE("gpu: fused attention equals the composed one to 1e-10, forward and all gradients") {
  using Sizes = std::vector<int64_t>;
  for (const int64_t T : sanitized() ? Sizes{1, 7, 65} : Sizes{1, 7, 64, 129, 300}) {
    for (const int64_t D : sanitized() ? Sizes{1, 33} : Sizes{1, 33, 64, 128}) {
      const Shape shape = {2, 1, T, D};
      const std::vector<std::function<nn::Mask()>> masks = {
          [] { return nn::Mask(); }, [] { return nn::Mask::causal(); },
          [&] {
            return nn::Mask::padding(indices({static_cast<int32_t>(T), static_cast<int32_t>(T / 3)}));
          },
          [&] { return nn::Mask::window(T / 4 + 1); },
          [&] {
            std::vector<double> keep(static_cast<size_t>(T * T));
            for (size_t i = 0; i < keep.size(); i++) keep[i] = i * 7 % 11 % 3 != 0;
            return nn::Mask::keep(from_vector(keep, {T, T}, DType::f64));
          }};
      for (size_t i = 0; i < masks.size(); i++) {
        const AttentionRun expected = run_attention(device("cpu"), false, shape, masks[i]);
        for (Device* device : compare::gpu_devices()) {
          INFO(device->name() << ", T = " << T << ", D = " << D << ", mask " << i);
          const AttentionRun fused = run_attention(*device, true, shape, masks[i]);
          CHECK(difference(fused.output, expected.output) < 1e-10);
          CHECK(difference(fused.dq, expected.dq) < 1e-10);
          CHECK(difference(fused.dk, expected.dk) < 1e-10);
          CHECK(difference(fused.dv, expected.dv) < 1e-10);
        }
      }
    }
  }
}

TEST_CASE("gpu: the memory of fused attention grows linearly with the length") {
  if (sanitized()) return;  // counts bytes
  const auto bytes = [](int64_t T) {
    Memory& memory = emulated_device().memory();
    memory.reset_peak();
    const size_t before = memory.live();
    run_attention(emulated_device(), true, {1, 1, T, 8}, [] { return nn::Mask::causal(); });
    return static_cast<double>(memory.peak() - before);
  };
  const double small = bytes(256), large = bytes(1024);
  CHECK(large > 3 * small);
  CHECK(large < 4.5 * small);
}

// ---- training

TEST_CASE("gpu: training follows cpu to 1e-4 over 20 steps") {
  const auto losses = [](const std::string& name) {
    const OnDevice on(device(name));
    const tests::TemporaryFolder folder;
    train::TrainOptions options;
    options.out = folder.path, options.device = name;
    options.network.embed_dim = options.network.hidden_dim = 16;
    options.network.heads = 2, options.network.ffn_dim = 32, options.network.dropout = 0.1;
    options.batch = 8, options.epochs = 10, options.vocab = 300;
    train::TextDataset data = train::built_in_reviews(1);
    data.train.resize(16), data.validation.resize(8);  // two steps an epoch
    train::Trainer trainer(options, data);
    trainer.run();
    std::vector<double> all;
    for (const train::EpochRecord& record : trainer.records()) {
      CHECK(record.steps == 2 * record.epoch);
      all.insert(all.end(), {record.train_loss, record.grad_norm, record.validation_loss});
    }
    return all;
  };
  const std::vector<double> expected = losses("cpu");
  REQUIRE(expected.size() == 30);
  for (Device* gpu : compare::gpu_devices()) {
    CAPTURE(gpu->name());
    const std::vector<double> got = losses(gpu->name());
    REQUIRE(got.size() == 30);
    for (size_t i = 0; i < got.size(); i++) CHECK(std::fabs(got[i] - expected[i]) <= 1e-4);
    CHECK(got[27] < got[0]);  // and it learns
  }
}
