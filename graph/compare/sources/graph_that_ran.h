// The graph that ran: a model after everything a session does to it before it compiles, with what
// only the options of the run knew read off its dump.
//
// A dump holds what operators read, and a session lets products read a transposed weight as it lies
// (graph/passes/rewrite/transposed_weights.h). Whether one did, or whether other software turned a
// product over, shows in the dumped weight.
#ifndef NPUMESH_GRAPH_COMPARE_SOURCES_GRAPH_THAT_RAN_H_
#define NPUMESH_GRAPH_COMPARE_SOURCES_GRAPH_THAT_RAN_H_

#include "graph/compare/sources/tensor_source.h"
#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// `model` as it ran on the rank whose tensors `source` holds. A graph that a session refuses did
// not run here and stays as it is. Operators keep their names. Reads weights; local.
Model GraphThatRan(Model model, const OpRegistry& registry, const TensorSource& source);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_SOURCES_GRAPH_THAT_RAN_H_
