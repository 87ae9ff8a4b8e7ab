#include "launch/view/collective_sizes.h"

#include <algorithm>
#include <numeric>

#include "graph/engine/inference.h"
#include "graph/passes/execution_order.h"

namespace npumesh {
namespace {

// Groups by their members only: enough for shapes, not for communication.
class GroupsOnPaper final : public GroupProvider {
 public:
  GroupsOnPaper(const GroupTable& table, int world_size) : table_(table), world_size_(world_size) {}

  Result<Communicator*> Group(const std::string& group) override {
    return Error(Code::kUnsupported, "group {}: there are no ranks", group);
  }

  Result<Members> MembersOf(const std::string& group) override {
    constexpr std::string_view kRankList = "rank_list=";
    Members members;
    members.rank = 0;
    const size_t list = group.find(kRankList);
    if (const auto named = table_.find(group); named != table_.end()) {
      members.world_ranks = named->second;
    } else if (list != std::string::npos) {
      const std::string_view ranks = std::string_view(group).substr(list + kRankList.size());
      NPUMESH_ASSIGN_OR_RETURN(members.world_ranks, ParseRankList(ranks, group));
    } else {
      members.world_ranks.resize(static_cast<size_t>(world_size_));
      std::iota(members.world_ranks.begin(), members.world_ranks.end(), 0);
    }
    return members;
  }

 private:
  const GroupTable& table_;
  int world_size_;
};

std::vector<bool> AllNodes(const Graph& graph) {
  std::vector<bool> needed;
  for (const Node& node : graph.nodes()) needed.push_back(!node.removed);
  return needed;
}

}  // namespace

std::map<NodeId, TensorType> CollectiveInputs(const Model& model, const OpRegistry& registry,
                                              const GroupTable& table, int world_size) {
  const Result<std::vector<InputSpec>> specs = InputsOf(model);
  const BoundGraph graph(model.graph, registry);
  const Result<std::vector<NodeId>> order = ExecutionOrder(graph, AllNodes(model.graph));
  if (!specs.ok() || !order.ok()) return {};
  std::map<NodeId, Inference::Input> inputs;
  for (const InputSpec& spec : *specs) {
    if (!spec.declared.shape.is_static()) return {};
    inputs[model.graph.Find(spec.name)] = {spec.declared, Tensor()};
  }
  GroupsOnPaper groups(table, world_size);
  Inference inference(graph, {&groups, 1});
  WeightCache weights;
  if (!inference.Run(*order, inputs, weights, model.path).ok()) return {};
  std::map<NodeId, TensorType> types;
  for (const NodeId id : *order) {
    const Operator* op = graph.op(id);
    if (op == nullptr || !op->collective) continue;
    const std::vector<std::optional<Value>>& values = model.graph.node(id).inputs;
    if (!values.empty() && values[0]) types[id] = inference.type(*values[0]);
  }
  return types;
}

}  // namespace npumesh
