// Expressions of our own tables: aclnn functions (graph/aclnn/table), rules of cards
// (graph/limits).
//
//   expr    = or [ "if" or "else" expr ]
//   or, and, comparisons (== != < <= > >= in, not in), + -, * / // %, those that bind most last
//   unary   = "-" unary | "not" unary | primary
//   primary = number | "text" | name | name "(" elements ")" | "[" elements "]" | "(" expr ")",
//             and behind it "[" expr "]" for an element
//
// `not` binds more than a comparison: not (a == b). An element of a call may have a name:
// Add(x, alpha=2). # begins a comment. What names and calls mean is their reader's.
//
// Thread-safety: free functions, and values.
#ifndef NPUMESH_RUNTIME_BASE_TEXT_EXPRESSION_H_
#define NPUMESH_RUNTIME_BASE_TEXT_EXPRESSION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

struct NamedExpr;

struct Expr {
  enum class Kind : uint8_t {
    kInteger,
    kReal,
    kText,
    kName,
    kList,       // of children
    kCall,       // text(children; named)
    kUnary,      // text: - not
    kBinary,     // text: + - * / // % == != < <= > >= in and or; "not in" is a `not` of `in`
    kCondition,  // children: condition, then, else
    kElement,    // children: of what, which
  };
  Kind kind = Kind::kName;
  std::string text;
  int64_t integer = 0;
  double real = 0;
  std::vector<Expr> children;
  std::vector<NamedExpr> named;
};

// An argument of a call that is given by name.
struct NamedExpr {
  std::string name;
  Expr value;
};

struct Token {
  enum class Kind : uint8_t { kEnd, kWord, kNumber, kText, kSign };
  Kind kind = Kind::kEnd;
  std::string_view text;
};

// The tokens of a line, one after the other. The text must outlive it.
class TokenLine {
 public:
  explicit TokenLine(std::string_view text) : rest_(text) { Next(); }

  const Token& token() const { return token_; }
  bool AtEnd() const { return token_.kind == Token::Kind::kEnd; }
  // The token is this word or sign.
  bool Is(std::string_view text) const {
    return token_.kind != Token::Kind::kText && token_.text == text;
  }
  // Steps over it if it is.
  bool Take(std::string_view text);
  // Steps over this, or over any word, whose text it returns. Errors as Wrong.
  Status Expect(std::string_view text);
  Result<std::string> Word();
  // kCorrupt: what is expected, and what stands there.
  Status Wrong(std::string_view expected) const;
  void Next();

  // How deep expressions stand in each other; Enter is false beyond what any table needs.
  bool Enter() { return ++depth_ <= kDeepest; }
  void Leave() { --depth_; }

 private:
  static constexpr int kDeepest = 64;
  template <typename Test>
  size_t LengthOf(Test test) const;
  size_t NumberLength() const;
  void Cut(Token::Kind kind, size_t length);

  std::string_view rest_;
  Token token_;
  int depth_ = 0;
};

// Reads an expression; the line goes on behind it. Error (kCorrupt): what does not follow the
// notation, stands deeper than 200 levels, or is a chain of more than 1000.
Result<Expr> ParseExpression(TokenLine& line);

// All of the text is one. Errors as ParseExpression.
Result<Expr> ParseExpression(std::string_view text);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_TEXT_EXPRESSION_H_
