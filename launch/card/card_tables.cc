#include "launch/card/card_tables.h"

#include <fmt/ranges.h>

#include "graph/limits/rules.h"
#include "launch/report/json_parts.h"
#include "launch/report/table.h"

namespace npumesh {
namespace {

using nlohmann::json;

json ValueOf(const Chip& chip, std::string_view fact) {
  const ChipFact* const found = chip.Find(fact);
  return found == nullptr ? json() : json(found->value);
}

json RulesOf(const Chip& chip) {
  json rules = json::array();
  for (const CardRule& rule : BuiltinCardRules().rules()) {
    if (!rule.HoldsFor(chip)) continue;
    rules.push_back({{"rule", rule.id},
                     {"operators", rule.operators},
                     {"code", rule.code == 0 ? json() : json(rule.code)},
                     {"when", rule.condition},
                     {"says", rule.says},
                     {"mend", OrNull(rule.mend)},
                     {"source", rule.source}});
  }
  return rules;
}

}  // namespace

CommandReport ChipsReport() {
  json chips = json::array();
  for (const Chip& chip : Chips().chips()) {
    json row = {{"name", chip.name}, {"family", chip.family}};
    for (const std::string_view fact : {"soc", "products", "cube_cores", "vector_cores", "hbm",
                                        "streams", "events", "notifies"}) {
      row[std::string(fact)] = ValueOf(chip, fact);
    }
    row["rules"] = RulesOf(chip).size();
    chips.push_back(std::move(row));
  }
  CommandReport report;
  report.details = {{"chips", std::move(chips)}};
  return report;
}

std::string ChipsText(const CommandReport& report) {
  const TableForm table{.columns = {{"chip", -18, "name"},
                                    {"cube", 4, "cube_cores"},
                                    {"vector", 6, "vector_cores"},
                                    {"HBM", 11, "hbm"},
                                    {"streams", 7, "streams"},
                                    {"events", 6, "events"},
                                    {"notifies", 8, "notifies"},
                                    {"rules", 5, "rules"},
                                    {"products", 0, "products"}}};
  return TableText(table, report.details.at("chips"));
}

CommandReport ChipReport(const Chip& chip) {
  json facts = json::array();
  for (const ChipFact& fact : chip.facts) {
    if (fact.name == kStandsFor) continue;
    facts.push_back({{"name", fact.name}, {"value", fact.value}, {"source", fact.source}});
  }
  CommandReport report;
  report.details = {{"chip", chip.name},
                    {"family", chip.family},
                    {"facts", std::move(facts)},
                    {"rules", RulesOf(chip)}};
  return report;
}

std::string ChipText(const CommandReport& report) {
  const json& details = report.details;
  const TableForm facts{.columns = {{"", -13, "name"}, {"", -20, "value"}, {"", 0, "source"}}};
  std::string text = fmt::format("{} ({})\n\n", details.at("chip").get<std::string>(),
                                 details.at("family").get<std::string>());
  text += TableText(facts, details.at("facts")) + "\n";
  for (const json& rule : details.at("rules")) {
    const json& code = rule.at("code");
    text += fmt::format("{}: {} {}\n    when {}\n    {}\n", rule.at("rule").get<std::string>(),
                        code.is_null() ? "wrong:" : fmt::format("refused ({}):", code.get<int>()),
                        fmt::join(rule.at("operators").get<std::vector<std::string>>(), ", "),
                        rule.at("when").get<std::string>(), rule.at("source").get<std::string>());
  }
  return text;
}

}  // namespace npumesh
