#include "runtime/base/text/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace npumesh {
namespace {

constexpr size_t kMostOfLine = 4000;

// The smallest code point that needs this many bytes.
constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};

// Bytes of the sequence that `lead` starts; 0 when it starts none.
size_t SequenceLength(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >> 5 == 0x6) return 2;
  if (lead >> 4 == 0xe) return 3;
  if (lead >> 3 == 0x1e) return 4;
  return 0;
}

struct Character {
  size_t bytes = 0;  // 0: not UTF-8
  uint32_t point = 0;
};

Character FirstOf(std::string_view text) {
  if (text.empty()) return {};
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = SequenceLength(lead);
  if (length == 0 || length > text.size()) return {};
  uint32_t point = length == 1 ? lead : lead & (0x7fU >> length);
  for (size_t k = 1; k < length; ++k) {
    const auto byte = static_cast<unsigned char>(text[k]);
    if (byte >> 6 != 2) return {};
    point = point << 6 | (byte & 0x3fU);
  }
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  if (point < kSmallest[length] || surrogate || point > 0x10ffff) return {};
  return {length, point};
}

// Controls of both halves of Latin-1, line and paragraph ends, and what turns the direction.
bool IsObeyed(uint32_t point) {
  return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x200e || point == 0x200f ||
         (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

std::string EscapeOf(uint32_t point) {
  switch (point) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    default:
      return point < 0x100 ? fmt::format("\\x{:02x}", point) : fmt::format("\\u{:04x}", point);
  }
}

// Adds the first character of `text` to `to`, escaped where it has to be, and takes it away.
void TakeCharacter(std::string_view& text, std::string& to) {
  const Character first = FirstOf(text);
  if (first.bytes == 0) {
    to += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    text.remove_prefix(1);
    return;
  }
  if (IsObeyed(first.point)) {
    to += EscapeOf(first.point);
  } else {
    to += text.substr(0, first.bytes);
  }
  text.remove_prefix(first.bytes);
}

bool IsPlainAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

// The first `most` bytes of `text` or a little fewer: no character is cut in two.
std::string_view Front(std::string_view text, size_t most) {
  size_t end = std::min(most, text.size());
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) {
    --end;
  }
  return text.substr(0, end);
}

std::string_view Back(std::string_view text, size_t most) {
  size_t begin = text.size() - std::min(most, text.size());
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) ++begin;
  return text.substr(begin);
}

// `line` without its middle when it is longer than `most`.
std::string Shortened(std::string_view line, size_t most) {
  if (line.size() <= most) return std::string(line);
  const size_t back = most / 4;
  return fmt::format("{}...{}", Front(line, most - back - 3), Back(line, back));
}

// `line` with what stands between quotes shortened.
std::string WithShortQuotes(std::string_view line) {
  std::string text;
  while (!line.empty()) {
    const size_t open = line.find('"');
    const size_t close = open == line.npos ? open : line.find('"', open + 1);
    if (close == line.npos) break;
    text += line.substr(0, open + 1);
    text += Shortened(line.substr(open + 1, close - open - 1), kMostQuoted);
    text += '"';
    line.remove_prefix(close + 1);
  }
  return text.append(line);
}

}  // namespace

size_t Utf8Length(std::string_view text) {
  return FirstOf(text).bytes;
}

std::string Printable(std::string_view text) {
  if (IsPlainAscii(text)) return std::string(text);
  std::string printable;
  printable.reserve(text.size() + 16);
  while (!text.empty()) TakeCharacter(text, printable);
  return printable;
}

std::string Quotable(std::string_view text) {
  return Shortened(Printable(text), kMostQuoted);
}

std::string PrintableMessage(std::string text) {
  if (text.size() <= kMostQuoted && IsPlainAscii(text)) return text;
  std::string message;
  std::string_view rest = text;
  for (;;) {
    const size_t end = rest.find("\n  ");
    message += Shortened(WithShortQuotes(Printable(rest.substr(0, end))), kMostOfLine);
    if (end == std::string_view::npos) return message;
    message += '\n';
    rest.remove_prefix(end + 1);
  }
}

}  // namespace npumesh
