#include "graph/session/frozen_inputs.h"

#include <algorithm>

#include "graph/engine/analyse/bound_type.h"
#include "graph/passes/analysis/bound_graph.h"
#include "graph/passes/analysis/node_error.h"

namespace npumesh {
namespace {

constexpr std::string_view kOption = "experimental_config.frozen_parameter";

// The operator that overwrites the input; kNoNode: none.
NodeId WriterOf(const BoundGraph& bound, NodeId input) {
  for (const InPlaceWrite& write : bound.writes()) {
    if (bound.StorageRoot(write.target).node == input) return write.node;
  }
  return kNoNode;
}

Status CheckOne(const BoundGraph& bound, NodeId input) {
  const Node& node = bound.node(input);
  const NodeId writer = WriterOf(bound, input);
  if (!IsRefData(node) && writer == kNoNode) return Status();
  return Error(Code::kInvalidArgument,
               "input \"{}\" is a parameter that {} freezes, but {} overwrites it; leave it out of "
               "the parameters",
               node.name, kOption,
               writer == kNoNode ? "as a RefData the graph"
                                 : fmt::format("node \"{}\"", bound.node(writer).name));
}

// A constant without a value: the compiler of the graph gets it from its caller.
void MakeConstant(const Tensor& value, Node& node) {
  node.type = "Constant";
  node.inputs.clear();
  node.input_descs.clear();
  const int64_t index = node.IntAttr("index", 0);
  node.attrs.clear();
  node.attrs["shape"] = AttrValue::Ints(value.shape().dims());
  node.attrs["dtype"] = AttrValue::Type(value.dtype());
  node.attrs["_frozen_input"] = AttrValue::Int(index);
}

}  // namespace

Result<std::vector<int>> ParseFrozenInput(std::string_view flags) {
  std::vector<int> positions;
  for (int position = 0; !flags.empty(); ++position) {
    const size_t end = std::min(flags.find(','), flags.size());
    const std::string_view flag = flags.substr(0, end);
    if (flag != "0" && flag != "1") {
      return Error(Code::kInvalidArgument,
                   "frozenInput: flag {} is \"{}\"; expected 0 or 1, as in 0,1,1", position, flag);
    }
    if (flag == "1") positions.push_back(position);
    if (end + 1 == flags.size()) {
      return Error(Code::kInvalidArgument, "frozenInput: it ends with a comma");
    }
    flags.remove_prefix(std::min(end + 1, flags.size()));
  }
  return positions;
}

Result<FrozenInputs> FrozenInputs::Find(const Model& model, const OpRegistry& registry,
                                        const std::vector<int>& positions) {
  const std::vector<NodeId> nodes = model.graph.DataNodes();
  const BoundGraph bound(model.graph, registry);
  FrozenInputs frozen;
  for (const int position : positions) {
    const auto at = static_cast<size_t>(position);
    if (position < 0 || at >= nodes.size()) {
      return Error(Code::kInvalidArgument,
                   "{}: parameter at position {}, but the graph has {} inputs", kOption, position,
                   nodes.size());
    }
    NPUMESH_RETURN_IF_ERROR(CheckOne(bound, nodes[at]));
    frozen.positions_.push_back(at);
  }
  std::sort(frozen.positions_.begin(), frozen.positions_.end());
  const auto same = std::unique(frozen.positions_.begin(), frozen.positions_.end());
  frozen.positions_.erase(same, frozen.positions_.end());
  return frozen;
}

bool FrozenInputs::Holds(size_t position) const {
  return std::binary_search(positions_.begin(), positions_.end(), position);
}

Status FrozenInputs::Take(const std::vector<Tensor>& inputs, const std::vector<InputSpec>& specs) {
  if (!taken()) {
    for (const size_t position : positions_) {
      const Tensor& seen = inputs[position];
      values_[position] = seen.WithType(BoundType(specs[position], seen.type()));
    }
    return Status();
  }
  for (const auto& [position, value] : values_) {
    const Tensor& seen = inputs[position];
    if (seen.dtype() == DataType::kUndefined) continue;
    const bool same_type = BoundType(specs[position], seen.type()) == value.type();
    if (same_type && seen.data() == value.data()) continue;
    return Error(
        Code::kInvalidArgument,
        "input {} \"{}\": it is frozen ({}), so its address may not change: expected {} at "
        "{}, seen {} at {}; give the same tensor again, or none, or make a new session",
        specs[position].index, specs[position].name, kOption, value.type().ToString(),
        fmt::ptr(value.data()), seen.type().ToString(), fmt::ptr(seen.data()));
  }
  return Status();
}

std::map<std::string, Tensor> FrozenInputs::PutInto(Model& model) const {
  const std::vector<NodeId> nodes = model.graph.DataNodes();
  std::map<std::string, Tensor> by_name;
  for (const auto& [position, value] : values_) {
    Node& node = model.graph.node(nodes[position]);
    MakeConstant(value, node);
    by_name[node.name] = value;
  }
  return by_name;
}

}  // namespace npumesh
