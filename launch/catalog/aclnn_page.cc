#include "launch/catalog/aclnn_page.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "graph/aclnn/table/table.h"
#include "graph/ops/builtin_ops.h"
#include "launch/report/json_parts.h"
#include "runtime/base/text/nearest_name.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

void AddOnce(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

// Operators, other functions and refusals of an expression.
void Read(const AclnnExpr& expr, AclnnFacts& facts) {
  if (expr.kind == AclnnExpr::Kind::kCall) {
    const bool refuses = expr.text == "refuse" || expr.text == "only";
    const bool computes = BuiltinOps().Find(expr.text) != nullptr;
    if (computes || expr.text.starts_with("aclnn")) AddOnce(facts.operators, expr.text);
    if (refuses && !expr.children.empty() && expr.children.back().kind == AclnnExpr::Kind::kText) {
      AddOnce(facts.limits, expr.children.back().text);
    }
  }
  for (const AclnnExpr& child : expr.children) Read(child, facts);
  for (const auto& [name, value] : expr.named) Read(value, facts);
}

AclnnFacts Available(const AclnnFunction& function) {
  AclnnFacts facts;
  facts.name = function.name;
  facts.state = "available";
  facts.header = function.header;
  std::vector<std::string> params;
  for (const AclnnParam& param : function.params) {
    params.push_back(fmt::format("{} {}{}", AclnnTypeInC(param), param.name,
                                 param.optional ? " (may be null)" : ""));
  }
  facts.signature = fmt::format("{}({})", function.name, fmt::join(params, ", "));
  for (const AclnnStatement& statement : function.body) Read(statement.value, facts);
  return facts;
}

std::string Row(std::string_view key, std::string_view value) {
  return fmt::format("  {:<10}  {}\n", key, value);
}

}  // namespace

Result<AclnnFacts> AclnnFactsOf(std::string_view name) {
  if (const AclnnFunction* const function = AclnnFunctions().Find(name)) {
    return Available(*function);
  }
  if (const auto absent = AclnnAbsences().find(name); absent != AclnnAbsences().end()) {
    AclnnFacts facts;
    facts.name = name;
    facts.state = "absent";
    facts.reason = absent->second;
    return facts;
  }
  std::vector<std::string_view> names;
  for (const AclnnFunction& function : AclnnFunctions().functions()) names.push_back(function.name);
  return Error(Code::kNotFound, "there is no function \"{}\" (similar: {}); docs/aclnn.md has all",
               Quotable(name), fmt::join(NearestNames(name, names), ", "));
}

std::string AclnnPage(const AclnnFacts& facts) {
  std::string text = (facts.signature.empty() ? facts.name : facts.signature) + "\n";
  text += Row("state", facts.state);
  if (!facts.reason.empty()) text += Row("reason", facts.reason);
  if (!facts.header.empty()) text += Row("header", "aclnnop/" + facts.header);
  if (!facts.operators.empty()) {
    text += Row("operators", fmt::format("{}", fmt::join(facts.operators, ", ")));
  }
  for (const std::string& limit : facts.limits) text += Row("without", limit);
  return text;
}

CommandReport AclnnReport(const std::vector<AclnnFacts>& functions) {
  const auto row = [](const AclnnFacts& facts) -> nlohmann::json {
    return {{"name", facts.name},           {"state", facts.state},
            {"reason", facts.reason},       {"header", facts.header},
            {"signature", facts.signature}, {"operators", facts.operators},
            {"without", facts.limits}};
  };
  return {.details = {{"functions", ListOf(functions, row)}}};
}

}  // namespace npumesh
