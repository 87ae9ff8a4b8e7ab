// Subgraphs: how nodes that call, choose or repeat other graphs of a model are connected to them.
//
// A Data node of a subgraph names by `_parent_node_index` the input of the node that feeds it,
// counted from 0 over all its inputs (the condition of an If is input 0); an input descriptor of
// the subgraph's NetOutput so names the output it becomes. Without the attribute, Data nodes take
// the data inputs by their `index`, and outputs keep their order.
#ifndef NPUMESH_GRAPH_PASSES_REWRITE_SUBGRAPHS_H_
#define NPUMESH_GRAPH_PASSES_REWRITE_SUBGRAPHS_H_

#include <string_view>
#include <vector>

#include "graph/ir/graph.h"
#include "runtime/base/status.h"

namespace npumesh {

enum class SubgraphUse : uint8_t { kNone, kCall, kIf, kCase, kWhile };

// What a node of this type does with its subgraphs; its aliases (StatelessIf, _If ...) too.
SubgraphUse SubgraphUseOf(std::string_view type);

// The input of `parent` that feeds `data`, a Data node of one of its subgraphs.
int ParentInput(const Node& parent, const Node& data);

// By input of the subgraph's NetOutput: the output of the parent that it becomes.
std::vector<int> ParentOutputs(const Graph& subgraph);

// Every node has the subgraphs its type needs, they exist, fit its inputs and outputs, hold no
// RefData, and none contains itself. Errors (kCorrupt) name node and subgraph.
Status CheckSubgraphs(const Model& model);

// The main graph and all that its nodes name, directly or through others, each once. Names without
// a graph are left out.
std::vector<const Graph*> ReachableGraphs(const Model& model);

// Puts the graphs of PartitionedCall and StatefulPartitionedCall nodes in their place, in the main
// graph and in all subgraphs. A node "b" of the graph that node "a" calls becomes "a/b", in the
// position of the call, so that collectives keep their order. What waited for the call, or the call
// for, by a control edge, waits for all nodes of its graph, or they do. Errors: kCorrupt for a
// model that becomes larger than kMaxInlinedNodes. REQUIRES: CheckSubgraphs(model) is OK.
Status InlineCalls(Model& model);

inline constexpr size_t kMaxInlinedNodes = size_t{1} << 22;

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_REWRITE_SUBGRAPHS_H_
