// The outputs of graphs that have no NetOutput node but name them in `graph.output`.
#ifndef NPUMESH_GRAPH_IO_NET_OUTPUT_H_
#define NPUMESH_GRAPH_IO_NET_OUTPUT_H_

#include "graph/ir/graph.h"
#include "runtime/base/status.h"

namespace npumesh {

// Adds the NetOutput that `graph->output_records()` describe; a graph that has one, or that names
// no output, stays as it is. Errors (kCorrupt) name the record.
Status AddMissingNetOutput(Graph* graph);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_NET_OUTPUT_H_
