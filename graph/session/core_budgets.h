// Collectives that wait for each other's vector cores.
#ifndef NPUMESH_GRAPH_SESSION_CORE_BUDGETS_H_
#define NPUMESH_GRAPH_SESSION_CORE_BUDGETS_H_

#include "graph/limits/node_watch.h"
#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {

// Collectives keep their vector cores until the other members came. Finds pairs of them that stand
// on different streams (_user_stream_label), of which neither needs the other, and whose budgets
// (_op_vectorcore_num) together exceed what the card has: on a card that may be a deadlock.
// Collectives without a budget are not asked. Errors as CardFindings::Add.
Status CheckCoreBudgets(const BoundGraph& bound, NodeWatch& card);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_CORE_BUDGETS_H_
