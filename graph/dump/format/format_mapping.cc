#include "graph/dump/format/format_mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

constexpr uint64_t kMaxMappingBytes = uint64_t{1} << 30;

std::string Join(const std::string& folder, std::string_view name) {
  return fmt::format("{}/{}", folder, name);
}

bool IsDigits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string StorableName(const std::string& folder, const std::string& name) {
  if (name.size() <= kMaxNameBytes) return name;
  return fmt::format("{}", std::hash<std::string>()(Join(folder, name)));
}

Status AddMapping(const std::string& folder, const std::string& stored, const std::string& name,
                  FileSystem& fs) {
  return AppendToFile(Join(folder, kMappingFile), fmt::format("{},{}\n", stored, name),
                      FileKind::kDataDump, fs);
}

Result<std::map<std::string, std::string>> ReadMapping(const std::string& folder) {
  std::map<std::string, std::string> mapping;
  const Result<std::string> text = ReadFile(Join(folder, kMappingFile), kMaxMappingBytes);
  if (!text.ok()) {
    if (text.status().code() == Code::kNotFound) return mapping;
    return text.status();
  }
  for (std::string_view rest = *text; !rest.empty();) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    const size_t comma = line.find(',');
    if (comma == std::string_view::npos || !IsDigits(line.substr(0, comma))) continue;
    mapping[std::string(line.substr(0, comma))] = line.substr(comma + 1);
  }
  return mapping;
}

}  // namespace npumesh
