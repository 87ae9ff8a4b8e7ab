// Collectives that wait for each other's vector cores: debug.deadlock_check, and NPUMESH_CARD.
#ifndef NPUMESH_GRAPH_SESSION_CORE_BUDGETS_H_
#define NPUMESH_GRAPH_SESSION_CORE_BUDGETS_H_

#include <memory>

#include "graph/limits/node_watch.h"
#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {

// Collectives keep their vector cores until the other members came. Finds pairs of them that stand
// on different streams (_user_stream_label), of which neither needs the other, and whose budgets
// (_op_vectorcore_num) together exceed what the card has: on a card that may be a deadlock.
// Collectives without a budget are not asked. Errors as CardFindings::Add.
Status CheckCoreBudgets(const BoundGraph& bound, NodeWatch& card);

// The watch of debug.deadlock_check, which knows no rules of operators: of the chip that npumesh's
// devices say they are, Ascend910B1. Null: NPUMESH_CARD names a card, and its watch is asked
// about budgets as well. `says` as NodeWatch has it. Errors as Card::FromProcess.
Result<std::shared_ptr<NodeWatch>> DeadlockWatch(bool says);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_CORE_BUDGETS_H_
