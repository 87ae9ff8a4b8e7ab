// The verdicts.
#include <fmt/ranges.h>

#include <algorithm>

#include "launch/doctor/machine_facts.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
// Open MPI's own shared memory, which it uses between hosts and for separate programs.
constexpr uint64_t kShmForRank = 16 * kMiB;
constexpr uint64_t kMemoryForRank = 512 * kMiB;
constexpr uint64_t kAddressesForRank = 2048 * kMiB;
constexpr uint64_t kFilesForRank = 64;
constexpr uint64_t kLeastFiles = 256;
constexpr uint64_t kProcessesForRank = 32;

std::string Size(uint64_t bytes) {
  if (bytes >= 1024 * kMiB)
    return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / 1073741824.0);
  return fmt::format("{} MiB", bytes / kMiB);
}

std::string Count(uint64_t value) {
  return value > (uint64_t{1} << 62) ? "unlimited" : fmt::format("{}", value);
}

std::string Ranks(const MachineFacts& facts) {
  return fmt::format("{} rank{}", facts.ranks, facts.ranks == 1 ? "" : "s");
}

Finding JudgeMpi(const MachineFacts& facts) {
  const std::string seen = fmt::format("{}", facts.mpi_running);
  if (!facts.mpirun.ok()) {
    return {"MPI", Severity::kError, fmt::format("{}, but no mpirun in PATH", seen),
            "apt-get install openmpi-bin (launch/install_deps does)"};
  }
  // "Open MPI 4.1.4" was built with "Open MPI 4.1.4".
  if (facts.mpi_running.find(facts.mpi_built) == std::string::npos) {
    return {"MPI", Severity::kAdvice,
            fmt::format("{} runs, but npumesh was built with {}", seen, facts.mpi_built),
            "build again: cmake --preset release && cmake --build --preset release"};
  }
  return {"MPI", Severity::kInfo, seen, ""};
}

Finding JudgeAnonymousMemory(const MachineFacts& facts) {
  if (facts.anonymous_memory.ok()) {
    return {"device memory", Severity::kInfo, "anonymous memory can be made and mapped", ""};
  }
  return {"device memory", Severity::kError, std::string(facts.anonymous_memory.message()),
          "allow memfd_create in the container's seccomp profile, or raise its memory limit"};
}

Finding JudgeShm(const MachineFacts& facts) {
  if (!facts.shm_room) {
    return {"/dev/shm", Severity::kAdvice, "not there: Open MPI falls back to slower ways",
            "mount -t tmpfs -o size=1g tmpfs /dev/shm, or docker run --shm-size=1g"};
  }
  const uint64_t wanted = kShmForRank * static_cast<uint64_t>(facts.ranks);
  if (*facts.shm_room >= wanted) {
    return {"/dev/shm", Severity::kInfo, Size(*facts.shm_room) + " free", ""};
  }
  return {"/dev/shm", Severity::kAdvice,
          fmt::format("{} free, Open MPI may want {} for {}; npumesh itself needs none",
                      Size(*facts.shm_room), Size(wanted), Ranks(facts)),
          "docker run --shm-size=1g, or export OMPI_MCA_btl=self,tcp"};
}

Finding JudgeMemory(const MachineFacts& facts) {
  if (!facts.memory_free) {
    return {"memory", Severity::kAdvice, "the system does not say how much is free", ""};
  }
  const uint64_t wanted = kMemoryForRank * static_cast<uint64_t>(facts.ranks);
  if (*facts.memory_free >= wanted) {
    return {"memory", Severity::kInfo, Size(*facts.memory_free) + " available", ""};
  }
  return {"memory", Severity::kAdvice,
          fmt::format("{} available for {}", Size(*facts.memory_free), Ranks(facts)),
          "start fewer ranks, or give each less: export NPUMESH_HBM_SIZE=256M"};
}

// Under `ulimit -v` a rank reserves less, and may fail to map what its graph needs.
Finding JudgeAddresses(const MachineFacts& facts) {
  if (facts.addresses == ~uint64_t{0}) return {"addresses", Severity::kInfo, "unlimited", ""};
  const std::string seen = Size(facts.addresses) + " left (ulimit -v)";
  if (facts.addresses >= kAddressesForRank) return {"addresses", Severity::kInfo, seen, ""};
  return {"addresses", Severity::kAdvice, seen + ": a rank wants " + Size(kAddressesForRank),
          "ulimit -v unlimited, or export NPUMESH_HBM_SIZE=256M"};
}

Finding JudgePrograms(const MachineFacts& facts) {
  if (facts.missing.empty()) return {"programs", Severity::kInfo, "all there", ""};
  std::vector<std::string> texts;
  std::vector<std::string> packages;
  for (const MissingProgram& each : facts.missing) {
    texts.push_back(fmt::format("no {}, for {}", each.name, each.purpose));
    packages.push_back(each.package);
  }
  return {"programs", Severity::kAdvice, fmt::format("{}", fmt::join(texts, "; ")),
          fmt::format("apt-get install {}", fmt::join(packages, " "))};
}

