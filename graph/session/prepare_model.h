// What a session does to a model before it compiles anything.
#ifndef NPUMESH_GRAPH_SESSION_PREPARE_MODEL_H_
#define NPUMESH_GRAPH_SESSION_PREPARE_MODEL_H_

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"
#include "graph/session/session_options.h"

namespace npumesh {

// Calls, and branches that constants choose, take the place of their nodes; values in private
// formats become plain; products read weights that are transposed in front of them; inputs that are
// overwritten become RefData where the options say so; data edges say what readers of overwritten
// memory see. Errors as CheckSubgraphs, InlineCalls, MakeValuesPlain and ResolveOverwrites.
// REQUIRES: model.graph.Verify() is OK. Local.
Status PrepareModel(Model& model, const SessionOptions& options, const OpRegistry& registry);

// All of it for a model that is not to run here: Graph::Verify, PrepareModel, ApplyPrecision,
// CheckModel. `groups` as for ApplyPrecision. Errors as Session::Create.
Status PrepareOnPaper(Model& model, const SessionOptions& options, const OpRegistry& registry,
                      GroupProvider* groups);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_PREPARE_MODEL_H_
