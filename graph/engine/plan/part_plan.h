// How a static part gets its steps, its kernels and a separate memory plan.
#ifndef NPUMESH_GRAPH_ENGINE_PLAN_PART_PLAN_H_
#define NPUMESH_GRAPH_ENGINE_PLAN_PART_PLAN_H_

#include "graph/engine/analyse/graph_analysis.h"
#include "graph/engine/plan/static_parts.h"
#include "runtime/base/error_list.h"

namespace npumesh {

// Compiles a part that fits the graph. False when operators of it cannot be compiled: their errors
// are added, with their names, and the part stays as it was.
bool CompilePart(const GraphAnalysis& graph, StaticPart& part, ErrorList& errors);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_PLAN_PART_PLAN_H_
