#include "graph/engine/plan/static_parts.h"

#include <algorithm>
#include <set>

#include "graph/engine/analyse/model_inputs.h"
#include "graph/engine/analyse/partial_types.h"
#include "graph/passes/analysis/value_flow.h"

namespace npumesh {
namespace {

size_t At(NodeId id) {
  return static_cast<size_t>(id);
}

bool IsOpen(const TensorType& type) {
  return type.dtype == DataType::kUndefined || !type.shape.is_static();
}

// How much is known of a node's values while a plan is made.
enum class Knowledge : uint8_t {
  kNothing,
  kVarying,  // the values, but other inputs give other ones
  kSame,     // the values, which are the same for all inputs
};

class KnowledgeOfValues {
 public:
  // `deciding`, by node id: inputs whose values go into a plan.
  KnowledgeOfValues(const BoundGraph& graph, const PartialTypes& types,
                    const std::vector<bool>& deciding)
      : graph_(graph), types_(types), known_(deciding.size(), Knowledge::kNothing) {
    for (const Node& node : graph.graph().nodes()) {
      if (IsWeightNode(node)) known_[At(node.id)] = Knowledge::kSame;
      if (deciding[At(node.id)]) known_[At(node.id)] = Knowledge::kVarying;
    }
  }

  bool varies(NodeId id) const { return known_[At(id)] == Knowledge::kVarying; }

  // REQUIRES: called in execution order.
  void Visit(const Node& node) {
    const Operator* const op = graph_.op(node.id);
    if (op == nullptr || node.inputs.empty()) return;
    const bool query = op->axes.shape_query();
    const bool repeatable = op->pure && !op->late() && !op->collective && !op->side_effect;
    Knowledge least = repeatable ? Knowledge::kSame : Knowledge::kNothing;
    for (const std::optional<Value>& input : node.inputs) {
      if (!input) continue;
      const bool open = IsOpen(types_.type(*input));
      const Knowledge asked = open ? Knowledge::kVarying : Knowledge::kSame;
      const Knowledge mine = query ? asked : known_[At(input->node)];
      // Nothing at all is less than something that varies.
      least = std::min(least, mine);
    }
    known_[At(node.id)] = least;
  }

 private:
  const BoundGraph& graph_;
  const PartialTypes& types_;
  std::vector<Knowledge> known_;  // by node id
};

bool AllKnown(const PartialTypes& types, const Node& node) {
  for (const std::optional<Value>& input : node.inputs) {
    if (input && IsOpen(types.type(*input))) return false;
  }
  for (size_t port = 0; port < node.output_descs.size(); ++port) {
    if (IsOpen(types.type({node.id, static_cast<int>(port)}))) return false;
  }
  return true;
}

// The fusions that hold one of these nodes.
std::vector<std::vector<NodeId>> FusionsOf(const std::vector<NodeId>& nodes,
                                           const std::vector<std::vector<NodeId>>& fusions) {
  const std::set<NodeId> mine(nodes.begin(), nodes.end());
  std::vector<std::vector<NodeId>> found;
  for (const std::vector<NodeId>& fused : fusions) {
    if (std::any_of(fused.begin(), fused.end(), [&](NodeId id) { return mine.count(id) > 0; })) {
      found.push_back(fused);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool Holds(const std::vector<NodeId>& nodes, const std::vector<NodeId>& some) {
  const std::set<NodeId> all(nodes.begin(), nodes.end());
  return std::all_of(some.begin(), some.end(), [&](NodeId id) { return all.count(id) > 0; });
}

}  // namespace

StaticParts* StaticPartsOf(const CompileOptions& options) {
  const bool shares = options.static_parts != nullptr && options.static_parts->lower_limit() >= 0;
  return shares ? options.static_parts : nullptr;
}

const InferenceMemory* FoundBefore(const CompileOptions& options) {
  StaticParts* const shared = StaticPartsOf(options);
  return shared != nullptr && shared->chosen() ? &shared->memory() : nullptr;
}

Result<std::vector<bool>> StaticOperators(const Model& model, const BoundGraph& graph,
                                          const std::vector<NodeId>& order, GroupProvider* groups) {
  std::vector<bool> is_static(graph.graph().nodes().size(), false);
  std::vector<bool> walked = is_static;
  for (const NodeId id : order) walked[At(id)] = true;
  const std::vector<bool> deciding = ShapeDecidingInputs(graph, walked);
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<InputSpec> inputs, InputsOf(model));
  const bool dynamic = std::any_of(inputs.begin(), inputs.end(),
                                   [](const InputSpec& input) { return IsOpen(input.declared); });
  if (!dynamic && std::none_of(deciding.begin(), deciding.end(), [](bool it) { return it; })) {
    return is_static;
  }
  NPUMESH_ASSIGN_OR_RETURN(const PartialTypes types,
                           PartialTypes::Of(model, graph, order, groups, PartialEffort::kQuick));
  const std::vector<bool> may = MayBeStatic(graph);
  KnowledgeOfValues values(graph, types, deciding);
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    values.Visit(node);
    const bool reads_varying =
        std::any_of(node.inputs.begin(), node.inputs.end(),
                    [&](const auto& input) { return input && values.varies(input->node); });
    is_static[At(id)] = may[At(id)] && !reads_varying && AllKnown(types, node);
  }
  return is_static;
}

std::vector<StaticPart> ChooseParts(const BoundGraph& graph, const std::vector<NodeId>& kept,
                                    std::vector<bool> is_static,
                                    const std::vector<std::vector<NodeId>>& fusions,
                                    int64_t lower_limit) {
  std::vector<bool> runs(is_static.size(), false);
  for (const NodeId id : kept) runs[At(id)] = true;
  for (size_t i = 0; i < runs.size(); ++i) is_static[i] = is_static[i] && runs[i];
  std::vector<std::vector<NodeId>> groups;
  for (bool again = true; again;) {
    again = false;
    // Of any size: those that are too small take no fusion apart.
    groups = StaticSubgraphs(graph, kept, is_static, 1);
    for (const std::vector<NodeId>& fused : fusions) {
      const bool whole = std::any_of(groups.begin(), groups.end(),
                                     [&](const auto& group) { return Holds(group, fused); });
      for (const NodeId id : fused) {
        if (whole || !is_static[At(id)]) continue;
        is_static[At(id)] = false;
        again = true;
      }
    }
  }
  std::vector<StaticPart> parts;
  for (std::vector<NodeId>& group : groups) {
    if (static_cast<int64_t>(group.size()) < lower_limit) continue;
    StaticPart& part = parts.emplace_back();
    part.fusions = FusionsOf(group, fusions);
    part.nodes_by_id = group;
    std::sort(part.nodes_by_id.begin(), part.nodes_by_id.end());
    part.nodes = std::move(group);
  }
  return parts;
}

bool SameFusions(const StaticPart& part, const std::vector<std::vector<NodeId>>& fusions) {
  return part.fusions == FusionsOf(part.nodes, fusions);
}

}  // namespace npumesh
