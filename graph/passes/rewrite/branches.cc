#include "graph/passes/rewrite/branches.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "graph/io/weights.h"
#include "graph/ops/toolbox/values/element_io.h"
#include "graph/passes/analysis/bound_graph.h"
#include "graph/passes/rewrite/constant_folding.h"
#include "graph/passes/rewrite/subgraphs.h"

namespace npumesh {
namespace {

Result<size_t> BranchIndex(const TensorType& type, const void* index, size_t branches) {
  if (type.dtype != DataType::kInt32 || type.shape.elements() != 1) {
    return Error(Code::kInvalidArgument, "its branch_index is {}, expected one int32",
                 type.ToString());
  }
  int32_t value = 0;
  std::memcpy(&value, index, sizeof value);
  if (value < 0 || static_cast<size_t>(value) >= branches) return branches - 1;
  return static_cast<size_t>(value);
}

// Values of a graph that constants alone decide.
class ComputedConstants {
 public:
  ComputedConstants(const Graph& graph, const OpRegistry& registry, const std::string& path)
      : graph_(graph), bound_(graph, registry), path_(path) {}

  // nullopt: inputs decide, or it cannot be computed; a run of the graph will say so.
  std::optional<Tensor> Of(Value value) {
    const std::optional<std::set<NodeId>> cone = ConeOf(value.node);
    if (!cone) return std::nullopt;
    const Result<std::vector<NodeId>> order = graph_.StableOrder();
    if (!order.ok()) return std::nullopt;
    for (const NodeId id : *order) {
      if (cone->count(id) > 0 && known_.count(id) == 0 && !Compute(id)) return std::nullopt;
    }
    return known_.at(value.node)[static_cast<size_t>(value.port)];
  }

 private:
  // More than that is no condition.
  static constexpr size_t kMostNodes = 4096;

  // The node and all that it is computed from; nullopt: some of that is no constant.
  std::optional<std::set<NodeId>> ConeOf(NodeId id) const {
    std::set<NodeId> cone;
    std::vector<NodeId> pending = {id};
    while (!pending.empty()) {
      const Node& node = graph_.node(pending.back());
      pending.pop_back();
      if (!cone.insert(node.id).second) continue;
      const bool weight = IsWeightNode(node);
      if (cone.size() > kMostNodes || (!weight && !bound_.bound(node.id))) return std::nullopt;
      for (const std::optional<Value>& input : node.inputs) {
        if (input && !weight) pending.push_back(input->node);
      }
    }
    return cone;
  }

  bool Compute(NodeId id) {
    const Node& node = graph_.node(id);
    if (IsWeightNode(node)) {
      const Result<Tensor> weight = LoadWeight(node, path_);
      if (weight.ok()) known_[id] = {Aligned(*weight)};
      return weight.ok();
    }
    OpContext context = bound_.context(id);
    for (int slot = 0; slot < context.slots(); ++slot) {
      const std::optional<Value> value = bound_.SlotValue(id, slot);
      if (!value) continue;
      const Tensor& input = known_.at(value->node)[static_cast<size_t>(value->port)];
      context.set_in(slot, input.type());
      context.set_value(slot, &input);
    }
    const Operator& op = *bound_.op(id);
    if (op.collective || op.late() || !op.infer(context).ok()) return false;
    Result<std::optional<std::vector<Tensor>>> outputs = FoldConstants(op, context);
    if (!outputs.ok() || !*outputs) return false;
    known_[id] = std::move(**outputs);
    return true;
  }

  const Graph& graph_;
  const BoundGraph bound_;
  const std::string& path_;
  std::map<NodeId, std::vector<Tensor>> known_;  // by port
};

bool Chooses(const Node& node) {
  const SubgraphUse use = SubgraphUseOf(node.type);
  return !node.removed && (use == SubgraphUse::kIf || use == SubgraphUse::kCase) &&
         node.subgraphs.size() >= 2 && !node.inputs.empty() && node.inputs[0];
}

// Leaves every If and Case whose condition is known with its only possible subgraph. False: no such
// node. A value that decides nothing is reported when the node runs.
bool DecideAll(Graph& graph, const OpRegistry& registry, const std::string& path) {
  std::map<NodeId, size_t> branches;
  if (std::any_of(graph.nodes().begin(), graph.nodes().end(), Chooses)) {
    ComputedConstants constants(graph, registry, path);
    for (const Node& node : graph.nodes()) {
      if (!Chooses(node)) continue;
      const std::optional<Tensor> value = constants.Of(*node.inputs[0]);
      if (!value) continue;
      const Result<size_t> branch = ChosenBranch(node, value->type(), value->data());
      if (branch.ok()) branches[node.id] = *branch;
    }
  }
  for (const auto& [id, branch] : branches) {
    graph.node(id).subgraphs = {graph.node(id).subgraphs[branch]};
  }
  return !branches.empty();
}

}  // namespace

Result<bool> IsTrue(const TensorType& type, const void* condition) {
  if (type.dtype == DataType::kUndefined) {
    return Error(Code::kInvalidArgument, "its condition is not connected");
  }
  if (type.shape.rank() > 0) return type.shape.elements() > 0;
  if (HasZero(type.dtype)) return IsNonZero(type.dtype, condition);
  return Error(Code::kUnsupported, "its condition is {}", type.ToString());
}

Result<size_t> ChosenBranch(const Node& node, const TensorType& type, const void* value) {
  if (SubgraphUseOf(node.type) == SubgraphUse::kCase) {
    return BranchIndex(type, value, node.subgraphs.size());
  }
  NPUMESH_ASSIGN_OR_RETURN(const bool taken, IsTrue(type, value));
  return size_t{taken ? 0u : 1u};
}

Status InlineKnownBranches(Model& model, const OpRegistry& registry) {
  for (bool decided = true; decided;) {
    NPUMESH_RETURN_IF_ERROR(InlineCalls(model));
    decided = DecideAll(model.graph, registry, model.path);
    for (Graph& graph : model.subgraphs) {
      if (DecideAll(graph, registry, model.path)) decided = true;
    }
  }
  return Status();
}

}  // namespace npumesh
