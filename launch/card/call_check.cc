#include "launch/card/call_check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <optional>

#include "graph/ir/graph_builder.h"
#include "graph/ops/core/signature.h"
#include "graph/passes/analysis/bound_graph.h"
#include "launch/report/card_place.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/printable.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

using nlohmann::json;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// Words between blanks, those within brackets, braces and quotes together.
std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words(1);
  int depth = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '[' || c == '{')) ++depth;
    if (!quoted && (c == ']' || c == '}')) --depth;
    if (c == ' ' && depth <= 0 && !quoted) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  std::erase(words, "");
  return words;
}

Result<std::vector<int64_t>> Integers(std::string_view text, int64_t least, std::string_view what) {
  std::vector<int64_t> numbers;
  for (const std::string_view part : Split(text, ", ")) {
    if (part.empty()) continue;
    NPUMESH_ASSIGN_OR_RETURN(const int64_t number, ParseInt(part, least, kMost, what));
    numbers.push_back(number);
  }
  return numbers;
}

struct CallInput {
  TensorType type;
  Tensor value;  // undefined: not known
};

// TYPE[DIMS]{integers}
Result<CallInput> ParseInput(std::string_view name, std::string_view text) {
  const size_t open = text.find('['), close = text.find(']');
  const std::optional<DataType> dtype = DataTypeFromName(text.substr(0, open));
  if (open == text.npos || close == text.npos || close < open || !dtype) {
    return Error(Code::kInvalidArgument, "{}: expected TYPE[DIMS], got \"{}\"", name, text);
  }
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                           Integers(text.substr(open + 1, close - open - 1), kUnknownDim, name));
  CallInput input{{*dtype, Shape(std::move(dims))}, {}};
  std::string_view rest = text.substr(close + 1);
  if (rest.empty()) return input;
  if (rest.size() < 2 || rest.front() != '{' || rest.back() != '}') {
    return Error(Code::kInvalidArgument, "{}: expected {{integers}} in place of \"{}\"", name,
                 rest);
  }
  NPUMESH_ASSIGN_OR_RETURN(
      const std::vector<int64_t> values,
      Integers(rest.substr(1, rest.size() - 2), std::numeric_limits<int64_t>::min(), name));
  const bool fits = input.type.shape.is_static() &&
                    input.type.shape.elements() == static_cast<int64_t>(values.size());
  if (!fits) {
    return Error(Code::kInvalidArgument, "{}: {} has not {} elements", name, input.type.ToString(),
                 values.size());
  }
  if (*dtype == DataType::kInt64) {
    input.value = Tensor::FromVector<int64_t>(input.type, values);
  } else if (*dtype == DataType::kInt32) {
    input.value = Tensor::FromVector<int32_t>(input.type, {values.begin(), values.end()});
  } else {
    return Error(Code::kInvalidArgument, "{}: values are int32 or int64", name);
  }
  return input;
}

// An attribute as signatures write it: the signature's reader reads it.
Result<AttrValue> ParseAttribute(std::string_view name, std::string_view text) {
  const std::string signature = fmt::format("X(x; {}={}) -> y", name, text);
  const Result<OpSchema> schema = ParseSignature(signature);
  const bool one = schema.ok() && schema->attrs.size() == 1 && schema->attrs[0].fallback;
  if (one) return *schema->attrs[0].fallback;
  return Error(Code::kInvalidArgument, "{}: \"{}\" is no value of an attribute", name, text);
}

// The number behind the name of a list's tensor is not the port's.
bool IsInput(const OpSchema& schema, std::string_view name) {
  const std::string_view list = name.substr(0, name.find_last_not_of("0123456789") + 1);
  return std::any_of(schema.inputs.begin(), schema.inputs.end(), [&](const PortSpec& port) {
    return port.kind == PortKind::kDynamic ? list == port.name && list != name : name == port.name;
  });
}

bool IsAttribute(const OpSchema& schema, std::string_view name) {
  const std::string_view bare = name.substr(0, name.find(':'));
  return std::any_of(schema.attrs.begin(), schema.attrs.end(),
                     [&](const AttrSpec& spec) { return spec.name == bare; });
}

struct Call {
  Model model;
  std::map<NodeId, CallInput> inputs;
};

