#include "runtime/device/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

// File names of one version of the memory controller.
struct Controller {
  std::string_view mount;
  std::string_view limit;
  std::string_view usage;
  std::string_view cached;  // key in memory.stat
};
constexpr Controller kVersion2{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
constexpr Controller kVersion1{"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                               "memory.usage_in_bytes", "total_inactive_file"};

// The decimal number that `text` starts with; nullopt for words ("max").
std::optional<uint64_t> LeadingNumber(std::string_view text) {
  const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
  const auto number = ParseInt(digits, 0, std::numeric_limits<int64_t>::max(), "number");
  if (!number.ok()) return std::nullopt;
  return static_cast<uint64_t>(*number);
}

std::optional<uint64_t> NumberIn(const std::string& path) {
  const auto content = ReadFile(path, 4096);
  return content.ok() ? LeadingNumber(*content) : std::nullopt;
}

// Value of the line "<key><blanks><number>..." of a file.
std::optional<uint64_t> NumberAfter(const std::string& path, std::string_view key) {
  const auto content = ReadFile(path, uint64_t{1} << 20);
  if (!content.ok()) return std::nullopt;
  for (std::string_view line : Split(*content, "\n")) {
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    if (!line.starts_with(' ')) continue;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    return LeadingNumber(line);
  }
  return std::nullopt;
}

// What is left below the limit of one group.
uint64_t LeftIn(const std::string& folder, const Controller& controller) {
  const auto file = [&](std::string_view name) { return fmt::format("{}/{}", folder, name); };
  const auto limit = NumberIn(file(controller.limit));
  if (!limit) return kNoLimit;
  const uint64_t usage = NumberIn(file(controller.usage)).value_or(0);
  const uint64_t cached = NumberAfter(file("memory.stat"), controller.cached).value_or(0);
  const uint64_t taken = usage - std::min(usage, cached);
  return *limit - std::min(*limit, taken);
}

// The least that is left in `group` or in a group around it. Inside a container the group's path
// may be the one that the host sees; then only the mount itself, the container's own group, exists.
uint64_t LeftAround(const std::string& root, std::string_view group, const Controller& controller) {
  uint64_t left = kNoLimit;
  for (;;) {
    left = std::min(left, LeftIn(fmt::format("{}{}{}", root, controller.mount, group), controller));
    if (group.empty() || group == "/") return left;
    group = group.substr(0, group.rfind('/'));
  }
}

uint64_t LeftInGroups(const std::string& root) {
  const auto content = ReadFile(root + "/proc/self/cgroup", uint64_t{1} << 20);
  if (!content.ok()) return kNoLimit;
  uint64_t left = kNoLimit;
  for (const std::string_view line : Split(*content, "\n")) {
    // "<hierarchy>:<controllers>:<path>"; the path may contain colons.
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const auto controllers = Split(line.substr(first + 1, second - first - 1), ",");
    const std::string_view group = line.substr(second + 1);
    if (controllers.front().empty()) {
      left = std::min(left, LeftAround(root, group, kVersion2));
    } else if (std::count(controllers.begin(), controllers.end(), "memory") != 0) {
      left = std::min(left, LeftAround(root, group, kVersion1));
    }
  }
  return left;
}

}  // namespace

uint64_t AvailableMemory(const std::string& root) {
  const auto kilobytes = NumberAfter(root + "/proc/meminfo", "MemAvailable:");
  return std::min(kilobytes ? *kilobytes << 10 : kNoLimit, LeftInGroups(root));
}

uint64_t AvailableAddresses(uint64_t limit, const std::string& root) {
  if (limit == kNoLimit) return kNoLimit;
  const uint64_t pages = NumberIn(root + "/proc/self/statm").value_or(0);
  return limit - std::min(limit, pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
}

}  // namespace npumesh