Finding JudgeLeftovers(const MachineFacts& facts) {
  const size_t count = facts.leftovers.size();
  if (count == 0) return {"leftovers", Severity::kInfo, "none in shared memory", ""};
  return {
      "leftovers", Severity::kAdvice,
      fmt::format("{} thing{} of dead jobs in shared memory: {}{}", count, count == 1 ? "" : "s",
                  Printable(facts.leftovers[0]), count == 1 ? "" : ", ..."),
      "npumesh doctor --clean"};
}

Finding JudgeLimits(const MachineFacts& facts) {
  const auto ranks = static_cast<uint64_t>(facts.ranks);
  const uint64_t files = std::max(kLeastFiles, kFilesForRank * ranks);
  const std::string seen = fmt::format(
      "open files {}, processes {}, locked memory {}, core file {}", Count(facts.open_files),
      Count(facts.processes), Count(facts.locked_memory), Count(facts.core_file));
  if (facts.open_files < files) {
    return {"limits", Severity::kError,
            fmt::format("{} open files, {} want {}", facts.open_files, Ranks(facts), files),
            fmt::format("ulimit -n {}", files)};
  }
  if (facts.processes < kProcessesForRank * ranks) {
    return {"limits", Severity::kError,
            fmt::format("{} processes and threads, {} want {}", facts.processes, Ranks(facts),
                        kProcessesForRank * ranks),
            fmt::format("ulimit -u {}", kProcessesForRank * ranks)};
  }
  return {"limits", Severity::kInfo, seen, ""};
}

Finding JudgeTopology(const MachineFacts& facts) {
  if (!facts.topology.ok()) {
    return {"hwloc", Severity::kError, std::string(facts.topology.message()),
            "mount /sys into the container, or export NPUMESH_TOPOLOGY=\"numa:1 core:2 pu:1\""};
  }
  const std::string seen =
      fmt::format("{} core{}, {} NUMA node{}", facts.cores, facts.cores == 1 ? "" : "s",
                  facts.numa_nodes, facts.numa_nodes == 1 ? "" : "s");
  if (!facts.binding.ok()) {
    return {"hwloc", Severity::kAdvice,
            fmt::format("{}; binding is refused: {}", seen, facts.binding.message()),
            "npumesh run --bind none"};
  }
  if (facts.ranks > facts.cores) {
    return {"hwloc", Severity::kAdvice,
            fmt::format("{} for {}: they take turns", seen, Ranks(facts)),
            "none needed under npumesh launch; for mpirun by hand export "
            "OMPI_MCA_mpi_yield_when_idle=1"};
  }
  return {"hwloc", Severity::kInfo, seen, ""};
}

Finding JudgeUmask(const ProcessFacts& facts) {
  if (!facts.umask) return {"umask", Severity::kAdvice, "the system does not say", ""};
  const std::string seen = fmt::format("{:04o}", *facts.umask);
  if ((*facts.umask & kStrictUmask) == kStrictUmask) return {"umask", Severity::kInfo, seen, ""};
  return {"umask", Severity::kAdvice, fmt::format("{}, looser than {:04o}", seen, kStrictUmask),
          fmt::format("umask {:04o}", kStrictUmask)};
}

Finding JudgeAslr(const ProcessFacts& facts) {
  if (!facts.aslr) return {"ASLR", Severity::kAdvice, "the system does not say", ""};
  const std::string seen = fmt::format("level {}", *facts.aslr);
  if (*facts.aslr == kFullAslr) return {"ASLR", Severity::kInfo, seen, ""};
  return {"ASLR", Severity::kAdvice,
          fmt::format("{}: addresses of the process can be guessed", seen),
          "echo 2 > /proc/sys/kernel/randomize_va_space"};
}

Finding JudgeRoot(const ProcessFacts& facts) {
  if (!facts.root) return {"account", Severity::kInfo, "not root", ""};
  return {"account", Severity::kAdvice, "root: a mistake can reach everything on this machine",
          "run as an ordinary user, in a container with --user"};
}

Finding JudgePtrace(const MachineFacts& facts) {
  if (!facts.ptrace_scope || *facts.ptrace_scope == 0 || facts.process.root) {
    return {"debugger", Severity::kInfo, "may attach to ranks", ""};
  }
  return {
      "debugger", Severity::kAdvice,
      fmt::format("cannot attach to ranks: kernel.yama.ptrace_scope is {}", *facts.ptrace_scope),
      "sysctl kernel.yama.ptrace_scope=0, while a hang is looked into"};
}

}  // namespace

std::vector<Finding> Judge(const MachineFacts& facts) {
  return {JudgeMpi(facts),           JudgeAnonymousMemory(facts), JudgeShm(facts),
          JudgeMemory(facts),        JudgeAddresses(facts),       JudgeLimits(facts),
          JudgePrograms(facts),      JudgeLeftovers(facts),       JudgeTopology(facts),
          JudgeUmask(facts.process), JudgeAslr(facts.process),    JudgeRoot(facts.process),
          JudgePtrace(facts)};
}

}  // namespace npumesh
