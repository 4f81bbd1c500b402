#include "nn/module.h"

#include <algorithm>
#include <mutex>
#include <set>

namespace heed::nn {

namespace {

// One string for each path, for good: the nodes of a tape point to it and may outlive the module.
const char* interned(const std::string& path) {
  static std::mutex mutex;
  static std::set<std::string>* paths = new std::set<std::string>;  // never destroyed, as static tapes may go later
  const std::lock_guard<std::mutex> lock(mutex);
  return paths->insert(path).first->c_str();
}

std::string join(const std::string& path, const std::string& name) {
  return path.empty() || name.empty() ? path + name : path + "." + name;
}

}  // namespace

// ---- parts

void Module::require_free(const std::string& name) const {
  const auto named = [&](const auto& part) { return part.name == name; };
  const auto at = [&](const Parameter& part) { return part.path == name; };
  if (std::any_of(parameters_.begin(), parameters_.end(), at) || std::any_of(buffers_.begin(), buffers_.end(), at) ||
      (!name.empty() && std::any_of(children_.begin(), children_.end(), named))) {
    throw UsageError("module: it has a part named \"" + name + "\" already");
  }
}

Variable Module::parameter(const std::string& name, const Tensor& value, Site at) {
  require_free(name);
  const Variable variable(value, true, join(path_, name), at);
  parameters_.push_back({name, variable});
  return variable;
}

Variable Module::buffer(const std::string& name, const Tensor& value) {
  require_free(name);
  const Variable variable(value, false, join(path_, name));
  buffers_.push_back({name, variable});
  return variable;
}

void Module::child(const std::string& name, Module& module) {
  require_free(name);
  if (module.adopted_) throw UsageError("module: \"" + name + "\" is part of a module already");
  module.adopted_ = true;
  children_.push_back({name, &module});
  module.set_path(join(path_, name));
}

void Module::set_path(const std::string& path) {
  path_ = interned(path);
  for (Parameter& p : parameters_) p.variable.named(join(path, p.path));
  for (Parameter& b : buffers_) b.variable.named(join(path, b.path));
  for (const Child& c : children_) c.module->set_path(join(path, c.name));
}

void Module::collect(const std::string& prefix, std::vector<Parameter> Module::*list,
                     std::vector<Parameter>& out) const {
  for (const Parameter& p : this->*list) out.push_back({join(prefix, p.path), p.variable});
  for (const Child& c : children_) c.module->collect(join(prefix, c.name), list, out);
}

std::vector<Module::Parameter> Module::parameters() const {
  std::vector<Parameter> out;
  collect("", &Module::parameters_, out);
  return out;
}

std::vector<Variable> Module::variables() const {
  std::vector<Variable> out;
  for (const Parameter& p : parameters()) out.push_back(p.variable);
  return out;
}

int64_t Module::parameter_count() const {
  int64_t count = 0;
  for (const Parameter& p : parameters()) count += p.variable.numel();
  return count;
}

void Module::zero_grad() {
  for (Parameter& p : parameters()) p.variable.zero_grad();
}

void Module::train(bool on) {
  training_ = on;
  for (const Child& c : children_) c.module->train(on);
}

// ---- summary

namespace {

struct Row {
  std::string path, shape, count;
};

std::string table(const std::vector<Row>& rows) {
  size_t path = 0, shape = 0, count = 0;
  for (const Row& row : rows) {
    path = std::max(path, row.path.size());
    shape = std::max(shape, row.shape.size());
    count = std::max(count, row.count.size());
  }
  std::string out;
  for (const Row& row : rows) {
    out += row.path + std::string(path - row.path.size() + 2, ' ');
    out += row.shape + std::string(shape - row.shape.size() + 2, ' ');
    out += std::string(count - row.count.size(), ' ') + row.count + '\n';
  }
  return out;
}

}  // namespace

std::string Module::summary() const {
  std::vector<Row> rows = {{"parameter", "shape", "count"}};
  for (const Parameter& p : parameters()) {
    rows.push_back({p.path, text(p.variable.shape()), std::to_string(p.variable.numel())});
  }
  rows.push_back({"total", "", std::to_string(parameter_count())});
  return table(rows);
}

// ---- state

std::map<std::string, Tensor> Module::state() const {
  std::vector<Parameter> all = parameters();
  collect("", &Module::buffers_, all);
  std::map<std::string, Tensor> out;
  for (const Parameter& p : all) out[p.path] = p.variable.value();
  return out;
}

namespace {

struct Fault {
  const char* kind;
  std::vector<std::string> items;
};

void throw_faults(const std::vector<Fault>& faults) {
  std::string lines;
  for (const Fault& fault : faults) {
    for (size_t i = 0; i < fault.items.size(); i++) {
      lines += (i == 0 ? text("\n  ", fault.kind, " (", fault.items.size(), "): ") : ", ") + fault.items[i];
    }
  }
  if (!lines.empty()) throw Error("load_state: the tensors do not fit the module, nothing was loaded" + lines);
}

}  // namespace

void Module::load_state(const std::map<std::string, Tensor>& state, bool strict) {
  std::vector<Parameter> all = parameters();
  collect("", &Module::buffers_, all);
  Fault missing{"missing", {}}, unexpected{"unexpected", {}}, shapes{"wrong shape", {}}, dtypes{"wrong dtype", {}};
  std::set<std::string> known;
  for (const Parameter& p : all) {
    known.insert(p.path);
    const auto found = state.find(p.path);
    if (found == state.end() || !found->second.defined()) {
      if (strict) missing.items.push_back(p.path);
      continue;
    }
    const Tensor &from = found->second, &to = p.variable.value();
    if (!(from.shape() == to.shape())) {
      shapes.items.push_back(text(p.path, " is ", from.shape(), ", must be ", to.shape()));
    } else if (from.dtype() != to.dtype()) {
      dtypes.items.push_back(text(p.path, " is ", name_of(from.dtype()), ", must be ", name_of(to.dtype())));
    }
  }
  for (const auto& [path, tensor] : state) {
    if (strict && known.count(path) == 0) unexpected.items.push_back(path);
  }
  throw_faults({missing, unexpected, shapes, dtypes});

  for (Parameter& p : all) {
    const auto found = state.find(p.path);
    if (found == state.end() || !found->second.defined()) continue;
    p.variable.set_value(found->second.contiguous_copy().to(p.variable.value().device()));
  }
}

// ---- checks

void require_positive(const char* module, const char* what, int64_t value) {
  if (value < 1) throw UsageError(text(module, ": ", what, " is ", value, ", it must be positive"));
}

void require_dropout(const char* module, double p) {
  if (!(p >= 0 && p < 1)) throw UsageError(text(module, ": dropout is ", p, ", it must be at least 0 and below 1"));
}

}  // namespace heed::nn
