#include "launch/doctor/machine_facts.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include "launch/mpirun/mpirun_plan.h"
#include "launch/mpirun/segment_folder.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/files/system_error.h"
#include "runtime/base/text/parse.h"
#include "runtime/device/host_memory.h"
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

std::optional<uint64_t> FreeMemory() {
  const uint64_t bytes = AvailableMemory();
  return bytes == ~uint64_t{0} ? std::nullopt : std::optional(bytes);
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

Status Find(const char* program, const char* package) {
  const char* folders = secure_getenv("PATH");
  return FindProgram(program, folders == nullptr ? "" : folders, package).status();
}

// Programs without which only some commands do not work.
std::vector<MissingProgram> MissingPrograms() {
  const MissingProgram wanted[] = {
      {"ssh", "npumesh launch --hosts", "openssh-client"},
      {"c++", "static kernels (docs/static_kernels.md)", "g++"},
      {"python3", "npumesh python and scripts under launch", "python3"},
      {"objdump", "the machine code of npumesh kernels show", "binutils"},
  };
  std::vector<MissingProgram> missing;
  for (const MissingProgram& each : wanted) {
    if (!Find(each.name.c_str(), each.package.c_str()).ok()) missing.push_back(each);
  }
  return missing;
}

std::vector<std::string> LeftInSharedMemory() {
  std::vector<std::string> left = DeadFolders(SegmentBases());
  const std::vector<std::string> segments = DeadSegments(SegmentBases().front());
  left.insert(left.end(), segments.begin(), segments.end());
  return left;
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
  facts.mpirun = Find("mpirun", "openmpi-bin");
  facts.anonymous_memory = TryAnonymousMemory();
  facts.shm_room = RoomOf("/dev/shm");
  facts.memory_free = FreeMemory();
  facts.addresses = AvailableAddresses(Limit(RLIMIT_AS));
  facts.missing = MissingPrograms();
  facts.leftovers = LeftInSharedMemory();
  facts.open_files = Limit(RLIMIT_NOFILE);
  facts.processes = Limit(RLIMIT_NPROC);
  facts.locked_memory = Limit(RLIMIT_MEMLOCK);
  facts.core_file = Limit(RLIMIT_CORE);
  facts.ptrace_scope = PtraceScope();
  LookAtTopology(facts);
  return facts;
}

}  // namespace npumesh
