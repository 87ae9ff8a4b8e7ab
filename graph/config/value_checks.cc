#include "graph/config/value_checks.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cstring>
#include <functional>
#include <limits>
#include <string_view>

#include "graph/config/mix_list.h"
#include "graph/config/system_options.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

constexpr int64_t kMaxInt = std::numeric_limits<int64_t>::max();

bool IsNumber(std::string_view text) {
  return ParseInt(text, 0, kMaxInt, "").ok();
}

// Applies `objection` to each part of `text`; an empty text has one empty part.
std::string FirstObjection(std::string_view text, std::string_view separators,
                           const std::function<std::string(std::string_view)>& objection) {
  for (;;) {
    const size_t end = std::min(text.find_first_of(separators), text.size());
    if (std::string found = objection(text.substr(0, end)); !found.empty()) return found;
    if (end == text.size()) return "";
    text.remove_prefix(end + 1);
  }
}

bool FitsPathCharacters(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::isspace(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("./_-~").find(c) != std::string_view::npos;
}

std::string ObjectionToStep(std::string_view part) {
  const size_t dash = part.find('-');
  if (dash == part.npos) {
    return IsNumber(part) ? "" : fmt::format("\"{}\" is neither a step nor a range", part);
  }
  const auto first = ParseInt(part.substr(0, dash), 0, kMaxInt, "");
  const auto last = ParseInt(part.substr(dash + 1), 0, kMaxInt, "");
  if (!first.ok() || !last.ok()) {
    return fmt::format("\"{}\" is neither a step nor a range", part);
  }
  return *first < *last ? "" : fmt::format("range \"{}\" does not go upwards", part);
}

}  // namespace

std::string ObjectionToPath(const std::string& path) {
  constexpr size_t kLongestPath = 4096;
  static constexpr size_t kLongestPart = 255;
  if (path.empty()) return "empty";
  if (path.size() > kLongestPath) return fmt::format("longer than {} characters", kLongestPath);
  for (const char c : path) {
    if (!FitsPathCharacters(c)) {
      return "a path holds only letters, digits, blanks and ./_-~";
    }
  }
  std::string objection = FirstObjection(path, "/", [](std::string_view part) -> std::string {
    if (part.size() <= kLongestPart) return "";
    return fmt::format("a part is longer than {} characters", kLongestPart);
  });
  if (!objection.empty()) return objection;
  struct stat info;
  const bool link = lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
  return link ? "a symbolic link; name its target instead" : "";
}

std::string ObjectionToFolder(const std::string& path) {
  if (std::string objection = ObjectionToPath(path); !objection.empty()) return objection;
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return fmt::format("{}; make it with mkdir -p", std::strerror(errno));
  }
  if (!S_ISDIR(info.st_mode)) return "not a folder";
  if (access(path.c_str(), R_OK | W_OK | X_OK) != 0) return "not readable and writable";
  return "";
}

std::string ObjectionToFile(const std::string& path) {
  if (std::string objection = ObjectionToPath(path); !objection.empty()) return objection;
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return std::strerror(errno);
  if (!S_ISREG(info.st_mode)) return "not a file";
  return access(path.c_str(), R_OK) == 0 ? "" : "not readable";
}

std::string ObjectionToJsonFile(const std::string& path) {
  if (!path.ends_with(".json")) return "not a .json file";
  return ObjectionToFile(path);
}

std::string ObjectionToSteps(const std::string& text) {
  constexpr int kMostSets = 100;
  if (text.empty()) return "";
  int sets = 0;
  std::string objection = FirstObjection(text, "|", [&](std::string_view part) {
    ++sets;
    return ObjectionToStep(part);
  });
  if (!objection.empty()) return objection;
  return sets <= kMostSets ? "" : fmt::format("{} steps or ranges, at most {}", sets, kMostSets);
}

std::string ObjectionToLayers(const std::string& text) {
  for (const char c : text) {
    const bool fits = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                      std::string_view("_\" /\\.").find(c) != std::string_view::npos;
    if (!fits) return fmt::format("'{}' is in no operator name; put blanks between names", c);
  }
  return "";
}

std::string ObjectionToCores(const std::string& text) {
  const size_t bar = text.find('|');
  const auto counts = [](std::string_view part) { return ParseInt(part, 1, 65535, "").ok(); };
  if (!counts(std::string_view(text).substr(0, bar))) return "no count of cube cores";
  if (bar == text.npos || bar + 1 == text.size()) return "";
  return counts(std::string_view(text).substr(bar + 1)) ? "" : "no count of vector cores";
}

std::string ObjectionToSwitches(const std::string& text) {
  return FirstObjection(text, ";", [](std::string_view part) -> std::string {
    const size_t colon = part.rfind(':');
    const std::string_view state = colon == part.npos ? "" : part.substr(colon + 1);
    if (colon != 0 && (state == "on" || state == "off")) return "";
    return fmt::format("\"{}\" is no Pass:on or Pass:off", part);
  });
}

std::string ObjectionToTuneModes(const std::string& text) {
  return FirstObjection(text, ",|", [](std::string_view part) -> std::string {
    if (part == "RL" || part == "GA") return "";
    return fmt::format("\"{}\" is neither RL nor GA", part);
  });
}

std::string ObjectionToProfiling(const std::string& text) {
  return std::string(ParseProfilingOptions(text).status().message());
}

std::string ObjectionToMixList(const std::string& path) {
  if (std::string objection = ObjectionToJsonFile(path); !objection.empty()) return objection;
  return std::string(ReadMixList(path).status().message());
}

std::string ObjectionToImplTypes(const std::string& text) {
  return FirstObjection(text, ",", [](std::string_view part) -> std::string {
    return part == "Pooling" ? "" : fmt::format("\"{}\" is not Pooling", part);
  });
}

std::string ObjectionToNoText(const std::string& text) {
  return text.empty() ? "empty" : "";
}

std::string ObjectionToOpsLimit(int64_t value) {
  return value == 0 || value == 1 ? "0 and 1 would leave nothing static" : "";
}

}  // namespace npumesh
