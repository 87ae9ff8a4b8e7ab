#include "graph/ops/core/signature.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

namespace npumesh {
namespace {

struct KindName {
  std::string_view name;
  std::optional<Required> required;  // none: only with a default
};

constexpr KindName kKinds[] = {
    {"int", Required::kInt},       {"float", Required::kFloat}, {"bool", Required::kBool},
    {"string", Required::kString}, {"type", Required::kType},   {"ints", Required::kInts},
    {"floats", Required::kFloats}, {"bools", std::nullopt},     {"strings", std::nullopt},
    {"tensor", Required::kTensor}, {"any", Required::kAny},
};

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool EndsValue(char c) {
  return c == ',' || c == ')' || c == ']' || c == ' ';
}

template <typename T>
std::optional<T> Number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool LooksLikeFloat(std::string_view word) {
  return word.find_first_of(".en") != std::string_view::npos;  // 1.0, 1e-05, inf, nan
}

// Reads one signature from left to right; the first objection ends it.
class SignatureReader {
 public:
  explicit SignatureReader(std::string_view text) : text_(text) {}

  Result<OpSchema> Read() {
    OpSchema schema;
    NPUMESH_ASSIGN_OR_RETURN(schema.type, Word("the operator's name"));
    NPUMESH_RETURN_IF_ERROR(Expect("("));
    NPUMESH_RETURN_IF_ERROR(ReadPorts(&schema.inputs));
    if (Take(";")) NPUMESH_RETURN_IF_ERROR(ReadAttrs(&schema.attrs));
    NPUMESH_RETURN_IF_ERROR(Expect(")"));
    NPUMESH_RETURN_IF_ERROR(Expect("->"));
    NPUMESH_RETURN_IF_ERROR(ReadPorts(&schema.outputs));
    SkipSpaces();
    if (at_ != text_.size()) return Objection("the end");
    return schema;
  }

 private:
  Status Objection(std::string_view expected) const {
    return Error(Code::kInvalidArgument, "signature \"{}\", character {}: expected {}", text_,
                 at_ + 1, expected);
  }

  char Here() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void SkipSpaces() {
    while (Here() == ' ') ++at_;
  }

