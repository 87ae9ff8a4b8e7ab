#include "graph/export/checksums.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>

namespace npumesh {
namespace {

constexpr size_t kDigits = 64;

// A name with a backslash has it doubled, and a backslash before the line says so.
std::string Line(const std::string& name, const std::string& digest) {
  if (name.find('\\') == name.npos) return fmt::format("{}  {}\n", digest, name);
  std::string escaped;
  for (const char c : name) escaped += c == '\\' ? "\\\\" : std::string(1, c);
  return fmt::format("\\{}  {}\n", digest, escaped);
}

std::string Unescaped(const std::string& name) {
  std::string plain;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '\\' && i + 1 < name.size()) ++i;
    plain += name[i];
  }
  return plain;
}

bool IsDigest(const std::string& text) {
  return text.size() == kDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool StaysInside(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(name).lexically_normal();
  return !path.empty() && path.is_relative() && path.has_filename() && *path.begin() != "." &&
         *path.begin() != "..";
}

// Name and digest; nullopt: this is no such line. After the digest stand a blank, and a blank or a
// star, which tells text from binary where that is a difference.
std::optional<std::pair<std::string, std::string>> ParseLine(std::string line) {
  const bool escaped = !line.empty() && line[0] == '\\';
  if (escaped) line.erase(0, 1);
  if (line.size() <= kDigits + 2 || line[kDigits] != ' ') return std::nullopt;
  if (line[kDigits + 1] != ' ' && line[kDigits + 1] != '*') return std::nullopt;
  std::string digest = line.substr(0, kDigits);
  std::string name = line.substr(kDigits + 2);
  if (!IsDigest(digest)) return std::nullopt;
  return std::pair(escaped ? Unescaped(name) : std::move(name), std::move(digest));
}

}  // namespace

std::string ChecksumsText(const Checksums& checksums) {
  std::string text;
  for (const auto& [name, digest] : checksums) text += Line(name, digest);
  return text;
}

Result<Checksums> ParseChecksums(const std::string& text) {
  Checksums checksums;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const auto entry = ParseLine(line);
    if (!entry) {
      return Error(Code::kCorrupt,
                   "line {} is not a SHA-256 of 64 digits, two blanks and a file name", number);
    }
    if (!StaysInside(entry->first)) {
      return Error(Code::kCorrupt, "line {}: \"{}\" is no file of the package", number,
                   entry->first);
    }
    if (checksums.insert(*entry).second) continue;
    return Error(Code::kCorrupt, "line {}: \"{}\" comes twice", number, entry->first);
  }
  return checksums;
}

}  // namespace npumesh
