#include "graph/limits/rules.h"
#include "runtime/card/chips.h"
#include "tests/fuzz/targets.h"

namespace npumesh::fuzz {
namespace {

std::string FlawOfTable(const Status& status) {
  const bool placed = status.ok() || status.message().find(", line ") != std::string_view::npos;
  return placed ? FlawOf(status) : "an error that names no line: " + status.ToString();
}

std::string FlawOfRule(const CardRule& rule) {
  if (rule.operators.empty() || rule.condition.empty() || rule.says.empty() ||
      rule.source.empty()) {
    return "a rule that lacks something: " + rule.id;
  }
  for (const std::string& text : {rule.says, rule.mend}) {
    if (!ExpressionsIn(text).ok()) return "a rule whose text cannot be filled: " + text;
  }
  return "";
}

}  // namespace

std::string CheckCardTables(std::string_view text) {
  const Result<CardRules> rules = CardRules::Parse("fuzz.card", text);
  if (std::string flaw = FlawOfTable(rules.status()); !flaw.empty()) return flaw;
  if (rules.ok()) {
    for (const CardRule& rule : rules->rules()) {
      if (std::string flaw = FlawOfRule(rule); !flaw.empty()) return flaw;
    }
  }
  const Result<ChipTable> chips = ChipTable::Parse(text);
  if (!chips.ok()) return FlawOfTable(chips.status());
  for (const Chip& chip : chips->chips()) {
    if (!chips->Knows(chip.name)) return "a chip that its table does not know";
    for (const ChipFact& fact : chip.facts) {
      if (fact.source.empty()) return "a fact without a source";
    }
  }
  return "";
}

}  // namespace npumesh::fuzz
