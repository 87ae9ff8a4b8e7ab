// What the doctor examines on one host. Taking the facts and judging them are apart, so that every
// verdict can be tested.
#ifndef NPUMESH_LAUNCH_DOCTOR_MACHINE_FACTS_H_
#define NPUMESH_LAUNCH_DOCTOR_MACHINE_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/doctor/host_report.h"
#include "runtime/base/process/process_safety.h"
#include "runtime/base/status.h"

namespace npumesh {

struct MissingProgram {
  std::string name;     // "ssh"
  std::string purpose;  // what does not work without it
  std::string package;  // of Debian
};

struct MachineFacts {
  ProcessFacts process;
  int ranks = 1;  // of this job on this host

  // MPI: the library that the program was built with, and what runs.
  std::string mpi_built;
  std::string mpi_running;
  Status mpirun;  // whether mpirun is in PATH

  // Bytes: what a rank's HBM can be, room of /dev/shm (Open MPI's own transport), memory.
  Status anonymous_memory;  // whether memfd_create and mapping it work
  std::optional<uint64_t> shm_room;
  std::optional<uint64_t> memory_free;  // below the limits of control groups, too
  uint64_t addresses = ~uint64_t{0};    // of address space that is left (ulimit -v)

  // Limits of this process; the greatest number stands for none.
  uint64_t open_files = 0;
  uint64_t processes = 0;
  uint64_t locked_memory = 0;
  uint64_t core_file = 0;

  Status topology;  // whether hwloc could read the machine
  int cores = 0;
  int numa_nodes = 0;
  Status binding;  // whether a thread may be bound

  // Programs that some commands start and that are not in PATH.
  std::vector<MissingProgram> missing;

  // What dead jobs of this user have left in shared memory.
  std::vector<std::string> leftovers;

  // kernel.yama.ptrace_scope; none: no such switch.
  std::optional<int> ptrace_scope;
};

// Examines this host. Blocks for milliseconds.
MachineFacts LookAtMachine(int ranks, std::string mpi_built, std::string mpi_running);

std::vector<Finding> Judge(const MachineFacts& facts);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DOCTOR_MACHINE_FACTS_H_
