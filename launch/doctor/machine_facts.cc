#include "launch/doctor/machine_facts.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/base/parse.h"
#include "runtime/base/secure_file.h"
#include "runtime/base/system_error.h"
#include "runtime/world/topology.h"

namespace npumesh {
namespace {

constexpr uint64_t kProbe = uint64_t{1} << 20;

// A megabyte of it, written to.
Status TryAnonymousMemory() {
  const int fd = memfd_create("npumesh_doctor", MFD_CLOEXEC);
  if (fd < 0) return SystemError("create", "anonymous memory", errno);
  Status status;
  if (ftruncate(fd, static_cast<off_t>(kProbe)) != 0) {
    status = SystemError("size", "anonymous memory", errno);
  } else {
    void* mapped = mmap(nullptr, kProbe, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
      status = SystemError("map", "anonymous memory", errno);
    } else {
      *static_cast<volatile char*>(mapped) = 1;
      munmap(mapped, kProbe);
    }
  }
  close(fd);
  return status;
}

std::optional<uint64_t> RoomOf(const char* folder) {
  struct statvfs info;
  if (statvfs(folder, &info) != 0) return std::nullopt;
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

// MemAvailable of /proc/meminfo.
std::optional<uint64_t> FreeMemory() {
  constexpr std::string_view kKey = "MemAvailable:";
  const Result<std::string> text = ReadFile("/proc/meminfo");
  if (!text.ok()) return std::nullopt;
  const size_t at = text->find(kKey);
  if (at == std::string::npos) return std::nullopt;
  const size_t first = text->find_first_not_of(' ', at + kKey.size());
  const size_t last = text->find(' ', first);
  if (first == std::string::npos || last == std::string::npos) return std::nullopt;
  const Result<uint64_t> kib = ParseBytes(text->substr(first, last - first) + "K", "MemAvailable");
  return kib.ok() ? std::optional(*kib) : std::nullopt;
}

std::optional<int> PtraceScope() {
  const Result<std::string> text = ReadFile("/proc/sys/kernel/yama/ptrace_scope");
  if (!text.ok()) return std::nullopt;
  const Result<int64_t> scope = ParseInt(text->substr(0, text->find('\n')), 0, 3, "ptrace_scope");
  return scope.ok() ? std::optional(static_cast<int>(*scope)) : std::nullopt;
}

// Soft limit; RLIM_INFINITY is the greatest number anyway.
template <typename Resource>
uint64_t Limit(Resource resource) {
  struct rlimit limit;
  return getrlimit(resource, &limit) == 0 ? limit.rlim_cur : 0;
}

Status FindMpirun() {
  const char* folders = secure_getenv("PATH");
  std::string_view rest = folders == nullptr ? "" : folders;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string path = std::string(rest.substr(0, end)) + "/mpirun";
    if (access(path.c_str(), X_OK) == 0) return Status();
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return Error(Code::kNotFound, "no mpirun in PATH");
}

void LookAtTopology(MachineFacts& facts) {
  const Result<Topology> topology = Topology::Detect();
  facts.topology = topology.status();
  if (!topology.ok()) return;
  facts.cores = topology->core_count();
  facts.numa_nodes = static_cast<int>(topology->numa_nodes().size());
  std::vector<int> cpus;
  for (const NumaNode& node : topology->numa_nodes()) {
    cpus.insert(cpus.end(), node.cpus.begin(), node.cpus.end());
  }
  facts.binding = BindThread(cpus);  // to where it may run anyway
}

}  // namespace

MachineFacts LookAtMachine(int ranks, std::string mpi_built, std::string mpi_running) {
  MachineFacts facts;
  facts.process = LookAtProcess();
  facts.ranks = ranks;
  facts.mpi_built = std::move(mpi_built);
  facts.mpi_running = std::move(mpi_running);
  facts.mpirun = FindMpirun();
  facts.anonymous_memory = TryAnonymousMemory();
  facts.shm_room = RoomOf("/dev/shm");
  facts.memory_free = FreeMemory();
  facts.open_files = Limit(RLIMIT_NOFILE);
  facts.processes = Limit(RLIMIT_NPROC);
  facts.locked_memory = Limit(RLIMIT_MEMLOCK);
  facts.core_file = Limit(RLIMIT_CORE);
  facts.ptrace_scope = PtraceScope();
  LookAtTopology(facts);
  return facts;
}

}  // namespace npumesh
