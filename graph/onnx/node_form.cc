#include "graph/onnx/node_form.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "runtime/base/text/printable.h"

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
  constexpr std::string_view kSameType = "TUVW_";
  const size_t end = std::min(word.find_first_of("?."), word.size());
  const std::string_view letters = word.substr(0, end);
  const bool named = letters.size() == 1 && kSameType.find(letters[0]) == std::string_view::npos;
  return {letters[0], named ? letters : letters.substr(std::min<size_t>(letters.size(), 2)),
          word.find('?') != std::string_view::npos, word.ends_with("...")};
}

// The number after `mark`, which is cut off; `fallback` without a number.
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
    const bool placed = i < node.inputs.size(), given = placed && !node.inputs[i].empty();
    const bool left_out = placed && (operands[i].optional || operands[i].several);
    // What stands in front of several operands has a place, also where it is left out.
    if (given || left_out || (operands[i].optional && (!several || operands[i].several))) continue;
    return Error(Code::kCorrupt, "has no input {}, which it needs", i);
  }
  return Status();
}

// A class of types (node_form.h).
struct TypeClass {
  char letter;
  std::string_view name;  // in messages
  bool (*has)(DataType);
};

constexpr TypeClass kClasses[] = {
    {'A', "an unsigned integer", IsUnsignedInteger},
    {'B', "bool", [](DataType t) { return t == DataType::kBool; }},
    {'D', "float32 or float64",
     [](DataType t) { return t == DataType::kFloat || t == DataType::kDouble; }},
    {'F', "float32", [](DataType t) { return t == DataType::kFloat; }},
    {'I', "int32 or int64", [](DataType t) { return IsSignedInteger(t) && BitsOf(t) >= 32; }},
    {'J', "int32", [](DataType t) { return t == DataType::kInt32; }},
    {'K', "uint32 or uint64", [](DataType t) { return IsUnsignedInteger(t) && BitsOf(t) >= 32; }},
    {'L', "int64", [](DataType t) { return t == DataType::kInt64; }},
    {'N', "a number", [](DataType t) { return IsInteger(t) || IsFloating(t); }},
    {'Q', "an integer of 8 or 16 bits", [](DataType t) { return IsInteger(t) && BitsOf(t) <= 16; }},
    {'R', "float32, float16, float64 or bfloat16", IsFloating},
    {'S', "a signed integer", IsSignedInteger},
    {'Y', "int8 or uint8", [](DataType t) { return IsInteger(t) && BitsOf(t) == 8; }},
    {'Z', "an integer", IsInteger},
};

// REQUIRES: a form has the letter.
const TypeClass& ClassOf(char letter) {
  return *std::find_if(std::begin(kClasses), std::end(kClasses),
                       [letter](const TypeClass& each) { return each.letter == letter; });
}

Status CheckClass(const FormOperand& operand, DataType dtype, size_t input) {
  if (Takes(operand, dtype)) return Status();
  std::vector<std::string_view> names;
  for (const char letter : operand.classes) names.push_back(ClassOf(letter).name);
  return Error(Code::kCorrupt, "input {} is {}; expected {}", input, Name(dtype),
               fmt::join(names, ", or "));
}

Status CheckTypes(const std::vector<FormOperand>& operands, const std::vector<DataType>& dtypes) {
  std::map<char, size_t> first;  // operand of each letter whose type is known
  for (size_t i = 0; i < dtypes.size() && !operands.empty(); ++i) {
    const FormOperand& operand = operands[std::min(i, operands.size() - 1)];
    if (dtypes[i] == DataType::kUndefined) continue;
    NPUMESH_RETURN_IF_ERROR(CheckClass(operand, dtypes[i], i));
    if (operand.type < 'T' || operand.type > 'W') continue;
    const size_t other = first.emplace(operand.type, i).first->second;
    if (dtypes[other] == dtypes[i]) continue;
    return Error(Code::kCorrupt, "input {} is {} and input {} is {}; expected one type for both",
                 other, Name(dtypes[other]), i, Name(dtypes[i]));
  }
  return Status();
}

}  // namespace

bool Takes(const FormOperand& operand, DataType dtype) {
  const std::string_view classes = operand.classes;
  return classes.empty() || std::any_of(classes.begin(), classes.end(),
                                        [&](char letter) { return ClassOf(letter).has(dtype); });
}

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
