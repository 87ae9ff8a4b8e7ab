#include "graph/compare/replay/replay.h"

#include <algorithm>
#include <mutex>

#include "graph/compare/sources/graph_that_ran.h"
#include "graph/compare/sources/input_numbers.h"
#include "graph/ir/node_kind.h"
#include "graph/ops/builtin_ops.h"
#include "graph/session/session.h"

namespace npumesh {
namespace {

// One operator of one rank with everything its replay needs.
struct Task {
  const Node* node = nullptr;
  bool collective = false;
};

// The inputs a source has for a node, by their place in it.
Result<std::vector<Tensor>> LoadInputs(const TensorSource& source, const Node& node,
                                       const OpRegistry& registry) {
  std::vector<Tensor> inputs(node.inputs.size());
  const std::vector<size_t> fed = DumpedInputs(node, registry);
  for (size_t i = 0; i < fed.size(); ++i) {
    NPUMESH_ASSIGN_OR_RETURN(
        inputs[fed[i]], source.Load(OperatorKey(node.name), Side::kInput, static_cast<int>(i)));
  }
  return inputs;
}

bool HasInputs(const TensorSource& source, const Node& node, const OpRegistry& registry) {
  const SourceOperator* const op = source.Find(OperatorKey(node.name));
  return op != nullptr && !op->outputs.empty() &&
         op->inputs.size() == DumpedInputs(node, registry).size();
}

// What one rank replays, in the order of its graph; the same on all members for collectives.
class Planner {
 public:
  Planner(const RankGraphs& graphs, const RankSources& sources, const OpRegistry& registry,
          const ReplayOptions& options)
      : graphs_(graphs), sources_(sources), registry_(registry), options_(options) {}

  Result<std::vector<std::vector<Task>>> Run(std::vector<NotReplayed>& left_out) {
    std::vector<std::vector<Task>> plan(graphs_.models.size());
    for (size_t rank = 0; rank < plan.size(); ++rank) {
      if (sources_[rank] == nullptr) continue;
      NPUMESH_RETURN_IF_ERROR(AddUnknown(static_cast<int>(rank), left_out));
      const Graph& graph = graphs_.models[rank]->graph;
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.StableOrder());
      for (const NodeId id : order) {
        const Node& node = graph.node(id);
        if (!Wanted(node, *sources_[rank])) continue;
        std::string why_not = WhyNot(node, static_cast<int>(rank));
        if (!why_not.empty()) {
          left_out.push_back({static_cast<int>(rank), node.name, std::move(why_not)});
          continue;
        }
        plan[rank].push_back({&node, IsCollective(node)});
      }
    }
    return plan;
  }

 private:
  bool Asked(const std::string& key) const {
    return options_.only.empty() || options_.only.count(key) > 0;
  }

  // Operators of the dump that the graph does not have: all of them is a mistake.
  Status AddUnknown(int rank, std::vector<NotReplayed>& left_out) const {
    const TensorSource& source = *sources_[static_cast<size_t>(rank)];
    std::set<std::string> known;
    for (const Node& node : graphs_.models[static_cast<size_t>(rank)]->graph.nodes()) {
      if (!node.removed) known.insert(OperatorKey(node.name));
    }
    size_t found = 0;
    std::vector<NotReplayed> unknown;
    for (const SourceOperator& op : source.operators()) {
      if (IsGraphEnd(op.type)) continue;
      found += known.count(op.key);
      if (known.count(op.key) > 0 || !Asked(op.key)) continue;
      unknown.push_back({rank, op.name, "the graph has no operator of this name"});
    }
    if (found == 0 && !unknown.empty()) {
      return Error(Code::kInvalidArgument,
                   "rank {}: the graph has none of the {} operators of {}, such as \"{}\"; is it "
                   "the graph that ran?",
                   rank, unknown.size(), source.title(), unknown.front().name);
    }
    left_out.insert(left_out.end(), unknown.begin(), unknown.end());
    return Status();
  }

  bool IsCollective(const Node& node) const {
    const Operator* const op = registry_.Find(node.type);
    return op != nullptr ? op->collective.has_value() : node.type.starts_with("Hcom");
  }

  bool Wanted(const Node& node, const TensorSource& source) const {
    const std::string key = OperatorKey(node.name);
    return Asked(key) && !IsGraphEnd(node.type) && !node.removed && source.Find(key) != nullptr &&
           (options_.collectives || !IsCollective(node));
  }

  std::string WhyNot(const Node& node, int rank) const {
    const Operator* const op = registry_.Find(node.type);
    if (op == nullptr) return fmt::format("npumesh has no operator {}", node.type);
    if (!op->pure) return "its outputs are random";
    if (!HasInputs(*sources_[static_cast<size_t>(rank)], node, registry_)) {
      return "the dump lacks its inputs or outputs; dump with mode all";
    }
    return op->collective ? WhyNotTogether(node, *op) : std::string();
  }

  std::string WhyNotTogether(const Node& node, const Operator& op) const {
    if (!op.collective->peer.empty()) {
      return "a message has no counterpart of the same name";
    }
    const Result<std::vector<int>> members = MembersOfGroup(GroupOf(node, op), graphs_);
    if (!members.ok()) return std::string(members.status().message());
    for (const int member : *members) {
      const TensorSource* const source = sources_[static_cast<size_t>(member)];
      const Graph& graph = graphs_.models[static_cast<size_t>(member)]->graph;
      const NodeId theirs = graph.Find(node.name);
      if (source == nullptr || theirs == kNoNode ||
          !HasInputs(*source, graph.node(theirs), registry_)) {
        return fmt::format("rank {} has no dump of it with its inputs", member);
      }
    }
    return {};
  }

