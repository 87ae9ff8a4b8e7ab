#include "launch/record/foreign/lines.h"

#include <algorithm>

#include "runtime/base/text/fnv.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

}  // namespace

bool Lines::Next(std::string_view& line) {
  if (rest_.empty()) return false;
  const size_t end = std::min(rest_.find('\n'), rest_.size());
  line = rest_.substr(0, std::min(end, kMostLineBytes));
  rest_.remove_prefix(std::min(rest_.size(), end + 1));
  while (!line.empty() && IsBlank(line.back())) line.remove_suffix(1);
  while (!line.empty() && IsBlank(line.front())) line.remove_prefix(1);
  return true;
}

std::optional<std::vector<std::string_view>> PartsOf(std::string_view line,
                                                     std::string_view pattern) {
  std::vector<std::string_view> parts;
  size_t hole = pattern.find("{}");
  if (line.substr(0, std::min(hole, pattern.size())) != pattern.substr(0, hole)) {
    return std::nullopt;
  }
  if (hole == pattern.npos) {
    if (line.size() != pattern.size()) return std::nullopt;
    return parts;
  }
  line.remove_prefix(hole);
  while (true) {
    pattern.remove_prefix(hole + 2);
    hole = pattern.find("{}");
    const std::string_view behind = pattern.substr(0, hole);
    if (hole == pattern.npos) {  // the last part, and what the line must end with
      if (!line.ends_with(behind)) return std::nullopt;
      parts.push_back(line.substr(0, line.size() - behind.size()));
      return parts;
    }
    const size_t end = line.find(behind);
    if (end == line.npos) return std::nullopt;
    parts.push_back(line.substr(0, end));
    line.remove_prefix(end + behind.size());
  }
}

std::string_view InBrackets(std::string_view line, std::string_view name) {
  for (size_t at = line.find(name); at != line.npos; at = line.find(name, at + 1)) {
    size_t open = at + name.size();
    if (open < line.size() && line[open] == ':') ++open;
    while (open < line.size() && line[open] == ' ') ++open;
    if (open >= line.size() || line[open] != '[') continue;
    int depth = 0;
    for (size_t end = open; end < line.size(); ++end) {
      depth += line[end] == '[' ? 1 : line[end] == ']' ? -1 : 0;
      if (depth == 0) return line.substr(open + 1, end - open - 1);
    }
    return {};
  }
  return {};
}

std::optional<uint64_t> NumberIn(std::string_view text, uint64_t most) {
  const Result<int64_t> number = ParseInt(text, 0, static_cast<int64_t>(most), "number");
  if (!number.ok()) return std::nullopt;
  return static_cast<uint64_t>(*number);
}

uint64_t IdOfName(std::string_view name) {
  const uint64_t hash = Fnv1a(name);
  return hash == 0 ? 1 : hash;
}

}  // namespace npumesh
