#include "graph/onnx/node_form.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "runtime/base/printable.h"

namespace npumesh {
namespace {

// Models of older operator sets have attributes that no table knows.
constexpr int64_t kFirstVersion = 7;

std::string_view NameOfKind(OnnxAttribute::Kind kind) {
  constexpr std::string_view kNames[] = {"float",  "int",  "string",  "tensor", "graph",
                                         "floats", "ints", "strings", "type",   "sparse"};
  return kNames[static_cast<size_t>(kind)];
}

FormOperand OperandFrom(std::string_view word) {
  return {word[0], word.ends_with('?'), word.ends_with("...")};
}

// The number behind `mark`, which is cut off; `fallback` where there is none.
int64_t TakeVersion(std::string_view& word, char mark, int64_t fallback) {
  const size_t at = word.find(mark);
  if (at == std::string_view::npos) return fallback;
  int64_t version = 0;
  for (const char digit : word.substr(at + 1)) version = version * 10 + (digit - '0');
  word = word.substr(0, at);
  return version;
}

FormAttribute AttributeFrom(std::string_view word) {
  FormAttribute attribute;
  attribute.until = TakeVersion(word, '<', attribute.until);
  attribute.since = TakeVersion(word, '@', attribute.since);
  attribute.required = word.ends_with('!');
  if (attribute.required) word.remove_suffix(1);
  const size_t colon = word.find(':');
  attribute.name = word.substr(0, colon);
  attribute.kind = word.substr(colon + 1);
  return attribute;
}

Status CheckAttributes(const OnnxNode& node, const NodeForm& form, int64_t version) {
  std::vector<std::string_view> names;
  for (const FormAttribute& known : form.attributes) {
    if (!known.KnownIn(version)) continue;
    names.push_back(known.name);
    if (!known.required || node.Find(known.name) != nullptr) continue;
    return Error(Code::kCorrupt, "lacks the attribute \"{}\"; expected one of kind {}", known.name,
                 known.kind);
  }
  for (const OnnxAttribute& given : node.attributes) {
    const auto known = std::find_if(
        form.attributes.begin(), form.attributes.end(), [&](const FormAttribute& attribute) {
          return attribute.name == given.name && attribute.KnownIn(version);
        });
    if (known == form.attributes.end()) {
      return Error(Code::kCorrupt,
                   "has an attribute \"{}\", which its operator has not in operator set {}; "
                   "expected {}",
                   Quotable(given.name), version,
                   names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
    }
    if (NameOfKind(given.kind) == known->kind) continue;
    return Error(Code::kCorrupt, "attribute \"{}\" is of kind {}; expected {}", given.name,
                 NameOfKind(given.kind), known->kind);
  }
  return Status();
}

Status CheckCount(const OnnxNode& node, const std::vector<FormOperand>& operands) {
  const bool several = !operands.empty() && operands.back().several;
  if (node.inputs.size() > operands.size() && !several) {
    return Error(Code::kCorrupt, "has {} inputs; expected {} at most", node.inputs.size(),
                 operands.size());
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].optional || operands[i].several) continue;
    if (i < node.inputs.size() && !node.inputs[i].empty()) continue;
    return Error(Code::kCorrupt, "has no input {}, which it needs", i);
  }
  return Status();
}

// The types that a letter names; empty: it names none.
std::vector<DataType> TypesOfLetter(char letter) {
  switch (letter) {
    case 'B':
      return {DataType::kBool};
    case 'F':
      return {DataType::kFloat};
    case 'I':
      return {DataType::kInt32, DataType::kInt64};
    case 'L':
      return {DataType::kInt64};
    case 'R':
      return {DataType::kFloat, DataType::kFloat16, DataType::kDouble, DataType::kBfloat16};
    default:
      return {};
  }
}

Status CheckTypes(const std::vector<FormOperand>& operands, const std::vector<DataType>& dtypes) {
  std::map<char, size_t> first;  // operand of each letter whose type is known
  for (size_t i = 0; i < dtypes.size() && !operands.empty(); ++i) {
    const char letter = operands[std::min(i, operands.size() - 1)].type;
    if (letter == '_' || dtypes[i] == DataType::kUndefined) continue;
    const std::vector<DataType> named = TypesOfLetter(letter);
    if (std::find(named.begin(), named.end(), dtypes[i]) != named.end()) continue;
    if (!named.empty()) {
      std::vector<std::string_view> names;
      for (const DataType dtype : named) names.push_back(Name(dtype));
      return Error(Code::kCorrupt, "input {} is {}; expected {}", i, Name(dtypes[i]),
                   fmt::join(names, " or "));
    }
    const size_t other = first.emplace(letter, i).first->second;
    if (dtypes[other] == dtypes[i]) continue;
    return Error(Code::kCorrupt, "input {} is {} and input {} is {}; expected one type for both",
                 other, Name(dtypes[other]), i, Name(dtypes[i]));
  }
  return Status();
}

}  // namespace

NodeForm ParseForm(std::string_view form) {
  NodeForm parsed;
  while (!form.empty()) {
    const size_t end = std::min(form.find(' '), form.size());
    const std::string_view word = form.substr(0, end);
    form.remove_prefix(std::min(end + 1, form.size()));
    if (word.empty()) continue;
    if (word.find(':') == std::string_view::npos) {
      parsed.operands.push_back(OperandFrom(word));
    } else {
      parsed.attributes.push_back(AttributeFrom(word));
    }
  }
  return parsed;
}

Status CheckForm(const OnnxNode& node, std::string_view form, int64_t version,
                 const std::vector<DataType>& dtypes) {
  const NodeForm parsed = ParseForm(form);
  const bool standard = node.domain.empty();
  if (!standard || version >= kFirstVersion) {
    NPUMESH_RETURN_IF_ERROR(CheckAttributes(node, parsed, version));
  }
  NPUMESH_RETURN_IF_ERROR(CheckCount(node, parsed.operands));
  return CheckTypes(parsed.operands, dtypes);
}

}  // namespace npumesh