  bool Take(std::string_view token) {
    SkipSpaces();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  Status Expect(std::string_view token) {
    return Take(token) ? Status() : Objection(fmt::format("\"{}\"", token));
  }

  Result<std::string_view> Word(std::string_view what) {
    SkipSpaces();
    const size_t begin = at_;
    while (IsNameChar(Here())) ++at_;
    if (at_ == begin) return Objection(what);
    return text_.substr(begin, at_ - begin);
  }

  // "x, y?, z..."; also none.
  Status ReadPorts(std::vector<PortSpec>* ports) {
    SkipSpaces();
    if (!IsNameChar(Here())) return Status();
    do {
      NPUMESH_ASSIGN_OR_RETURN(const std::string_view name, Word("a port"));
      const PortKind kind = Take("...") ? PortKind::kDynamic
                            : Take("?") ? PortKind::kOptional
                                        : PortKind::kRequired;
      ports->push_back({name, kind});
    } while (Take(","));
    return Status();
  }

  Status ReadAttrs(std::vector<AttrSpec>* attrs) {
    do {
      NPUMESH_ASSIGN_OR_RETURN(AttrSpec attr, ReadAttr());
      attrs->push_back(std::move(attr));
    } while (Take(","));
    return Status();
  }

  Result<AttrSpec> ReadAttr() {
    NPUMESH_ASSIGN_OR_RETURN(const std::string_view name, Word("an attribute"));
    KindName kind;
    if (Take(":")) {
      NPUMESH_ASSIGN_OR_RETURN(const std::string_view word, Word("a kind"));
      const auto* known = std::ranges::find(kKinds, word, &KindName::name);
      if (known == std::end(kKinds)) {
        return Objection("a kind: int, float, bool, string, type, ints ...");
      }
      kind = *known;
    }
    const bool only = Take("==");
    if (only || Take("=")) {
      NPUMESH_ASSIGN_OR_RETURN(AttrValue value, ReadValue(kind.name));
      return only ? AttrSpec::Only(name, std::move(value)) : AttrSpec(name, std::move(value));
    }
    if (!kind.required) return Objection("\":kind\" or \"=default\"");
    return AttrSpec(name, *kind.required);
  }

  Result<AttrValue> ReadValue(std::string_view kind) {
    SkipSpaces();
    if (Here() == '"') return ReadString();
    if (Here() == '[') return ReadList(kind);
    return ReadScalar(kind);
  }

  Result<AttrValue> ReadString() {
    NPUMESH_ASSIGN_OR_RETURN(const std::string_view body, Quoted());
    return AttrValue::String(std::string(body));
  }

  // What stands in quotes, the first of which is here.
  Result<std::string_view> Quoted() {
    const size_t end = text_.find('"', ++at_);
    if (end == std::string_view::npos) return Objection("a closing quote");
    const std::string_view body = text_.substr(at_, end - at_);
    at_ = end + 1;
    return body;
  }

  std::string_view ScalarWord() {
    SkipSpaces();
    const size_t begin = at_;
    while (Here() != '\0' && !EndsValue(Here())) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Result<AttrValue> ReadScalar(std::string_view kind) {
    const std::string_view word = ScalarWord();
    if (word == "true" || word == "false") return AttrValue::Bool(word == "true");
    if (kind == "type") {
      const std::optional<DataType> dtype = DataTypeFromName(word);
      if (dtype) return AttrValue::Type(*dtype);
      return Objection("a data type");
    }
    if (LooksLikeFloat(word)) {
      const auto number = Number<float>(word);
      if (number) return AttrValue::Float(*number);
    } else if (const auto number = Number<int64_t>(word)) {
      return AttrValue::Int(*number);
    }
    return Objection("a value");
  }

  Result<AttrValue> ReadList(std::string_view kind) {
    ++at_;
    SkipSpaces();
    if (Here() == '"' && (kind.empty() || kind == "strings")) return ReadStrings();
    std::vector<std::string_view> words;
    while (!Take("]")) {
      if (!words.empty()) NPUMESH_RETURN_IF_ERROR(Expect(","));
      words.push_back(ScalarWord());
      if (words.back().empty()) return Objection("an element");
    }
    return ListOf(kind.empty() && !words.empty() ? KindOf(words[0]) : kind, words);
  }

  // The elements of a list of strings, the first of which is here, and its end.
  Result<AttrValue> ReadStrings() {
    std::vector<std::string> texts;
    do {
      SkipSpaces();
      if (Here() != '"') return Objection("an opening quote");
      NPUMESH_ASSIGN_OR_RETURN(const std::string_view text, Quoted());
      texts.emplace_back(text);
    } while (Take(","));
    NPUMESH_RETURN_IF_ERROR(Expect("]"));
    return AttrValue::Strings(std::move(texts));
  }

  static std::string_view KindOf(std::string_view word) {
    if (word == "true" || word == "false") return "bools";
    return LooksLikeFloat(word) ? "floats" : "ints";
  }

  Result<AttrValue> ListOf(std::string_view kind, const std::vector<std::string_view>& words) {
    if (kind == "strings") {
      return words.empty() ? Result<AttrValue>(AttrValue::Strings({})) : Objection("strings");
    }
    std::vector<int64_t> ints;
    std::vector<float> floats;
    std::vector<bool> bools;
    for (const std::string_view word : words) {
      if (kind == "bools") {
        bools.push_back(word == "true");
        continue;
      }
      const auto number = Number<float>(word);
      if (!number) return Objection("numbers");
      floats.push_back(*number);
      ints.push_back(Number<int64_t>(word).value_or(0));
    }
    if (kind == "bools") return AttrValue::Bools(std::move(bools));
    if (kind == "floats") return AttrValue::Floats(std::move(floats));
    return AttrValue::Ints(std::move(ints));
  }

  const std::string_view text_;
  size_t at_ = 0;
};

std::string FloatText(float value) {
  const std::string text = fmt::format("{}", value);
  return LooksLikeFloat(text) ? text : text + ".0";
}

std::string ListText(const ListAttr& list) {
  std::vector<std::string> texts;
  for (const float value : list.f) texts.push_back(FloatText(value));
  for (const bool value : list.b) texts.emplace_back(value ? "true" : "false");
  for (const std::string& value : list.s) texts.push_back(fmt::format("\"{}\"", value));
  for (const int64_t value : list.i) texts.push_back(fmt::format("{}", value));
  return fmt::format("[{}]", fmt::join(texts, ","));
}

std::string_view KindWord(const AttrValue& value) {
  if (value.get<OpaqueAttr>() != nullptr) return "any";
  if (value.get<DataTypeAttr>() != nullptr) return "type";
  if (value.get<TensorAttr>() != nullptr) return "tensor";
  const auto* list = value.get<ListAttr>();
  if (list == nullptr) return value.kind();
  if (list->kind == ListKind::kFloat) return "floats";
  if (list->kind == ListKind::kString) return "strings";
  return list->kind == ListKind::kBool ? "bools" : "ints";
}

// Whether ValueText says less than the kind.
bool NeedsKind(const AttrValue& value) {
  if (value.get<DataTypeAttr>() != nullptr) return true;
  const auto* list = value.get<ListAttr>();
  return list != nullptr && list->kind != ListKind::kInt && list->f.empty() && list->b.empty() &&
         list->s.empty();
}

std::string AttrText(const AttrSpec& attr) {
  if (!attr.fallback) return fmt::format("{}:{}", attr.name, KindWord(attr.pattern));
  const AttrValue& value = *attr.fallback;
  const std::string kind = NeedsKind(value) ? fmt::format(":{}", KindWord(value)) : "";
  return fmt::format("{}{}{}{}", attr.name, kind, attr.only_fallback ? "==" : "=",
                     ValueText(value));
}

std::string PortsText(const std::vector<PortSpec>& ports) {
  std::vector<std::string> texts;
  for (const PortSpec& port : ports) {
    constexpr std::string_view kMarks[] = {"", "?", "..."};
    texts.push_back(fmt::format("{}{}", port.name, kMarks[static_cast<size_t>(port.kind)]));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

Result<OpSchema> ParseSignature(std::string_view text) {
  return SignatureReader(text).Read();
}

OpSchema Signature(std::string_view text) {
  Result<OpSchema> schema = ParseSignature(text);
  if (schema.ok()) return *std::move(schema);
  fmt::print(stderr, "{}\n", schema.status().message());
  std::abort();
}

std::string SignatureText(const OpSchema& schema) {
  std::vector<std::string> attrs;
  for (const AttrSpec& attr : schema.attrs) attrs.push_back(AttrText(attr));
  return fmt::format("{}({}{}{}) -> {}", schema.type, PortsText(schema.inputs),
                     attrs.empty() ? "" : "; ", fmt::join(attrs, ", "), PortsText(schema.outputs));
}

std::string ValueText(const AttrValue& value) {
  if (const auto* number = value.get<int64_t>()) return fmt::format("{}", *number);
  if (const auto* number = value.get<float>()) return FloatText(*number);
  if (const auto* flag = value.get<bool>()) return *flag ? "true" : "false";
  if (const auto* text = value.get<std::string>()) return fmt::format("\"{}\"", *text);
  if (const auto* list = value.get<ListAttr>()) return ListText(*list);
  if (const auto* type = value.get<DataTypeAttr>()) {
    return std::string(Name(DataTypeFromRuntime(type->number).value_or(DataType::kUndefined)));
  }
  return std::string(value.kind());
}

}  // namespace npumesh
