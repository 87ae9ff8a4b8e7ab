#include "launch/ranks/warnings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/base/files/system_call.h"

namespace npumesh {

std::string PackWarnings(const Warnings& warnings) {
  std::string text;
  for (std::string line : warnings) {
    std::replace(line.begin(), line.end(), '\n', ' ');
    text += line + "\n";
  }
  return text;
}

Warnings MergeWarnings(const std::vector<std::string>& packed) {
  Warnings merged;
  for (const std::string& text : packed) {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      std::string line = text.substr(begin, end - begin);
      begin = end + 1;
      if (std::find(merged.begin(), merged.end(), line) == merged.end()) {
        merged.push_back(std::move(line));
      }
    }
  }
  return merged;
}

void PrintWarnings(std::string_view command, const Warnings& warnings) {
  for (const std::string& warning : warnings) {
    // One write, so that the lines of several processes never interleave.
    const std::string line = fmt::format("npumesh {}: warning: {}\n", command, warning);
    static_cast<void>(WriteAll(STDERR_FILENO, line));
  }
}

}  // namespace npumesh
