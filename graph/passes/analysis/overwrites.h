// Overwriting made visible: after this pass the data edges of a graph alone say what every reader
// sees of memory that operators overwrite in place.
#ifndef NPUMESH_GRAPH_PASSES_ANALYSIS_OVERWRITES_H_
#define NPUMESH_GRAPH_PASSES_ANALYSIS_OVERWRITES_H_

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// Rewrites a graph so that each value means the same bytes for all its readers, whenever they run
// (docs/engine.md, "Overwriting"):
//   - who runs after a writer and names an older value reads the writer's output instead;
//   - who must see bytes that a writer before it has overwritten reads a copy, made by a TensorMove
//     "<node>/before_<writer>"; the operand of a writer that lies in its own target is copied too.
// Where nothing else orders a reader and a writer, the reader comes first; a copy is made only
// where that order is impossible. Graphs without in-place operators stay as they are.
// Error (kInvalidArgument): a node overwrites one storage twice; names the node and its inputs.
// REQUIRES: graph.Verify() is OK. Not collective.
Status ResolveOverwrites(Graph& graph, const OpRegistry& registry);

// Makes the outputs of calls and branches separate values, which they would cease to be when a
// graph takes the place of the node: one that a node overwrites gets separate memory (a TensorMove
// "<node>/own_<port>"), and an input that a subgraph hands through becomes a value of it (an
// Identity "<input>/through_<output>"). Models without in-place operators stay as they are.
// REQUIRES: Verify() of all graphs is OK. Not collective.
Status SeparateResults(Model& model, const OpRegistry& registry);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_ANALYSIS_OVERWRITES_H_
