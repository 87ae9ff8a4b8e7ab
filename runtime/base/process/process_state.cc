#include "runtime/base/process/process_state.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cinttypes>
#include <cstdio>
#include <limits>
#include <optional>

#include "runtime/base/files/folder_reader.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

// The fields of /proc/<process>/stat that are asked for here (proc(5)).
struct Stat {
  char state = 0;
  int parent = 0;
  uint64_t start = 0;
};

// The name before the letter may hold anything but ends with the last parenthesis.
std::optional<Stat> StatOf(int process) {
  constexpr uint64_t kMostBytes = 4096;
  const auto text = ReadFile(fmt::format("/proc/{}/stat", process), kMostBytes);
  if (!text.ok()) return std::nullopt;
  const size_t end = text->rfind(") ");
  Stat stat;
  if (end == std::string::npos ||
      std::sscanf(text->c_str() + end,
                  ") %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                  "%" SCNu64,
                  &stat.state, &stat.parent, &stat.start) != 3) {
    return std::nullopt;
  }
  return stat;
}

}  // namespace

char ProcessState(int process) {
  const std::optional<Stat> stat = StatOf(process);
  return stat ? stat->state : '\0';
}

uint64_t ProcessStart(int process) {
  const std::optional<Stat> stat = StatOf(process);
  return stat ? stat->start : 0;
}

int ProcessParent(int process) {
  const std::optional<Stat> stat = StatOf(process);
  return stat ? stat->parent : 0;
}

uint64_t ProcessSpace() {
  struct stat info;
  return stat("/proc/self/ns/pid", &info) == 0 ? static_cast<uint64_t>(info.st_ino) : 0;
}

// Not by /proc/<process>/task/*/children, which many kernels are built without.
bool HasOnlyEndedChildren(int process) {
  bool ended = false;
  FolderReader processes("/proc");
  while (const char* const name = processes.Next()) {
    const auto other = ParseInt(name, 1, std::numeric_limits<int>::max(), "process");
    if (!other.ok()) continue;
    const std::optional<Stat> stat = StatOf(static_cast<int>(*other));
    if (!stat || stat->parent != process) continue;
    if (stat->state != 'Z') return false;
    ended = true;
  }
  return ended && processes.error() == 0;
}

}  // namespace npumesh
