#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "tests/layering/layering.h"

namespace npumesh {
namespace {

// Copies a source while it blanks what is not code.
class Blanker {
 public:
  explicit Blanker(std::string_view source) : in_(source), out_(source) {}

  std::string Run() {
    while (at_ < in_.size()) Next();
    return std::move(out_);
  }

 private:
  void Next() {
    if (Starts("//")) return BlankUntil(in_.find('\n', at_));
    if (Starts("/*")) return BlankUntil(After(in_.find("*/", at_ + 2), 2));
    if (Starts("R\"") && !InsideWord()) return BlankUntil(EndOfRawString());
    if (in_[at_] == '#') return Directive();
    if (in_[at_] == '"') return BlankUntil(EndOfLiteral('"'));
    // An apostrophe inside a number (1'000) separates digits.
    if (in_[at_] == '\'' && !InsideWord()) return BlankUntil(EndOfLiteral('\''));
    ++at_;
  }

  bool Starts(std::string_view text) const { return in_.substr(at_, text.size()) == text; }
  bool InsideWord() const {
    return at_ > 0 &&
           (std::isalnum(static_cast<unsigned char>(in_[at_ - 1])) || in_[at_ - 1] == '_');
  }
  size_t After(size_t found, size_t length) const {
    return found == std::string_view::npos ? in_.size() : found + length;
  }

  // Keeps the name of an #include, which looks like a string literal.
  void Directive() {
    size_t word = in_.find_first_not_of(" \t", at_ + 1);
    if (word != std::string_view::npos && in_.substr(word, 7) == "include") {
      const size_t end = in_.find('\n', at_);
      const size_t comment = in_.find("//", at_);
      at_ = std::min({end, comment, in_.size()});
    } else {
      ++at_;
    }
  }

  size_t EndOfLiteral(char quote) const {
    for (size_t i = at_ + 1; i < in_.size(); ++i) {
      if (in_[i] == '\\') {
        ++i;
      } else if (in_[i] == quote || in_[i] == '\n') {
        return i + 1;
      }
    }
    return in_.size();
  }

  // R"delimiter( ... )delimiter"
  size_t EndOfRawString() const {
    const size_t open = in_.find('(', at_);
    if (open == std::string_view::npos) return in_.size();
    std::string close(1, ')');
    close.append(in_.substr(at_ + 2, open - at_ - 2)).append(1, '"');
    return After(in_.find(close, open), close.size());
  }

  void BlankUntil(size_t end) {
    end = std::min(end, in_.size());
    for (; at_ < end; ++at_) {
      if (out_[at_] != '\n') out_[at_] = ' ';
    }
  }

  std::string_view in_;
  std::string out_;
  size_t at_ = 0;
};

}  // namespace

std::string CodeOnly(std::string_view source) {
  return Blanker(source).Run();
}

}  // namespace npumesh
