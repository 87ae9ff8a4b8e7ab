#include "graph/aclnn/table/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace npumesh {
namespace {

constexpr std::array<std::pair<std::string_view, AclnnKind>, 16> kKinds = {{
    {"T", AclnnKind::kTensor},
    {"TL", AclnnKind::kTensors},
    {"S", AclnnKind::kScalar},
    {"SL", AclnnKind::kScalars},
    {"IA", AclnnKind::kInts},
    {"FA", AclnnKind::kFloats},
    {"BA", AclnnKind::kBools},
    {"i64", AclnnKind::kInt64},
    {"i32", AclnnKind::kInt32},
    {"i8", AclnnKind::kInt8},
    {"u64", AclnnKind::kUint64},
    {"f64", AclnnKind::kDouble},
    {"f32", AclnnKind::kFloat},
    {"bool", AclnnKind::kBool},
    {"str", AclnnKind::kText},
    {"dtype", AclnnKind::kDataType},
}};

Result<AclnnParam> ParseParam(TokenLine& line) {
  AclnnParam param;
  NPUMESH_ASSIGN_OR_RETURN(param.name, line.Word());
  NPUMESH_RETURN_IF_ERROR(line.Expect(":"));
  NPUMESH_ASSIGN_OR_RETURN(const std::string kind, line.Word());
  const auto* const found = std::find_if(kKinds.begin(), kKinds.end(),
                                         [&](const auto& known) { return known.first == kind; });
  if (found == kKinds.end()) return line.Wrong("a kind of parameter");
  param.kind = found->second;
  param.written = line.Take("!");
  param.becomes_blocks = line.Take("~");
  param.open = line.Take("*");
  param.optional = line.Take("?") || param.name.find("Optional") != std::string::npos;
  return param;
}

Result<AclnnFunction> ParseFunction(TokenLine& line) {
  AclnnFunction function;
  NPUMESH_ASSIGN_OR_RETURN(function.name, line.Word());
  NPUMESH_RETURN_IF_ERROR(line.Expect("("));
  while (!line.Take(")")) {
    NPUMESH_ASSIGN_OR_RETURN(AclnnParam param, ParseParam(line));
    function.params.push_back(std::move(param));
    if (!line.Is(")")) NPUMESH_RETURN_IF_ERROR(line.Expect(","));
  }
  return function;
}

// "a, b = value", or a call alone.
Result<AclnnStatement> ParseStatement(TokenLine& line) {
  AclnnStatement statement;
  TokenLine ahead = line;
  std::vector<std::string> targets;
  while (ahead.token().kind == Token::Kind::kWord) {
    targets.emplace_back(ahead.token().text);
    ahead.Next();
    if (ahead.Take(",")) continue;
    if (!ahead.Take("=")) break;
    statement.targets = std::move(targets);
    line = ahead;
    break;
  }
  NPUMESH_ASSIGN_OR_RETURN(statement.value, ParseExpression(line));
  return statement;
}

}  // namespace

Status AclnnTable::Add(std::string_view name, std::string_view text) {
  std::string header;
  size_t number = 0;
  bool in_function = false;
  const auto wrong = [&](const Status& status) {
    return status.WithContext(fmt::format("{}, line {}", name, number));
  };
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    TokenLine line(content);
    if (line.AtEnd()) continue;
    if (content[0] == '[') {
      header = content.substr(1, content.find(']') - 1);
      in_function = false;
      continue;
    }
    if (content[0] == ' ') {
      if (!in_function) return wrong(Error(Code::kCorrupt, "a statement outside of a function"));
      auto statement = ParseStatement(line);
      if (!statement.ok()) return wrong(statement.status());
      functions_.back().body.push_back(*std::move(statement));
    } else {
      auto function = ParseFunction(line);
      if (!function.ok()) return wrong(function.status());
      function->header = header;
      in_function = true;
      if (!by_name_.try_emplace(function->name, functions_.size()).second) {
        return wrong(Error(Code::kCorrupt, "{} stands there already", function->name));
      }
      functions_.push_back(*std::move(function));
    }
    if (!line.AtEnd()) return wrong(line.Wrong("the end of the line"));
  }
  return Status();
}

const AclnnFunction* AclnnTable::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &functions_[found->second];
}

std::string_view AclnnTypeInC(const AclnnParam& param) {
  switch (param.kind) {
    case AclnnKind::kTensor:
      return param.written ? "aclTensor*" : "const aclTensor*";
    case AclnnKind::kTensors:
      return param.written ? "aclTensorList*" : "const aclTensorList*";
    case AclnnKind::kScalar:
      return "const aclScalar*";
    case AclnnKind::kScalars:
      return "const aclScalarList*";
    case AclnnKind::kInts:
      return "const aclIntArray*";
    case AclnnKind::kFloats:
      return "const aclFloatArray*";
    case AclnnKind::kBools:
      return "const aclBoolArray*";
    case AclnnKind::kInt64:
      return "int64_t";
    case AclnnKind::kInt32:
      return "int32_t";
    case AclnnKind::kInt8:
      return "int8_t";
    case AclnnKind::kUint64:
      return "uint64_t";
    case AclnnKind::kDouble:
      return "double";
    case AclnnKind::kFloat:
      return "float";
    case AclnnKind::kBool:
      return "bool";
    case AclnnKind::kText:
      return "const char*";
    case AclnnKind::kDataType:
      return "aclDataType";
  }
  return "";
}

}  // namespace npumesh
