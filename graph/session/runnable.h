// What a run would refuse, found without running.
#ifndef NPUMESH_GRAPH_SESSION_RUNNABLE_H_
#define NPUMESH_GRAPH_SESSION_RUNNABLE_H_

#include "graph/ir/graph.h"
#include "graph/ops/core/operator.h"
#include "graph/session/session.h"

namespace npumesh {

// Whether one rank can run the model, as far as the file alone says: the structure of its graphs,
// its operators, the members of its groups (`groups` need not communicate), the order of its nodes,
// and what holds of the types of its values whatever the inputs are. Not checked: what kernels
// say when they are made, and whether the memory suffices. Errors as Session::Create and Session::
// Prepare. Local.
Status CheckRunnable(Model model, const SessionOptions& options, GroupProvider& groups);

// Asks `card` about the operators of a model's main graph, as far as its file says what they get.
// `groups` may be null. Errors: those of NodeWatch::Check at the node; what cannot be bound or
// ordered. REQUIRES: model.graph.Verify() is OK.
Status CheckOnCard(const Model& model, const OpRegistry& registry, GroupProvider* groups,
                   NodeWatch& card);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_RUNNABLE_H_
