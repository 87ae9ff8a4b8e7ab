// The compilation of an offline model: everything is checked that a run would check, and what the
// file tells its users is found out. No ranks run.
#ifndef NPUMESH_GRAPH_OFFLINE_OFFLINE_COMPILE_H_
#define NPUMESH_GRAPH_OFFLINE_OFFLINE_COMPILE_H_

#include "graph/ir/graph.h"
#include "graph/offline/offline_facts.h"
#include "graph/session/session_options.h"

namespace npumesh {

// Prepares the model as a session does, puts `options.precision` into the graph, so that a run
// needs no options, compiles it for its inputs or for each gear, and fills in names and
// types of outputs and sizes. `facts` has rank, ranks, groups and gears. A graph with open
// dimensions and no gears is checked as far as it can be, and has no sizes. Errors as
// Session::Create and Session::Prepare.
Status CompileOffline(const SessionOptions& options, Model* model, OfflineFacts* facts);

// The types of the outputs as far as the declared inputs and the constants tell them; dtype
// kUndefined where they do not. `facts` has rank, ranks and groups. Errors as CheckKnownTypes, for
// static inputs, too.
Result<std::vector<TensorType>> OutputTypesOnPaper(const SessionOptions& options, Model model,
                                                   const OfflineFacts& facts);

// "node:port" of each output, as the C interface names outputs.
std::vector<std::string> OutputNames(const Graph& graph);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OFFLINE_OFFLINE_COMPILE_H_