  const RankGraphs& graphs_;
  const RankSources& sources_;
  const OpRegistry& registry_;
  const ReplayOptions& options_;
};

// One rank's part, on a separate thread.
class Player {
 public:
  Player(World& world, DeviceMemory& memory, const RankGraphs& graphs, const TensorSource& source,
         const OpRegistry& registry, const CompareOptions& compare)
      : world_(world),
        memory_(memory),
        graphs_(graphs),
        source_(source),
        registry_(registry),
        compare_(compare),
        graph_(graphs.models[static_cast<size_t>(world.rank())]->graph),
        constant_(ConstantNodes(graph_, registry)) {
    comparison_.mine = source.title();
    comparison_.golden = "replay";
  }

  // Errors of local operators are remembered; one of a collective ends the replay, because the
  // other members may wait.
  Status Run(const std::vector<Task>& tasks) {
    for (const Task& task : tasks) {
      const Status status = Play(*task.node);
      if (status.ok()) continue;
      if (task.collective) return status;
      left_out_.push_back(
          {world_.rank(), task.node->name, std::string(status.message()), /*failed=*/true});
    }
    return Status();
  }

  Comparison& comparison() { return comparison_; }
  const std::vector<NotReplayed>& left_out() const { return left_out_; }

 private:
  Status Play(const Node& node) {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs,
                             LoadInputs(source_, node, registry_));
    NPUMESH_ASSIGN_OR_RETURN(LoneOperator lone, Isolate(graph_, node, inputs, constant_));
    SessionOptions options;
    options.groups = graphs_.groups;
    options.registry = &registry_;
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                             Session::Create(world_, memory_, std::move(lone.model), options));
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run(lone.data));
    MemorySource computed(comparison_.golden);
    for (size_t i = 0; i < outputs.size(); ++i) {
      computed.Add(node.name, node.type, Side::kOutput, static_cast<int>(i), outputs[i]);
    }
    NPUMESH_ASSIGN_OR_RETURN(OperatorRow row,
                             CompareOperator(source_, computed, OperatorKey(node.name), compare_));
    if (row.differs() && comparison_.first < 0) {
      comparison_.first = static_cast<int>(comparison_.rows.size());
    }
    comparison_.rows.push_back(std::move(row));
    return Status();
  }

  World& world_;
  DeviceMemory& memory_;
  const RankGraphs& graphs_;
  const TensorSource& source_;
  const OpRegistry& registry_;
  const CompareOptions& compare_;
  const Graph& graph_;
  std::vector<bool> constant_;
  Comparison comparison_;
  std::vector<NotReplayed> left_out_;
};

// The graphs as they ran on the ranks that have a source. Not movable: `graphs` shows `models`.
struct GraphsThatRan {
  std::vector<Model> models;
  RankGraphs graphs;

  GraphsThatRan(const RankGraphs& as_written, const RankSources& sources,
                const OpRegistry& registry)
      : models(sources.size()), graphs(as_written) {
    for (size_t rank = 0; rank < sources.size(); ++rank) {
      if (sources[rank] == nullptr) continue;
      models[rank] = GraphThatRan(*as_written.models[rank], registry, *sources[rank]);
      graphs.models[rank] = &models[rank];
    }
  }
};

}  // namespace

size_t Replayed::LeftOut(int rank) const {
  return static_cast<size_t>(std::count_if(left_out.begin(), left_out.end(),
                                           [&](const auto& each) { return each.rank == rank; }));
}

bool Replayed::failed() const {
  return std::any_of(left_out.begin(), left_out.end(),
                     [](const NotReplayed& each) { return each.failed; });
}

Result<Replayed> Replay(const RankGraphs& as_written, const RankSources& sources, const Env& env,
                        const ReplayOptions& options) {
  const OpRegistry& registry = options.registry != nullptr ? *options.registry : BuiltinOps();
  const GraphsThatRan ran(as_written, sources, registry);
  const RankGraphs& graphs = ran.graphs;
  Replayed replayed;
  replayed.ranks.resize(sources.size());
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::vector<Task>> plan,
                           Planner(graphs, sources, registry, options).Run(replayed.left_out));
  std::mutex mutex;  // of `replayed`
  const auto play = [&](World& world) -> Status {
    const auto rank = static_cast<size_t>(world.rank());
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory,
                             DeviceMemory::Create(world));
    if (sources[rank] == nullptr) return Status();
    Player player(world, *memory, graphs, *sources[rank], registry, options.compare);
    NPUMESH_RETURN_IF_ERROR(player.Run(plan[rank]));
    const std::lock_guard lock(mutex);
    replayed.ranks[rank] = std::move(player.comparison());
    replayed.left_out.insert(replayed.left_out.end(), player.left_out().begin(),
                             player.left_out().end());
    return Status();
  };
  for (const Status& status : RunRanks(graphs.size(), env, play)) NPUMESH_RETURN_IF_ERROR(status);
  std::sort(replayed.left_out.begin(), replayed.left_out.end());
  return replayed;
}

}  // namespace npumesh
