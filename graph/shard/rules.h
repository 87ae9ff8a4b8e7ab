// The rules of layout_rules.h, one for what each kind of operator says of itself.
//
// Thread-safety: all functions may be called from several threads.
#ifndef NPUMESH_GRAPH_SHARD_RULES_H_
#define NPUMESH_GRAPH_SHARD_RULES_H_

#include "graph/shard/layout_rules.h"

namespace npumesh {

// Operator::axes: pieces follow the letters.
RuleOutcome AxesRule(const RuleQuestion& question);
// Operator::view: the same elements in the same order. REQUIRES: an input is split.
RuleOutcome ViewRule(const RuleQuestion& question);
// Operator::heads. REQUIRES: an input is split.
RuleOutcome HeadsRule(const RuleQuestion& question, const HeadsTrait& trait);
// Operator::rows. REQUIRES: an input is split.
RuleOutcome RowsRule(const RuleQuestion& question, const RowsTrait& trait);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SHARD_RULES_H_
