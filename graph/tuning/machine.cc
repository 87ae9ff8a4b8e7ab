#include "graph/tuning/machine.h"

#include "graph/static_kernel/store/instruction_set.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/strings.h"

namespace npumesh {

std::string ModelNameIn(std::string_view cpuinfo) {
  for (const std::string_view line : Split(cpuinfo, "\n")) {
    const size_t colon = line.find(':');
    if (!line.starts_with("model name") || colon == std::string_view::npos) continue;
    const size_t first = line.find_first_not_of(" \t", colon + 1);
    return first == std::string_view::npos ? std::string() : std::string(line.substr(first));
  }
  return "";
}

TuningMachine TuningMachine::Here() {
  constexpr uint64_t kMostBytes = uint64_t{1} << 26;
  const auto text = ReadFile("/proc/cpuinfo", kMostBytes);
  return {std::string(NameOf(InstructionsHere())), text.ok() ? ModelNameIn(*text) : std::string()};
}

}  // namespace npumesh
