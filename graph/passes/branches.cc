#include "graph/passes/branches.h"

#include <cstring>

#include "graph/io/weights.h"
#include "graph/ops/truth.h"
#include "graph/passes/subgraphs.h"

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

// Leaves an If or Case with its only possible subgraph. False: it can still be any. A value that
// decides nothing is reported when the node runs.
bool Decide(const Graph& graph, const std::string& path, Node& node) {
  const SubgraphUse use = SubgraphUseOf(node.type);
  if ((use != SubgraphUse::kIf && use != SubgraphUse::kCase) || node.subgraphs.size() < 2) {
    return false;
  }
  if (node.inputs.empty() || !node.inputs[0]) return false;
  const Node& source = graph.node(node.inputs[0]->node);
  if (source.type != "Const" && source.type != "Constant") return false;
  const Result<Tensor> value = LoadWeight(source, path);
  if (!value.ok()) return false;
  const Result<size_t> branch = ChosenBranch(node, value->type(), value->data());
  if (!branch.ok()) return false;
  node.subgraphs = {node.subgraphs[*branch]};
  return true;
}

bool DecideAll(Graph& graph, const std::string& path) {
  bool decided = false;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const auto id = static_cast<NodeId>(i);
    if (!graph.node(id).removed && Decide(graph, path, graph.node(id))) decided = true;
  }
  return decided;
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

Status InlineKnownBranches(Model& model) {
  for (bool decided = true; decided;) {
    NPUMESH_RETURN_IF_ERROR(InlineCalls(model));
    decided = DecideAll(model.graph, model.path);
    for (Graph& graph : model.subgraphs) {
      if (DecideAll(graph, model.path)) decided = true;
    }
  }
  return Status();
}

}  // namespace npumesh
