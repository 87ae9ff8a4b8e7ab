// What a card says, in the findings of commands.
#ifndef NPUMESH_LAUNCH_REPORT_CARD_PLACE_H_
#define NPUMESH_LAUNCH_REPORT_CARD_PLACE_H_

#include "launch/report/json_parts.h"
#include "runtime/card/findings.h"

namespace npumesh {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CardFinding, rule, where, node, text, code, mend, source)

// The keys of a finding beside its severity and text: which rule it is, where, and what to do.
inline nlohmann::json CardPlace(const CardFinding& finding) {
  return {{"rule", finding.rule},
          {"operator", OrNull(finding.node)},
          {"code", finding.refused() ? nlohmann::json(finding.code) : nlohmann::json()},
          {"mend", OrNull(finding.mend)},
          {"source", finding.source}};
}

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_REPORT_CARD_PLACE_H_
