#include "graph/io/python_bytes.h"

namespace npumesh {
namespace {

constexpr char kHex[] = "0123456789abcdef";

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The character that `\c` stands for; 0 for others.
char Escaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case '\\':
    case '\'':
    case '"':
      return c;
    default:
      return 0;
  }
}

}  // namespace

std::string PythonRepr(std::string_view bytes) {
  const bool doubled = bytes.find('\'') != bytes.npos && bytes.find('"') == bytes.npos;
  const char quote = doubled ? '"' : '\'';
  std::string text(1, quote);
  text.reserve(bytes.size() + bytes.size() / 8 + 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      text += "\\n";
    } else if (c == '\t') {
      text += "\\t";
    } else if (c == '\r') {
      text += "\\r";
    } else if (c == '\\' || c == quote) {
      text += '\\';
      text += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      text += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      text += c;
    }
  }
  text += quote;
  return text;
}

std::optional<std::string> FromPythonRepr(std::string_view literal) {
  if (literal.size() < 2 || literal.front() != literal.back()) return std::nullopt;
  const char quote = literal.front();
  if (quote != '\'' && quote != '"') return std::nullopt;
  literal = literal.substr(1, literal.size() - 2);
  std::string bytes;
  bytes.reserve(literal.size());
  for (size_t i = 0; i < literal.size(); ++i) {
    if (literal[i] == quote) return std::nullopt;
    if (literal[i] != '\\') {
      bytes += literal[i];
      continue;
    }
    if (++i == literal.size()) return std::nullopt;
    if (literal[i] == 'x') {
      if (i + 2 >= literal.size()) return std::nullopt;
      const int high = HexDigit(literal[i + 1]);
      const int low = HexDigit(literal[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      bytes += static_cast<char>(high * 16 + low);
      i += 2;
    } else if (const char c = Escaped(literal[i])) {
      bytes += c;
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

}  // namespace npumesh
