#include "graph/limits/node_watch.h"

namespace npumesh {

NodeWatch::NodeWatch(Card card, bool says, const CardRules& rules) : findings_(card, says) {
  for (const CardRule& rule : rules.rules()) {
    if (!rule.HoldsFor(*card.chip)) continue;
    for (const std::string& type : rule.operators) rules_[type].push_back(&rule);
  }
}

Status NodeWatch::Check(const OpContext& op) {
  const Node& node = op.node();
  const auto rules = rules_.find(node.type);
  if (rules == rules_.end()) return Status();
  for (const CardRule* const rule : rules->second) {
    const CardCall call{op, *rule->definitions, *findings_.card().chip};
    if (!Evaluate(rule->when, call).IsTrue()) continue;
    CardFinding finding{.rule = rule->id, .where = op.Who(), .node = node.name};
    NPUMESH_ASSIGN_OR_RETURN(finding.text, Filled(rule->says, call));
    NPUMESH_ASSIGN_OR_RETURN(finding.mend, Filled(rule->mend, call));
    finding.code = rule->code;
    finding.source = rule->source;
    NPUMESH_RETURN_IF_ERROR(findings_.Add(std::move(finding)));
  }
  return Status();
}

}  // namespace npumesh
