#include "runtime/base/text/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace npumesh {
namespace {

bool IsDigit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool IsWordStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool IsWord(char c) {
  return IsWordStart(c) || IsDigit(c);
}

Expr Node(Expr::Kind kind, std::string text, std::vector<Expr> children) {
  Expr node;
  node.kind = kind;
  node.text = std::move(text);
  node.children = std::move(children);
  return node;
}

// Binary signs, those that bind least first.
constexpr std::array<std::array<std::string_view, 7>, 5> kSigns = {{
    {"or"},
    {"and"},
    {"==", "!=", "<", "<=", ">", ">=", "in"},
    {"+", "-"},
    {"*", "/", "//", "%"},
}};
constexpr size_t kComparisons = 2;

// Terms of a sum, signs before a value, elements of elements: each makes the tree deeper.
constexpr int kLongestChain = 1000;
Status TooLong() {
  return Error(Code::kCorrupt, "an expression has more than {} terms in a row", kLongestChain);
}

Result<Expr> ParseNumber(TokenLine& line) {
  const std::string_view text = line.token().text;
  Expr node;
  const char* const end = text.data() + text.size();
  std::from_chars_result read{};
  if (text.find_first_of(".e") == std::string_view::npos) {
    node.kind = Expr::Kind::kInteger;
    read = std::from_chars(text.data(), end, node.integer);
  } else {
    node.kind = Expr::Kind::kReal;
    read = std::from_chars(text.data(), end, node.real);
  }
  if (read.ec != std::errc() || read.ptr != end) return line.Wrong("a number");
  line.Next();
  return node;
}

// Elements up to the closing sign; `named` takes those with a name.
Status ParseElements(TokenLine& line, std::string_view close, Expr* node) {
  while (!line.Take(close)) {
    if (line.AtEnd()) return line.Wrong(fmt::format("\"{}\"", close));
    NPUMESH_ASSIGN_OR_RETURN(Expr element, ParseExpression(line));
    if (element.kind == Expr::Kind::kName && line.Take("=")) {
      NPUMESH_ASSIGN_OR_RETURN(Expr value, ParseExpression(line));
      node->named.push_back({std::move(element.text), std::move(value)});
    } else {
      node->children.push_back(std::move(element));
    }
    if (!line.Is(close)) NPUMESH_RETURN_IF_ERROR(line.Expect(","));
  }
  return Status();
}

Result<Expr> ParsePrimary(TokenLine& line) {
  using Kind = Expr::Kind;
  Expr node;
  if (line.token().kind == Token::Kind::kNumber) return ParseNumber(line);
  if (line.token().kind == Token::Kind::kText) {
    node = Node(Kind::kText, std::string(line.token().text), {});
    line.Next();
    return node;
  }
  if (line.Take("(")) {
    NPUMESH_ASSIGN_OR_RETURN(node, ParseExpression(line));
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
  for (int chain = 0; line.Take("["); ++chain) {
    if (chain == kLongestChain) return TooLong();
    NPUMESH_ASSIGN_OR_RETURN(Expr which, ParseExpression(line));
    NPUMESH_RETURN_IF_ERROR(line.Expect("]"));
    node = Node(Kind::kElement, "", {std::move(node), std::move(which)});
  }
  return node;
}

Result<Expr> ParseUnary(TokenLine& line) {
  std::vector<std::string> signs;
  while (line.Is("-") || line.Is("not")) {
    if (signs.size() == kLongestChain) return TooLong();
    signs.emplace_back(line.token().text);
    line.Next();
  }
  NPUMESH_ASSIGN_OR_RETURN(Expr value, ParsePrimary(line));
  for (; !signs.empty(); signs.pop_back()) {
    value = Node(Expr::Kind::kUnary, signs.back(), {std::move(value)});
  }
  return value;
}

bool TakeNotIn(TokenLine& line) {
  TokenLine ahead = line;
  if (!ahead.Take("not") || !ahead.Take("in")) return false;
  line = ahead;
  return true;
}

Result<Expr> ParseBinary(TokenLine& line, size_t level) {
  if (level == kSigns.size()) return ParseUnary(line);
  NPUMESH_ASSIGN_OR_RETURN(Expr left, ParseBinary(line, level + 1));
  for (int chain = 0;; ++chain) {
    if (chain == kLongestChain) return TooLong();
    const auto& signs = kSigns[level];
    const auto sign = std::find_if(signs.begin(), signs.end(), [&](std::string_view text) {
      return !text.empty() && line.Is(text);
    });
    const bool negated = sign == signs.end() && level == kComparisons && TakeNotIn(line);
    if (sign == signs.end() && !negated) return left;
    if (!negated) line.Next();
    NPUMESH_ASSIGN_OR_RETURN(Expr right, ParseBinary(line, level + 1));
    left = Node(Expr::Kind::kBinary, negated ? "in" : std::string(*sign),
                {std::move(left), std::move(right)});
    if (negated) left = Node(Expr::Kind::kUnary, "not", {std::move(left)});
  }
}

Result<Expr> ParseWhole(TokenLine& line) {
  NPUMESH_ASSIGN_OR_RETURN(Expr value, ParseBinary(line, 0));
  if (!line.Take("if")) return value;
  NPUMESH_ASSIGN_OR_RETURN(Expr condition, ParseBinary(line, 0));
  NPUMESH_RETURN_IF_ERROR(line.Expect("else"));
  NPUMESH_ASSIGN_OR_RETURN(Expr otherwise, ParseExpression(line));
  return Node(Expr::Kind::kCondition, "",
              {std::move(condition), std::move(value), std::move(otherwise)});
}

}  // namespace

bool TokenLine::Take(std::string_view text) {
  if (!Is(text)) return false;
  Next();
  return true;
}

Status TokenLine::Expect(std::string_view text) {
  if (Take(text)) return Status();
  return Wrong(fmt::format("\"{}\"", text));
}

Result<std::string> TokenLine::Word() {
  if (token_.kind != Token::Kind::kWord) return Wrong("a name");
  std::string word(token_.text);
  Next();
  return word;
}

Status TokenLine::Wrong(std::string_view expected) const {
  return Error(Code::kCorrupt, "expected {} in place of \"{}\"", expected,
               AtEnd() ? "the end of the line" : token_.text);
}

void TokenLine::Next() {
  while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
  if (rest_.empty() || rest_[0] == '#') {
    token_ = {};
  } else if (IsWordStart(rest_[0])) {
    Cut(Token::Kind::kWord, LengthOf(IsWord));
  } else if (IsDigit(rest_[0])) {
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

template <typename Test>
size_t TokenLine::LengthOf(Test test) const {
  return static_cast<size_t>(std::find_if_not(rest_.begin(), rest_.end(), test) - rest_.begin());
}

// 1, 0.5, 1e-5
size_t TokenLine::NumberLength() const {
  size_t length = 0;
  while (length < rest_.size()) {
    const char c = rest_[length];
    const bool sign = (c == '-' || c == '+') && rest_[length - 1] == 'e';
    if (!IsDigit(c) && c != '.' && c != 'e' && !sign) break;
    ++length;
  }
  return length;
}

void TokenLine::Cut(Token::Kind kind, size_t length) {
  token_ = {kind, rest_.substr(0, length)};
  rest_.remove_prefix(length);
}

Result<Expr> ParseExpression(TokenLine& line) {
  if (!line.Enter()) return Error(Code::kCorrupt, "an expression is nested too deeply");
  Result<Expr> value = ParseWhole(line);
  line.Leave();
  return value;
}

Result<Expr> ParseExpression(std::string_view text) {
  TokenLine line(text);
  NPUMESH_ASSIGN_OR_RETURN(Expr value, ParseExpression(line));
  if (!line.AtEnd()) return line.Wrong("the end of the line");
  return value;
}

}  // namespace npumesh
