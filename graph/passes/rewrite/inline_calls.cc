// Calls of subgraphs, replaced by the subgraphs.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "graph/passes/analysis/bound_graph.h"
#include "graph/passes/rewrite/subgraphs.h"

namespace npumesh {
namespace {

// A call, or a choice that has only one branch to choose.
bool IsCall(const Node& node) {
  const SubgraphUse use = SubgraphUseOf(node.type);
  const bool chooses = use == SubgraphUse::kIf || use == SubgraphUse::kCase;
  return use == SubgraphUse::kCall || (chooses && node.subgraphs.size() == 1);
}

bool HasCalls(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (!node.removed && IsCall(node)) return true;
  }
  return false;
}

// REQUIRES: there is one.
Graph* Find(std::vector<Graph>& subgraphs, std::string_view name) {
  const auto found = std::find_if(subgraphs.begin(), subgraphs.end(),
                                  [&](const Graph& graph) { return graph.name() == name; });
  return &*found;
}

// One use of a graph: the graph itself, or a subgraph in the place of a call.
struct Scope {
  const Graph* graph = nullptr;
  const Scope* parent = nullptr;
  const Node* call = nullptr;  // in the parent
  std::map<NodeId, NodeId> placed;
  std::map<NodeId, std::unique_ptr<Scope>> calls;
};

class Inliner {
 public:
  explicit Inliner(std::vector<Graph>& subgraphs) : subgraphs_(subgraphs) {}

  Result<Graph> Run(const Graph& graph) {
    result_ = Graph(graph.name());
    result_.attrs() = graph.attrs();
    result_.output_records() = graph.output_records();
    result_.opaque() = graph.opaque();
    Scope scope;
    scope.graph = &graph;
    NPUMESH_RETURN_IF_ERROR(Place(scope, ""));
    Connect(scope);
    return std::move(result_);
  }

 private:
  // Adds the nodes of the scope, those of its calls in their place, without edges.
  Status Place(Scope& scope, const std::string& prefix) {
    for (const Node& node : scope.graph->nodes()) {
      if (node.removed || (scope.call != nullptr && IsEnd(node))) continue;
      if (IsCall(node)) {
        auto& inner = scope.calls[node.id] = std::make_unique<Scope>();
        inner->graph = Find(subgraphs_, node.subgraphs[0]);
        inner->parent = &scope;
        inner->call = &node;
        NPUMESH_RETURN_IF_ERROR(Place(*inner, prefix + node.name + "/"));
        continue;
      }
      if (result_.nodes().size() >= kMaxInlinedNodes) {
        return Error(Code::kCorrupt, "graph \"{}\": its calls make more than {} nodes",
                     result_.name(), kMaxInlinedNodes);
      }
      Node copy = node;
      copy.name = prefix + node.name;
      copy.inputs.assign(node.inputs.size(), std::nullopt);
      copy.controls.clear();
      NPUMESH_ASSIGN_OR_RETURN(scope.placed[node.id], result_.Add(std::move(copy)));
    }
    return Status();
  }

  static bool IsEnd(const Node& node) { return IsNetOutput(node) || IsData(node); }

  void Connect(const Scope& scope) {
    for (const auto& [from, to] : scope.placed) {
      const Node& node = scope.graph->node(from);
      Node& copy = result_.node(to);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i]) copy.inputs[i] = Resolve(scope, *node.inputs[i]);
      }
      AddControls(scope, node, copy);
      for (const Scope* at = &scope; at->call != nullptr; at = at->parent) {
        AddControls(*at->parent, *at->call, copy);
      }
    }
    for (const auto& [id, inner] : scope.calls) Connect(*inner);
  }

  // Where a value of the scope comes from, through the ends of calls. nullopt: a Data of a call
  // whose input is not connected.
  std::optional<Value> Resolve(const Scope& start, Value value) const {
    const Scope* scope = &start;
    for (;;) {
      const Node& node = scope->graph->node(value.node);
      std::optional<Value> next;
      if (const auto inner = scope->calls.find(node.id); inner != scope->calls.end()) {
        scope = inner->second.get();
        next = OutputOf(*scope->graph, value.port);
      } else if (scope->call != nullptr && IsData(node)) {
        const auto input = static_cast<size_t>(ParentInput(*scope->call, node));
        next = scope->call->inputs[input];
        scope = scope->parent;
      } else {
        return Value{scope->placed.at(node.id), value.port};
      }
      if (!next) return std::nullopt;
      value = *next;
    }
  }

  static std::optional<Value> OutputOf(const Graph& graph, int port) {
    const std::vector<int> outputs = ParentOutputs(graph);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == port) return graph.node(graph.NetOutput()).inputs[i];
    }
    return std::nullopt;
  }

  // Lets `copy` wait for what `node` of the scope waits for.
  void AddControls(const Scope& scope, const Node& node, Node& copy) const {
    for (const NodeId control : node.controls) AddWait(scope, control, copy);
  }

  void AddWait(const Scope& scope, NodeId control, Node& copy) const {
    if (const auto inner = scope.calls.find(control); inner != scope.calls.end()) {
      for (const auto& [from, to] : inner->second->placed) copy.controls.push_back(to);
      for (const auto& [id, deeper] : inner->second->calls) AddWait(*inner->second, id, copy);
    } else if (const auto placed = scope.placed.find(control); placed != scope.placed.end()) {
      copy.controls.push_back(placed->second);
    }
  }

  std::vector<Graph>& subgraphs_;
  Graph result_;
};

}  // namespace

Status InlineCalls(Model& model) {
  std::vector<Graph> callees = model.subgraphs;  // as they were
  std::vector<Graph*> pending = {&model.graph};
  std::set<const Graph*> entered;
  while (!pending.empty()) {
    Graph& graph = *pending.back();
    pending.pop_back();
    if (!entered.insert(&graph).second) continue;
    if (HasCalls(graph)) {
      NPUMESH_ASSIGN_OR_RETURN(graph, Inliner(callees).Run(Graph(graph)));
    }
    for (const Node& node : graph.nodes()) {
      if (node.removed || SubgraphUseOf(node.type) == SubgraphUse::kNone) continue;
      for (const std::string& name : node.subgraphs) pending.push_back(Find(model.subgraphs, name));
    }
  }
  return Status();
}

}  // namespace npumesh
