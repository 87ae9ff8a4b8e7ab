#include "graph/inject/fault.h"

#include <array>
#include <limits>
#include <set>

#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

struct KindName {
  std::string_view name;
  Fault::Kind kind;
  std::string_view fields;  // those of this kind alone
};

constexpr std::array<KindName, 4> kKinds = {{
    {"corrupt", Fault::Kind::kCorrupt, " element output "},
    {"delay", Fault::Kind::kDelay, " ms "},
    {"kill", Fault::Kind::kKill, " "},
    {"exit", Fault::Kind::kExit, " code "},
}};
constexpr std::string_view kCommonFields = " rank op step ";

const KindName* FindKind(std::string_view name) {
  for (const KindName& kind : kKinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

bool Lists(std::string_view fields, std::string_view name) {
  return fields.find(fmt::format(" {} ", name)) != std::string_view::npos;
}

Status SetField(Fault& fault, std::string_view name, std::string_view value) {
  if (name == "op") {
    if (value.empty()) return Error(Code::kInvalidArgument, "op: expected a node name");
    fault.op = value;
    return Status();
  }
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const int64_t most = name == "code" ? 255 : name == "ms" ? 86'400'000 : kMost;
  const int64_t limit = name == "rank" || name == "output" ? 65'535 : most;
  NPUMESH_ASSIGN_OR_RETURN(const int64_t number, ParseInt(value, 0, limit, name));
  if (name == "rank") fault.rank = static_cast<int>(number);
  if (name == "step") fault.step = static_cast<uint64_t>(number);
  if (name == "element") fault.element = number;
  if (name == "output") fault.output = static_cast<int>(number);
  if (name == "ms") fault.delay = std::chrono::milliseconds(number);
  if (name == "code") fault.exit_code = static_cast<int>(number);
  return Status();
}

Status ParseFields(std::string_view text, const KindName& kind, Fault& fault) {
  std::set<std::string_view> seen;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view field = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = field.find('=');
    const std::string_view name = field.substr(0, equals);
    if (equals == std::string_view::npos ||
        (!Lists(kCommonFields, name) && !Lists(kind.fields, name))) {
      return Error(Code::kInvalidArgument, "\"{}\" is no field; {} takes{}and{}", field, kind.name,
                   kCommonFields, kind.fields);
    }
    if (!seen.insert(name).second) {
      return Error(Code::kInvalidArgument, "{} is given twice", name);
    }
    NPUMESH_RETURN_IF_ERROR(SetField(fault, name, field.substr(equals + 1)));
  }
  if (seen.count("rank") == 0) return Error(Code::kInvalidArgument, "rank is missing");
  if (kind.kind == Fault::Kind::kCorrupt && fault.op.empty()) {
    return Error(Code::kInvalidArgument, "op is missing");
  }
  if (kind.kind == Fault::Kind::kDelay && seen.count("ms") == 0) {
    return Error(Code::kInvalidArgument, "ms is missing");
  }
  return Status();
}

}  // namespace

std::vector<std::string_view> FaultKinds() {
  std::vector<std::string_view> names;
  for (const KindName& kind : kKinds) names.push_back(kind.name);
  return names;
}

Result<Fault> ParseFault(std::string_view text) {
  const size_t colon = text.find(':');
  const KindName* const kind = FindKind(text.substr(0, colon));
  if (kind == nullptr || colon == std::string_view::npos) {
    return Error(Code::kInvalidArgument,
                 "\"{}\": expected corrupt:, delay:, kill: or exit:, then fields like "
                 "rank=2,op=NAME",
                 text);
  }
  Fault fault;
  fault.kind = kind->kind;
  const Status parsed = ParseFields(text.substr(colon + 1), *kind, fault);
  if (!parsed.ok()) return parsed.WithContext(fmt::format("\"{}\"", text));
  return fault;
}

}  // namespace npumesh
