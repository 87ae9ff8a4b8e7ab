// Calls of operators as text, and whether a card takes them.
//
//   MoeGatingTopK x=float32[16,512] bias=float32[512] k=8 group_count=8
//
// The words are those of tests/operators: inputs are TYPE[DIMS], with {integers} behind where their
// values are known, -1 for an open dimension; attributes are as signatures write them. The tensors
// of a list are numbered: x0=, x1=. A line that begins with # is a comment.
#ifndef NPUMESH_LAUNCH_CARD_CALL_CHECK_H_
#define NPUMESH_LAUNCH_CARD_CALL_CHECK_H_

#include <string>
#include <string_view>
#include <vector>

#include "graph/limits/node_watch.h"
#include "graph/ops/core/op_registry.h"
#include "launch/report/command_report.h"

namespace npumesh {

// The findings about a call. Error (kInvalidArgument, kNotFound): the text does not follow this,
// or the operator has no such input or attribute.
Result<std::vector<CardFinding>> CheckCall(std::string_view text, const Chip& chip,
                                           const OpRegistry& registry,
                                           const CardRules& rules = BuiltinCardRules());

// `calls` with the text of each, whether it is `taken`, and which `rules` speak; verdict "taken",
// "refused", or "wrong" where the card only computes something else. Errors of the first call that
// has one.
Result<CommandReport> CheckCalls(const std::vector<std::string>& calls, const Chip& chip,
                                 const OpRegistry& registry);
std::string CallsText(const CommandReport& report);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_CARD_CALL_CHECK_H_
