#include "graph/static_kernel/store/instruction_set.h"

#include <algorithm>
#include <array>

#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

// A level has what stands beside it and what the levels before it have. Names of /proc/cpuinfo:
// "pni" is SSE3, "abm" is LZCNT.
struct Level {
  InstructionSet set;
  std::string_view name;
  std::string_view adds;
};
constexpr std::array kLevels = {
    Level{InstructionSet::kBaseline, "baseline", ""},
    Level{InstructionSet::kX86V2, "x86-64-v2", "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"},
    Level{InstructionSet::kX86V3, "x86-64-v3", "xsave avx avx2 bmi1 bmi2 f16c fma abm movbe"},
    Level{InstructionSet::kX86V4, "x86-64-v4", "avx512f avx512bw avx512cd avx512dq avx512vl"},
};

// The words of the first line that begins with "flags"; none on other processors than x86.
std::vector<std::string_view> FlagsIn(std::string_view cpuinfo) {
  for (const std::string_view line : Split(cpuinfo, "\n")) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || Split(line.substr(0, colon), " \t")[0] != "flags")
      continue;
    return Split(line.substr(colon + 1), " \t");
  }
  return {};
}

std::string CpuInfo() {
  constexpr uint64_t kMostBytes = uint64_t{1} << 26;
  auto text = ReadFile("/proc/cpuinfo", kMostBytes);
  return text.ok() ? *std::move(text) : std::string();
}

}  // namespace

std::string_view NameOf(InstructionSet set) {
  return kLevels[static_cast<size_t>(set)].name;
}

std::optional<InstructionSet> InstructionSetNamed(std::string_view name) {
  for (const Level& level : kLevels) {
    if (level.name == name) return level.set;
  }
  return std::nullopt;
}

std::vector<std::string_view> FlagsOf(InstructionSet set) {
  std::vector<std::string_view> flags;
  for (const Level& level : kLevels) {
    if (level.set > set || level.adds.empty()) continue;
    const std::vector<std::string_view> added = Split(level.adds, " ");
    flags.insert(flags.end(), added.begin(), added.end());
  }
  return flags;
}

std::vector<std::string> CompilerFlags(InstructionSet set) {
  if (set == InstructionSet::kBaseline) return {};
  return {"-march=" + std::string(NameOf(set))};
}

std::string MissingFor(InstructionSet set, std::string_view cpuinfo) {
  const std::vector<std::string_view> here = FlagsIn(cpuinfo);
  std::string missing;
  for (const std::string_view flag : FlagsOf(set)) {
    if (std::find(here.begin(), here.end(), flag) != here.end()) continue;
    if (!missing.empty()) missing += ' ';
    missing += flag;
  }
  return missing;
}

InstructionSet InstructionsOf(std::string_view cpuinfo) {
  InstructionSet best = InstructionSet::kBaseline;
  for (const Level& level : kLevels) {
    if (MissingFor(level.set, cpuinfo).empty()) best = level.set;
  }
  return best;
}

InstructionSet InstructionsHere() {
  return InstructionsOf(CpuInfo());
}

std::string MissingFor(InstructionSet set) {
  return MissingFor(set, CpuInfo());
}

}  // namespace npumesh
