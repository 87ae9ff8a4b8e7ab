#include "launch/run/dim_bindings.h"

#include <fmt/ranges.h>

#include <limits>
#include <set>

#include "graph/onnx/import.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

Status CheckNothingOpen(const std::vector<InputSpec>& inputs,
                        const std::vector<TensorType>& types) {
  std::vector<std::string> open;
  std::string example;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!types[i].shape.has_rank()) {
      return Error(Code::kInvalidArgument,
                   "input {} ({}) has no declared number of dimensions; give its value with "
                   "--inputs",
                   inputs[i].index, inputs[i].name);
    }
    for (int axis = 0; axis < types[i].shape.rank(); ++axis) {
      if (types[i].shape[axis] >= 0) continue;
      open.push_back(fmt::format("{}.{}", inputs[i].name, axis));
    }
  }
  if (open.empty()) return Status();
  return Error(Code::kInvalidArgument,
               "open dimensions: {}; bind each, for example --dim {}=2, or give values with "
               "--inputs",
               fmt::join(open, ", "), open[0]);
}

}  // namespace

std::optional<size_t> FindInput(std::string_view name, const std::vector<InputSpec>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].name == name) return i;
  }
  const Result<int64_t> index = ParseInt(name, 0, std::numeric_limits<int64_t>::max(), "index");
  if (!index.ok()) return std::nullopt;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].index == *index) return i;
  }
  return std::nullopt;
}

std::string InputNames(const std::vector<InputSpec>& inputs) {
  std::vector<std::string> names;
  for (const InputSpec& input : inputs) {
    names.push_back(fmt::format("{} ({})", input.name, input.declared.ToString()));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string DimWords(const std::vector<InputSpec>& inputs) {
  std::string words;
  for (const InputSpec& input : inputs) {
    if (!input.declared.shape.is_static())
      words += fmt::format(" --dim {}=N", Printable(input.name));
  }
  return words;
}

Result<DimBindings> DimBindings::Parse(const std::vector<std::string>& texts) {
  DimBindings result;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      return Error(Code::kInvalidArgument,
                   "--dim \"{}\": expected NAME=VALUE, where NAME is an input or input.axis", text);
    }
    NPUMESH_ASSIGN_OR_RETURN(
        const int64_t value,
        ParseInt(std::string_view(text).substr(equals + 1), 1, std::numeric_limits<int32_t>::max(),
                 fmt::format("--dim {}", text.substr(0, equals))));
    result.bindings_.push_back({text.substr(0, equals), value});
  }
  return result;
}

DimNames DimNamesOf(const Model& model) {
  DimNames names;
  for (const NodeId id : model.graph.DataNodes()) {
    const Node& node = model.graph.node(id);
    const auto attr = node.attrs.find(std::string(kDimNamesAttr));
    const auto* const list = attr == node.attrs.end() ? nullptr : attr->second.get<ListAttr>();
    if (list != nullptr) names[node.IntAttr("index", 0)] = list->s;
  }
  return names;
}

Result<DimBindings::Target> DimBindings::Resolve(const std::string& name,
                                                 const std::vector<InputSpec>& inputs,
                                                 const DimNames& names) {
  if (const auto input = FindInput(name, inputs)) {
    Target whole;
    for (int axis = 0; axis < inputs[*input].declared.shape.rank(); ++axis) {
      whole.dims.emplace_back(*input, axis);
    }
    return whole;
  }
  const size_t dot = name.rfind('.');
  if (dot != std::string::npos) {
    const auto input = FindInput(std::string_view(name).substr(0, dot), inputs);
    const int rank = input ? inputs[*input].declared.shape.rank() : 0;
    const Result<int64_t> axis =
        ParseInt(std::string_view(name).substr(dot + 1), 0, std::numeric_limits<int>::max(), name);
    if (input && axis.ok() && *axis < rank) {
      return Target{Reach::kAxis, {{*input, static_cast<int>(*axis)}}};
    }
  }
  Target named{Reach::kName, {}};
  std::set<std::string> others;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto found = names.find(inputs[i].index);
    if (found == names.end()) continue;
    const int rank = inputs[i].declared.shape.rank();
    for (int axis = 0; axis < rank && axis < static_cast<int>(found->second.size()); ++axis) {
      const std::string& each = found->second[static_cast<size_t>(axis)];
      if (each == name) named.dims.emplace_back(i, axis);
      if (!each.empty()) others.insert(Printable(each));
    }
  }
  if (!named.dims.empty()) return named;
  return Error(
      Code::kInvalidArgument, "--dim {}: no such input, axis or dimension; the graph has {}{}",
      name, InputNames(inputs),
      others.empty() ? "" : fmt::format(", and dimensions called {}", fmt::join(others, ", ")));
}

Result<std::vector<TensorType>> DimBindings::ApplySome(const std::vector<InputSpec>& inputs,
                                                       const DimNames& names) const {
  std::vector<TensorType> types;
  for (const InputSpec& input : inputs) types.push_back(input.declared);
  // In this order, so that what says more of a dimension has the last word.
  for (const Reach reach : {Reach::kInput, Reach::kName, Reach::kAxis}) {
    for (const Binding& binding : bindings_) {
      NPUMESH_ASSIGN_OR_RETURN(const Target target, Resolve(binding.name, inputs, names));
      if (target.reach != reach) continue;
      bool bound = false;
      for (const auto& [input, axis] : target.dims) {
        if (inputs[input].declared.shape[axis] != kUnknownDim) continue;
        types[input].shape[axis] = binding.value;
        bound = true;
      }
      if (bound) continue;
      std::set<std::string> declared;
      for (const auto& [input, axis] : target.dims)
        declared.insert(inputs[input].declared.ToString());
      if (target.dims.empty())
        declared.insert(inputs[*FindInput(binding.name, inputs)].declared.ToString());
      return Error(Code::kInvalidArgument, "--dim {}: nothing to bind, the graph declares {}",
                   binding.name, fmt::join(declared, ", "));
    }
  }
  return types;
}

Result<std::vector<TensorType>> DimBindings::Apply(const std::vector<InputSpec>& inputs,
                                                   const DimNames& names) const {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<TensorType> types, ApplySome(inputs, names));
  NPUMESH_RETURN_IF_ERROR(CheckNothingOpen(inputs, types));
  return types;
}

}  // namespace npumesh
