#include "graph/engine/analyse/model_inputs.h"

#include <algorithm>
#include <set>

#include "graph/ir/graph_input.h"
#include "graph/ir/node_kind.h"
#include "graph/passes/analysis/node_error.h"
#include "graph/passes/analysis/operator_check.h"
#include "graph/passes/analysis/reachability.h"
#include "graph/passes/analysis/value_flow.h"
#include "graph/passes/rewrite/subgraphs.h"
#include "runtime/base/error_list.h"

namespace npumesh {
namespace {

// The shape a caller has to bring; unknown rank when the file says nothing.
Shape DeclaredShape(const TensorDesc& desc) {
  const bool says_dims = desc.shape && desc.shape->rank() > 0;
  const auto origin = desc.attrs.find("origin_shape");
  if (!says_dims && origin != desc.attrs.end()) {
    const auto* dims = origin->second.get<ListAttr>();
    if (dims != nullptr && !dims->i.empty()) return Shape(dims->i);
  }
  return desc.shape ? *desc.shape : Shape::UnknownRank();
}

InputSpec SpecOf(const Node& node) {
  InputSpec spec;
  spec.name = node.name;
  spec.index = node.IntAttr("index", 0);
  spec.ref = IsRefData(node);
  const TensorDesc desc = GraphInputDesc(node);
  spec.declared = {desc.dtype, DeclaredShape(desc)};
  spec.host = desc.device_type == "CPU";
  return spec;
}

// What is wrong with `seen` as an input declared so; empty: nothing.
std::string Misfit(const TensorType& declared, const TensorType& seen) {
  if (declared.dtype != DataType::kUndefined && declared.dtype != seen.dtype) {
    return fmt::format("the dtype is {}, expected {}", Name(seen.dtype), Name(declared.dtype));
  }
  if (!declared.shape.has_rank()) return "";
  if (declared.shape.rank() != seen.shape.rank()) {
    return fmt::format("the rank is {}, expected {}", seen.shape.rank(), declared.shape.rank());
  }
  for (int i = 0; i < seen.shape.rank(); ++i) {
    if (declared.shape[i] != kUnknownDim && declared.shape[i] != seen.shape[i]) {
      return fmt::format("dimension {} is {}, expected {}", i, seen.shape[i], declared.shape[i]);
    }
  }
  return "";
}

Status CheckConcrete(const TensorType& type) {
  if (BitsOf(type.dtype) == 0) {
    return Error(Code::kInvalidArgument, "dtype {} has no fixed width", Name(type.dtype));
  }
  if (!type.shape.is_static()) {
    return Error(Code::kInvalidArgument, "{} has unknown dimensions", type.ToString());
  }
  NPUMESH_RETURN_IF_ERROR(type.shape.Check());
  if (!BytesOf(type.dtype, static_cast<uint64_t>(type.shape.elements()))) {
    return Error(Code::kInvalidArgument, "{} has more bytes than 63 bits can count",
                 type.ToString());
  }
  return Status();
}

// A branch or body gets copies of its inputs, so writing to them would be lost.
Status CheckWritesInside(const BoundGraph& bound) {
  for (const InPlaceWrite& write : bound.writes()) {
    const Node& root = bound.node(bound.StorageRoot(write.target).node);
    if (!IsData(root)) continue;
    return AtNode(bound.node(write.node),
                  Error(Code::kUnsupported,
                        "it overwrites \"{}\", an input of subgraph \"{}\", in place; put a "
                        "TensorMove before it",
                        root.name, bound.graph().name()));
  }
  return Status();
}

}  // namespace

Result<std::vector<InputSpec>> InputsOf(const Model& model) {
  std::vector<InputSpec> inputs;
  for (const NodeId id : model.graph.DataNodes()) {
    inputs.push_back(SpecOf(model.graph.node(id)));
    if (inputs.size() < 2) continue;
    const InputSpec& before = inputs[inputs.size() - 2];
    if (before.index == inputs.back().index) {
      return Error(Code::kCorrupt, "graph \"{}\": inputs \"{}\" and \"{}\" both have index {}",
                   model.graph.name(), before.name, inputs.back().name, before.index);
    }
  }
  return inputs;
}

Status CheckInputTypes(const std::vector<InputSpec>& inputs, const std::vector<TensorType>& types) {
  if (inputs.size() != types.size()) {
    return Error(Code::kInvalidArgument, "the graph has {} inputs, {} were given", inputs.size(),
                 types.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputSpec& input = inputs[i];
    const auto who = [&input] { return fmt::format("input {} \"{}\"", input.index, input.name); };
    const Status concrete = CheckConcrete(types[i]);
    if (!concrete.ok()) return concrete.WithContext(who());
    const std::string misfit = Misfit(input.declared, types[i]);
    if (!misfit.empty()) {
      return Error(Code::kInvalidArgument, "{}: expected {}, seen {}: {}", who(),
                   input.declared.ToString(), types[i].ToString(), misfit);
    }
  }
  return Status();
}

std::vector<bool> ShapeDecidingInputs(const Model& model, const OpRegistry& registry,
                                      DeadNodes dead) {
  const BoundGraph bound(model.graph, registry);
  const std::vector<bool> by_node = ShapeDecidingInputs(bound, NeededNodes(bound, nullptr, dead));
  std::vector<bool> by_position;
  for (const NodeId id : model.graph.DataNodes()) {
    by_position.push_back(by_node[static_cast<size_t>(id)]);
  }
  return by_position;
}

Status CheckModel(const Model& model, const OpRegistry& registry) {
  ErrorList errors;
  for (const Graph* graph : ReachableGraphs(model)) {
    const BoundGraph bound(*graph, registry);
    const bool main = graph == &model.graph;
    Status status = CheckOperators(bound, NeededNodes(bound));
    if (status.ok() && !main) status = CheckWritesInside(bound);
    if (!status.ok()) errors.Add(status);
  }
  return errors.Join(fmt::format("model \"{}\"", model.name));
}

std::vector<std::string> GroupsOf(const Model& model, const OpRegistry& registry) {
  std::set<std::string> groups;
  for (const Graph* graph : ReachableGraphs(model)) {
    const BoundGraph bound(*graph, registry);
    for (const Node& node : graph->nodes()) {
      const Operator* op = bound.op(node.id);
      if (op == nullptr || !op->collective) continue;
      groups.insert(GroupOf(node, *op));
    }
  }
  return {groups.begin(), groups.end()};
}

}  // namespace npumesh
