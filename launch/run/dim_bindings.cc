#include "launch/run/dim_bindings.h"

#include <fmt/ranges.h>

#include <limits>

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

Result<DimBindings::Target> DimBindings::Resolve(const std::string& name,
                                                 const std::vector<InputSpec>& inputs) {
  if (const auto input = FindInput(name, inputs)) return Target{*input, std::nullopt};
  const size_t dot = name.rfind('.');
  if (dot != std::string::npos) {
    const auto input = FindInput(std::string_view(name).substr(0, dot), inputs);
    const int rank = input ? inputs[*input].declared.shape.rank() : 0;
    const Result<int64_t> axis =
        ParseInt(std::string_view(name).substr(dot + 1), 0, std::numeric_limits<int>::max(), name);
    if (input && axis.ok() && *axis < rank) return Target{*input, static_cast<int>(*axis)};
  }
  return Error(Code::kInvalidArgument, "--dim {}: no such input or axis; the graph has {}", name,
               InputNames(inputs));
}

Result<std::vector<TensorType>> DimBindings::Apply(const std::vector<InputSpec>& inputs) const {
  std::vector<TensorType> types;
  for (const InputSpec& input : inputs) types.push_back(input.declared);
  // Whole inputs first, so that a binding of one axis has the last word.
  for (const bool whole : {true, false}) {
    for (const Binding& binding : bindings_) {
      NPUMESH_ASSIGN_OR_RETURN(const Target target, Resolve(binding.name, inputs));
      if (target.axis.has_value() == whole) continue;
      const Shape& declared = inputs[target.input].declared.shape;
      bool bound = false;
      for (int axis = 0; axis < declared.rank(); ++axis) {
        if (declared[axis] != kUnknownDim || (target.axis && *target.axis != axis)) continue;
        types[target.input].shape[axis] = binding.value;
        bound = true;
      }
      if (bound) continue;
      return Error(Code::kInvalidArgument, "--dim {}: nothing to bind, the graph declares {}",
                   binding.name, inputs[target.input].declared.ToString());
    }
  }
  NPUMESH_RETURN_IF_ERROR(CheckNothingOpen(inputs, types));
  return types;
}

}  // namespace npumesh
