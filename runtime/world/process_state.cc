#include "runtime/world/process_state.h"

#include <fmt/format.h>

#include "runtime/base/secure_file.h"

namespace npumesh {

// The name before the letter may hold anything but ends with the last parenthesis.
char ProcessState(int process) {
  constexpr uint64_t kMostBytes = 4096;
  const auto stat = ReadFile(fmt::format("/proc/{}/stat", process), kMostBytes);
  if (!stat.ok()) return 0;
  const size_t end = stat->rfind(") ");
  return end == std::string::npos || end + 2 >= stat->size() ? 0 : (*stat)[end + 2];
}

}  // namespace npumesh
