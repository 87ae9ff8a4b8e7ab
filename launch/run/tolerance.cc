#include "launch/run/tolerance.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <vector>

#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/json.h"
#include "runtime/base/text/json_error.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

using nlohmann::json;

constexpr const char* kFileName = "tolerance.json";
constexpr uint64_t kLargestFile = uint64_t{1} << 20;

Result<double> NumberOf(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return 0.0;
  if (found->is_number() && found->get<double>() >= 0) return found->get<double>();
  return Error(Code::kCorrupt, "{}: expected a number from 0 on", key);
}

Result<ToleranceRule> RuleOf(const json& value) {
  if (value.is_string()) {
    const Result<ToleranceRule> rule = ParseToleranceRule(value.get<std::string>(), "value");
    if (rule.ok()) return rule;
    return Error(Code::kCorrupt, "{}", rule.status().message());
  }
  if (!value.is_object()) {
    return Error(Code::kCorrupt,
                 "expected \"exact\", \"close\" or an object with \"rtol\" and \"atol\"");
  }
  for (const auto& [key, inner] : value.items()) {
    if (key == "rtol" || key == "atol") continue;
    return Error(Code::kCorrupt, "unknown key \"{}\"; known: rtol, atol", key.substr(0, 80));
  }
  ToleranceRule rule;
  rule.close = false;
  NPUMESH_ASSIGN_OR_RETURN(rule.given.rtol, NumberOf(value, "rtol"));
  NPUMESH_ASSIGN_OR_RETURN(rule.given.atol, NumberOf(value, "atol"));
  return rule;
}

struct FileRules {
  std::optional<ToleranceRule> fallback;
  std::map<int, ToleranceRule> outputs;
};

Status ReadOutputs(const json& object, FileRules* rules) {
  if (!object.is_object()) return Error(Code::kCorrupt, "outputs: expected an object");
  for (const auto& [key, value] : object.items()) {
    const Result<int64_t> index = ParseInt(key, 0, std::numeric_limits<int>::max(), "output");
    if (!index.ok()) {
      return Error(Code::kCorrupt, "outputs: \"{}\" is no number of an output", key.substr(0, 80));
    }
    const Result<ToleranceRule> rule = RuleOf(value);
    if (!rule.ok()) return rule.status().WithContext(fmt::format("outputs: {}", key));
    rules->outputs[static_cast<int>(*index)] = *rule;
  }
  return Status();
}

Status ReadRules(const json& object, FileRules* rules) {
  for (const auto& [key, value] : object.items()) {
    if (key == "outputs") {
      NPUMESH_RETURN_IF_ERROR(ReadOutputs(value, rules));
    } else if (key == "default") {
      const Result<ToleranceRule> rule = RuleOf(value);
      if (!rule.ok()) return rule.status().WithContext(key);
      rules->fallback = *rule;
    } else {
      return Error(Code::kCorrupt, "unknown key \"{}\"; known: default, outputs",
                   key.substr(0, 80));
    }
  }
  return Status();
}

Result<json> ParseObject(const std::string& text) {
  json object = ParseForeignJson(text);
  if (object.is_object()) return object;
  if (object.is_discarded()) return Error(Code::kCorrupt, "is not JSON: {}", JsonErrorIn(text));
  return Error(Code::kCorrupt, "expected a JSON object");
}

// An absent file has no rules.
Result<FileRules> ReadRulesBeside(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / kFileName).string();
  FileRules rules;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return rules;
  NPUMESH_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargestFile));
  const Result<json> object = ParseObject(text);
  if (!object.ok()) return object.status().WithContext(path);
  NPUMESH_RETURN_IF_ERROR(ReadRules(*object, &rules).WithContext(path));
  return rules;
}

}  // namespace

Result<ToleranceRule> ParseToleranceRule(std::string_view text, std::string_view what) {
  ToleranceRule rule;
  if (text == "close") return rule;
  rule.close = false;
  if (text == "exact") return rule;
  const size_t comma = text.find(',');
  constexpr double kMax = std::numeric_limits<double>::max();
  const Result<double> rtol = ParseDouble(text.substr(0, comma), -kMax, kMax, what);
  const Result<double> atol =
      ParseDouble(comma == text.npos ? "" : text.substr(comma + 1), -kMax, kMax, what);
  if (comma == text.npos || !rtol.ok() || !atol.ok() || *rtol < 0 || *atol < 0) {
    return Error(Code::kInvalidArgument,
                 "{} \"{}\": expected exact, close, or two numbers from 0 on: RTOL,ATOL", what,
                 text.substr(0, 80));
  }
  rule.given = {*rtol, *atol};
  return rule;
}

std::string ToText(const ToleranceRule& rule) {
  if (rule.close) return "close";
  if (rule.given.rtol == 0 && rule.given.atol == 0) return "exact";
  return fmt::format("rtol {:g} atol {:g}", rule.given.rtol, rule.given.atol);
}

Tolerance DefaultTolerance(DataType dtype) {
  switch (dtype) {
    case DataType::kDouble:
      return {1e-12, 1e-12};
    case DataType::kFloat:
      return {1e-5, 1e-6};
    case DataType::kFloat16:
      return {1e-3, 1e-3};
    case DataType::kBfloat16:
      return {1e-2, 1e-2};
    default:
      return {};
  }
}

AppliedTolerance CloseTolerance(const RoundingPath& rounding, const Tensor& golden) {
  if (!IsFloating(golden.dtype())) return {{}, "exact"};
  const Allowance allowed = CloseAllowance(rounding, golden);
  const DataType coarsest = UnitRoundoff(rounding.coarsest) > UnitRoundoff(golden.dtype())
                                ? rounding.coarsest
                                : golden.dtype();
  return {{allowed.relative, allowed.absolute},
          fmt::format("close: {}, {} roundings, sums of {:.0f}, scale {:.3g}", Name(coarsest),
                      rounding.operators + 1, rounding.longest_sum, ScaleOf(golden))};
}

Result<TolerancePlan> TolerancePlan::Make(const ToleranceOptions& options,
                                          const std::string& folder) {
  TolerancePlan plan;
  plan.options_ = options;
  NPUMESH_ASSIGN_OR_RETURN(FileRules rules, ReadRulesBeside(folder));
  plan.fallback_ = rules.fallback;
  plan.outputs_ = std::move(rules.outputs);
  return plan;
}

AppliedTolerance TolerancePlan::For(int index, const RoundingPath& rounding,
                                    const Tensor& golden) const {
  if (!IsFloating(golden.dtype())) return {{}, "exact"};
  if (options_.rtol || options_.atol) {
    const Tolerance other = DefaultTolerance(golden.dtype());
    return {{options_.rtol.value_or(other.rtol), options_.atol.value_or(other.atol)}, "given"};
  }
  const auto listed = outputs_.find(index);
  const std::optional<ToleranceRule> in_file =
      listed != outputs_.end() ? listed->second : fallback_;
  const ToleranceRule rule = options_.rule.value_or(in_file.value_or(ToleranceRule()));
  if (rule.close) return CloseTolerance(rounding, golden);
  const std::string from = options_.rule || !in_file ? "" : fmt::format(" ({})", kFileName);
  if (rule.given.rtol == 0 && rule.given.atol == 0) return {{}, "exact" + from};
  return {rule.given, "given" + from};
}

}  // namespace npumesh
