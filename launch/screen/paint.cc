#include "launch/screen/paint.h"

#include <algorithm>
#include <array>

namespace npumesh {
namespace {

constexpr std::string_view kGreen = "\x1b[32m";
constexpr std::string_view kRed = "\x1b[31m";
constexpr std::string_view kYellow = "\x1b[33m";
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kPlain = "\x1b[0m";

enum class Where : uint8_t { kAnywhere, kLineBegin, kLineEnd };

struct PaintedWord {
  std::string_view word;
  std::string_view colour;
  Where where = Where::kAnywhere;
};

constexpr std::array kWords = {
    PaintedWord{"OK", kGreen},
    PaintedWord{"DIFFERS", kRed},
    PaintedWord{"valid", kGreen, Where::kLineEnd},
    PaintedWord{"not valid", kRed, Where::kLineEnd},
    PaintedWord{"<- slowest", kYellow, Where::kLineEnd},
    PaintedWord{"verdict:", kBold, Where::kLineBegin},
    PaintedWord{"error:", kRed},
    PaintedWord{"warning:", kYellow},
    PaintedWord{"ok", kGreen, Where::kLineBegin},
    PaintedWord{"advice", kYellow, Where::kLineBegin},
    PaintedWord{"wrong", kRed, Where::kLineBegin},
    PaintedWord{"failed:", kRed, Where::kLineBegin},
};

bool IsEdge(char c) {
  return c == ' ' || c == ',' || c == ':' || c == ';' || c == ')' || c == '(';
}

// The word that stands at `at`; null: none.
const PaintedWord* WordAt(std::string_view line, size_t at) {
  const auto found = std::find_if(kWords.begin(), kWords.end(), [&](const PaintedWord& each) {
    if (!line.substr(at).starts_with(each.word)) return false;
    const size_t end = at + each.word.size();
    const bool whole =
        (at == 0 || IsEdge(line[at - 1])) && (end == line.size() || IsEdge(line[end]));
    return whole && (each.where != Where::kLineBegin || at == 0) &&
           (each.where != Where::kLineEnd || end == line.size());
  });
  return found == kWords.end() ? nullptr : &*found;
}

std::string PaintedLine(std::string_view line) {
  std::string painted;
  for (size_t at = 0; at < line.size();) {
    const PaintedWord* const word = WordAt(line, at);
    if (word == nullptr) {
      painted += line[at++];
      continue;
    }
    painted.append(word->colour).append(word->word).append(kPlain);
    at += word->word.size();
  }
  return painted;
}

}  // namespace

std::string Painted(std::string_view text) {
  std::string painted;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    painted += PaintedLine(text.substr(0, end));
    if (end == text.npos) break;
    painted += '\n';
    text.remove_prefix(end + 1);
  }
  return painted;
}

}  // namespace npumesh
