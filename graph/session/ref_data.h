// enable_ref_data: inputs that a graph overwrites, made RefData.
#ifndef NPUMESH_GRAPH_SESSION_REF_DATA_H_
#define NPUMESH_GRAPH_SESSION_REF_DATA_H_

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// Turns every Data of the main graph whose storage an in-place operator writes, also through views,
// into a RefData, but those that decide shapes: their values have to be known before the graph
// runs. REQUIRES: model.graph.Verify() is OK.
void MarkRefData(Model& model, const OpRegistry& registry);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_REF_DATA_H_
