#include "graph/aclnn/table/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>

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

bool IsWordStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool IsWord(char c) {
  return IsWordStart(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

struct Token {
  enum class Kind : uint8_t { kEnd, kWord, kNumber, kText, kSign };
  Kind kind = Kind::kEnd;
  std::string_view text;
};

// The tokens of a line.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) { Next(); }

  const Token& token() const { return token_; }
  bool AtEnd() const { return token_.kind == Token::Kind::kEnd; }
  bool Is(std::string_view text) const {
    return token_.kind != Token::Kind::kText && token_.text == text;
  }
  bool Take(std::string_view text) {
    if (!Is(text)) return false;
    Next();
    return true;
  }
  Status Expect(std::string_view text) {
    if (Take(text)) return Status();
    return Wrong(fmt::format("\"{}\"", text));
  }
  Result<std::string> Word() {
    if (token_.kind != Token::Kind::kWord) return Wrong("a name");
    std::string word(token_.text);
    Next();
    return word;
  }
  Status Wrong(std::string_view expected) const {
    return Error(Code::kCorrupt, "expected {} in place of \"{}\"", expected,
                 AtEnd() ? "the end of the line" : token_.text);
  }
  void Next() {
    while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
    if (rest_.empty() || rest_[0] == '#') {
      token_ = {};
    } else if (IsWordStart(rest_[0])) {
      Cut(Token::Kind::kWord, LengthOf(IsWord));
    } else if (std::isdigit(static_cast<unsigned char>(rest_[0])) != 0) {
      Cut(Token::Kind::kNumber, NumberLength());
    } else if (rest_[0] == '"') {
      const size_t end = std::min(rest_.find('"', 1), rest_.size());
      token_ = {Token::Kind::kText, rest_.substr(1, end - 1)};
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
    } else {
      static constexpr std::array<std::string_view, 5> kDouble = {"==", "!=", "<=", ">=", "//"};
      const bool two = std::any_of(kDouble.begin(), kDouble.end(),
                                   [this](auto sign) { return rest_.starts_with(sign); });
      Cut(Token::Kind::kSign, two ? 2 : 1);
    }
  }

 private:
  template <typename Is>
  size_t LengthOf(Is is) const {
    return static_cast<size_t>(std::find_if_not(rest_.begin(), rest_.end(), is) - rest_.begin());
  }
  // 1, 0.5, 1e-5
  size_t NumberLength() const {
    size_t length = 0;
    while (length < rest_.size()) {
      const char c = rest_[length];
      const bool sign = (c == '-' || c == '+') && rest_[length - 1] == 'e';
      if (std::isdigit(static_cast<unsigned char>(c)) == 0 && c != '.' && c != 'e' && !sign) break;
      ++length;
    }
    return length;
  }
  void Cut(Token::Kind kind, size_t length) {
    token_ = {kind, rest_.substr(0, length)};
    rest_.remove_prefix(length);
  }

  std::string_view rest_;
  Token token_;
};

AclnnExpr Node(AclnnExpr::Kind kind, std::string text, std::vector<AclnnExpr> children) {
  AclnnExpr node;
  node.kind = kind;
  node.text = std::move(text);
  node.children = std::move(children);
  return node;
}

// Binary signs, those that bind least first.
constexpr std::array<std::array<std::string_view, 6>, 5> kSigns = {{
    {"or"},
    {"and"},
    {"==", "!=", "<", "<=", ">", ">="},
    {"+", "-"},
    {"*", "/", "//", "%"},
}};

Result<AclnnExpr> ParseExpr(Line& line);

Result<AclnnExpr> ParseNumber(Line& line) {
  const std::string_view text = line.token().text;
  AclnnExpr node;
  const char* const end = text.data() + text.size();
  std::from_chars_result read{};
  if (text.find_first_of(".e") == std::string_view::npos) {
    node.kind = AclnnExpr::Kind::kInteger;
    read = std::from_chars(text.data(), end, node.integer);
  } else {
    node.kind = AclnnExpr::Kind::kReal;
    read = std::from_chars(text.data(), end, node.real);
  }
  if (read.ec != std::errc() || read.ptr != end) return line.Wrong("a number");
  line.Next();
  return node;
}

// Elements up to the closing sign; `named` takes those with a name.
Status ParseElements(Line& line, std::string_view close, AclnnExpr* node) {
  while (!line.Take(close)) {
    if (line.AtEnd()) return line.Wrong(fmt::format("\"{}\"", close));
    NPUMESH_ASSIGN_OR_RETURN(AclnnExpr element, ParseExpr(line));
    if (element.kind == AclnnExpr::Kind::kName && line.Take("=")) {
      NPUMESH_ASSIGN_OR_RETURN(AclnnExpr value, ParseExpr(line));
      node->named.emplace_back(std::move(element.text), std::move(value));
    } else {
      node->children.push_back(std::move(element));
    }
    if (!line.Is(close)) NPUMESH_RETURN_IF_ERROR(line.Expect(","));
  }
  return Status();
}

Result<AclnnExpr> ParsePrimary(Line& line) {
  using Kind = AclnnExpr::Kind;
  AclnnExpr node;
  if (line.token().kind == Token::Kind::kNumber) return ParseNumber(line);
  if (line.token().kind == Token::Kind::kText) {
    node = Node(Kind::kText, std::string(line.token().text), {});
    line.Next();
    return node;
  }
  if (line.Take("(")) {
    NPUMESH_ASSIGN_OR_RETURN(node, ParseExpr(line));
    NPUMESH_RETURN_IF_ERROR(line.Expect(")"));
  } else if (line.Take("[")) {
    node.kind = Kind::kList;
    NPUMESH_RETURN_IF_ERROR(ParseElements(line, "]", &node));
  } else {
    NPUMESH_ASSIGN_OR_RETURN(node.text, line.Word());
    if (line.Take("(")) {
      node.kind = Kind::kCall;
      NPUMESH_RETURN_IF_ERROR(ParseElements(line, ")", &node));
    }
  }
  while (line.Take("[")) {
    NPUMESH_ASSIGN_OR_RETURN(AclnnExpr which, ParseExpr(line));
    NPUMESH_RETURN_IF_ERROR(line.Expect("]"));
    node = Node(Kind::kElement, "", {std::move(node), std::move(which)});
  }
  return node;
}

Result<AclnnExpr> ParseUnary(Line& line) {
  for (const std::string_view sign : {"-", "not"}) {
    if (!line.Take(sign)) continue;
    NPUMESH_ASSIGN_OR_RETURN(AclnnExpr of, ParseUnary(line));
    return Node(AclnnExpr::Kind::kUnary, std::string(sign), {std::move(of)});
  }
  return ParsePrimary(line);
}

Result<AclnnExpr> ParseBinary(Line& line, size_t level) {
  if (level == kSigns.size()) return ParseUnary(line);
  NPUMESH_ASSIGN_OR_RETURN(AclnnExpr left, ParseBinary(line, level + 1));
  for (;;) {
    const auto& signs = kSigns[level];
    const auto sign = std::find_if(signs.begin(), signs.end(), [&](std::string_view text) {
      return !text.empty() && line.Is(text);
    });
    if (sign == signs.end()) return left;
    line.Next();
    NPUMESH_ASSIGN_OR_RETURN(AclnnExpr right, ParseBinary(line, level + 1));
    left = Node(AclnnExpr::Kind::kBinary, std::string(*sign), {std::move(left), std::move(right)});
  }
}

Result<AclnnExpr> ParseExpr(Line& line) {
  NPUMESH_ASSIGN_OR_RETURN(AclnnExpr value, ParseBinary(line, 0));
  if (!line.Take("if")) return value;
  NPUMESH_ASSIGN_OR_RETURN(AclnnExpr condition, ParseBinary(line, 0));
  NPUMESH_RETURN_IF_ERROR(line.Expect("else"));
  NPUMESH_ASSIGN_OR_RETURN(AclnnExpr otherwise, ParseExpr(line));
  return Node(AclnnExpr::Kind::kCondition, "",
              {std::move(condition), std::move(value), std::move(otherwise)});
}

Result<AclnnParam> ParseParam(Line& line) {
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

Result<AclnnFunction> ParseFunction(Line& line) {
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
Result<AclnnStatement> ParseStatement(Line& line) {
  AclnnStatement statement;
  Line ahead = line;
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
  NPUMESH_ASSIGN_OR_RETURN(statement.value, ParseExpr(line));
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
    Line line(content);
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
