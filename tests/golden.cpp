#include "tests/golden.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "nn/module.h"
#include "train/safetensors.h"

namespace heed::tests {

namespace {

std::string golden_path(const std::string& file) {
  return (std::filesystem::path(__FILE__).parent_path() / "golden" / file).string();
}

template <class T>
std::vector<T> values_of(const train::RawTensor& raw) {
  std::vector<T> values(raw.bytes / sizeof(T));
  if (raw.bytes > 0) std::memcpy(values.data(), raw.data, raw.bytes);
  return values;
}

Tensor tensor_of(const train::RawTensor& raw) {
  const Shape shape(raw.shape);
  if (raw.dtype == "F64") return from_vector(values_of<double>(raw), shape, DType::f64);
  std::vector<int32_t> integers;
  if (raw.dtype == "I64") {
    for (int64_t value : values_of<int64_t>(raw)) integers.push_back(static_cast<int32_t>(value));
    return indices(integers, shape);
  }
  if (raw.dtype != "U8") throw FileError("golden: dtype " + raw.dtype);
  for (uint8_t value : values_of<uint8_t>(raw)) integers.push_back(value);
  return indices(integers, shape).to(DType::f64);
}

}  // namespace

GoldenCase golden_case(const std::string& set, const std::string& name) {
  std::ifstream in(golden_path(set + ".json"));
  const nlohmann::json index = nlohmann::json::parse(in);
  const train::SafetensorsFile file(golden_path(set + ".safetensors"));
  const auto load = [&](const nlohmann::json& key) { return tensor_of(file.at(key.get<std::string>())); };
  for (const nlohmann::json& entry : index.at("cases")) {
    if (entry.at("name") != name) continue;
    GoldenCase golden;
    golden.name = name;
    for (const auto& [arg, key] : entry.at("inputs").items()) golden.inputs[arg] = load(key);
    for (const auto& [arg, key] : entry.at("grads").items()) golden.grads[arg] = load(key);
    for (const nlohmann::json& key : entry.at("outputs")) golden.outputs.push_back(load(key));
    for (const nlohmann::json& key : entry.at("upstream")) golden.upstream.push_back(load(key));
    return golden;
  }
  throw FileError("golden: there is no case \"" + name + "\"");
}

double difference(const Tensor& a, const Tensor& b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!a.defined() || !b.defined() || !(a.shape() == b.shape())) return kInfinity;
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double largest = 0;
  for (size_t i = 0; i < x.size(); i++) {
    const double error = std::fabs(x[i] - y[i]) / std::max(1.0, std::fabs(y[i]));
    if (!(error <= largest)) largest = std::isnan(error) ? kInfinity : error;
  }
  return largest;
}

double golden_difference(const GoldenCase& golden, nn::Module* module,
                         const std::function<std::vector<Variable>(GoldenInputs&)>& forward) {
  std::map<std::string, Tensor> state;
  GoldenInputs inputs;
  for (const auto& [arg, value] : golden.inputs) {
    if (arg.rfind("p.", 0) == 0) {
      state[arg.substr(2)] = value;
    } else {
      inputs[arg] = Variable(value, golden.grads.count(arg) > 0, arg);
    }
  }
  if (module) {
    module->load_state(state);
    module->zero_grad();
  }
  const std::vector<Variable> outputs = forward(inputs);
  if (outputs.size() != golden.outputs.size()) throw Error("golden: another number of outputs");
  double largest = 0;
  Variable loss;
  for (size_t i = 0; i < outputs.size(); i++) {
    largest = std::max(largest, difference(outputs[i].value(), golden.outputs[i]));
    if (i >= golden.upstream.size()) continue;
    const Variable part = sum(outputs[i] * Variable(golden.upstream[i]));
    loss = loss.defined() ? loss + part : part;
  }
  if (loss.defined() && loss.requires_grad()) loss.backward();
  std::map<std::string, Variable> sources(inputs.begin(), inputs.end());
  if (module) {
    for (const auto& [path, variable] : module->parameters()) sources["p." + path] = variable;
  }
  for (const auto& [arg, grad] : golden.grads) largest = std::max(largest, difference(sources.at(arg).grad(), grad));
  return largest;
}

InDoubles::InDoubles(const char* device_name) : device_(default_device()), dtype_(default_dtype()) {
  set_default_device(device(device_name));
  set_default_dtype(DType::f64);
}

InDoubles::~InDoubles() {
  set_default_device(device_);
  set_default_dtype(dtype_);
}

}  // namespace heed::tests