Result<Call> ReadCall(const std::vector<std::string>& words, const OpSchema& schema) {
  GraphBuilder builder("call");
  Call call;
  std::vector<GraphBuilder::Input> inputs;
  std::vector<GraphBuilder::Attr> attrs;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const size_t equals = word.find('=');
    if (equals == word.npos) {
      return Error(Code::kInvalidArgument, "expected NAME=VALUE, got \"{}\"", word);
    }
    const std::string_view name = word.substr(0, equals), text = word.substr(equals + 1);
    if (IsInput(schema, name)) {
      NPUMESH_ASSIGN_OR_RETURN(CallInput input, ParseInput(name, text));
      const Value value = builder.Data(fmt::format("input_{}", name), input.type);
      call.inputs.emplace(value.node, std::move(input));
      inputs.emplace_back(name, value);
    } else if (IsAttribute(schema, name)) {
      NPUMESH_ASSIGN_OR_RETURN(AttrValue value, ParseAttribute(name, text));
      attrs.emplace_back(name.substr(0, name.find(':')), std::move(value));
    } else {
      return Error(Code::kInvalidArgument, "{} has no input or attribute {}; it is {}", schema.type,
                   name, SignatureText(schema));
    }
  }
  const Value result =
      builder.Op(std::string(schema.type), std::move(inputs), std::move(attrs), "call",
                 static_cast<int>(std::max<size_t>(1, schema.outputs.size())));
  builder.Output({result});
  NPUMESH_ASSIGN_OR_RETURN(call.model, builder.Build());
  return call;
}

// The same finding of several nodes is one of a call.
std::string Where(std::string_view call) {
  return fmt::format("\"{}\"", call);
}

}  // namespace

Result<std::vector<CardFinding>> CheckCall(std::string_view text, const Chip& chip,
                                           const OpRegistry& registry, const CardRules& rules) {
  const std::vector<std::string> words = WordsOf(text);
  if (words.empty()) return Error(Code::kInvalidArgument, "a call is empty");
  const Operator* const op = registry.Find(words[0]);
  if (op == nullptr) {
    return Error(Code::kNotFound, "there is no operator \"{}\" (similar: {})", Quotable(words[0]),
                 fmt::join(registry.Nearest(words[0]), ", "));
  }
  NPUMESH_ASSIGN_OR_RETURN(const Call call, ReadCall(words, op->schema));
  const BoundGraph bound(call.model.graph, registry);
  const NodeId id = call.model.graph.Find("call");
  if (!bound.bound(id)) return bound.failure(id);
  OpContext context = bound.context(id);
  for (int slot = 0; slot < context.slots(); ++slot) {
    const std::optional<Value> value = bound.SlotValue(id, slot);
    if (!value) continue;
    const CallInput& input = call.inputs.at(value->node);
    context.set_in(slot, input.type);
    if (input.value.dtype() != DataType::kUndefined) context.set_value(slot, &input.value);
  }
  NodeWatch watch(Card{&chip}, /*says=*/false, rules);
  NPUMESH_RETURN_IF_ERROR(watch.Check(context));
  return watch.findings().all();
}

Result<CommandReport> CheckCalls(const std::vector<std::string>& calls, const Chip& chip,
                                 const OpRegistry& registry) {
  CommandReport report;
  report.verdict = "taken";
  json rows = json::array();
  for (const std::string& call : calls) {
    Result<std::vector<CardFinding>> found = CheckCall(call, chip, registry);
    if (!found.ok()) return found.status().WithContext(Where(Quotable(call)));
    json rules = json::array();
    bool taken = true;
    for (CardFinding& finding : *found) {
      taken = taken && !finding.refused();
      rules.push_back(finding.rule);
      finding.where = Where(call);
      report.Add(finding.refused() ? Severity::kError : Severity::kWarning, TextOf(finding, chip),
                 CardPlace(finding));
    }
    if (!taken) report.verdict = "refused";
    if (taken && !rules.empty() && report.verdict == "taken") report.verdict = "wrong";
    rows.push_back({{"call", call}, {"taken", taken}, {"rules", std::move(rules)}});
  }
  report.details = {{"chip", chip.name}, {"calls", std::move(rows)}};
  return report;
}

std::string CallsText(const CommandReport& report) {
  std::string text;
  for (const json& finding : report.findings) {
    text += PrintableMessage(finding.at("text").get<std::string>()) + "\n";
  }
  const json& calls = report.details.at("calls");
  const auto taken = std::count_if(calls.begin(), calls.end(),
                                   [](const json& call) { return call.at("rules").empty(); });
  return text + fmt::format("{} of {} calls without a finding\n", taken, calls.size());
}

}  // namespace npumesh
