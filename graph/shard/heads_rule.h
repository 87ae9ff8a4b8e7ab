// How attention carries heads that are split over ranks.
#ifndef NPUMESH_GRAPH_SHARD_HEADS_RULE_H_
#define NPUMESH_GRAPH_SHARD_HEADS_RULE_H_

#include "graph/shard/layout_rules.h"

namespace npumesh {

// Each rank computes some heads of queries with the heads of keys and values that they share. Where
// there are fewer of these than pieces of queries, neighbours have the same. `trait`: of the form
// kHeads. Thread-safety: any.
RuleOutcome HeadsRule(const RuleQuestion& question, const SplitTrait& trait);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SHARD_HEADS_RULE_H_
