// Env: the environment variables of runtime and collectives, read once and passed as a value.
//
// Our own variables start with NPUMESH_; those of the vendor's stack (HCCL_*, TNG_LOG_LEVEL) and of
// launchers (LOCAL_WORLD_SIZE, RANK, WORLD_SIZE) keep their names. Every value is parsed strictly:
// a typing error is an error that names variable, text and accepted range, never silently a value.
// Upper floors have structs and tables like these; `npumesh doctor --env` and docs/env.md print all
// of them.
//
// Thread-safety: an Env is immutable after construction.
#ifndef NPUMESH_RUNTIME_BASE_ENV_ENV_H_
#define NPUMESH_RUNTIME_BASE_ENV_ENV_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/env/env_table.h"
#include "runtime/base/status.h"

namespace npumesh {

// The variables of Env, in the order of the manual; those that launchers set stand apart, because
// the manual has those of upper floors before them.
std::span<const EnvVariable> EnvTable();
std::span<const EnvVariable> LauncherEnvTable();

// Seconds HCCL_EXEC_TIMEOUT uses for "wait without limit".
inline constexpr std::chrono::seconds kNoTimeout{0};

// Defaults stand in EnvTable alone: the fields that are {} here take the fallback of their row.
struct Env {
  // As in a process that has set none of the variables.
  Env();

  // NPUMESH_HBM_SIZE: device memory of a rank in bytes; unset: the SoC's size, cut to this rank's
  // share of the memory that is really there.
  std::optional<uint64_t> hbm_bytes;
  // NPUMESH_NUM_THREADS: threads of one rank's kernels; 0: cores bound to the rank.
  int num_threads = 0;
  // NPUMESH_TOPOLOGY: hwloc synthetic description instead of the real machine ("numa:2 core:4
  // pu:1").
  std::string topology;
  // NPUMESH_SOFT_TIMEOUT: seconds after which a waiter says whom it waits for.
  std::chrono::seconds soft_timeout{};
  // NPUMESH_DEADLOCK: what a wait does that certainly never ends.
  enum class Deadlock : uint8_t { kFail, kWait };
  Deadlock deadlock{};
  // NPUMESH_TRACE: print why each algorithm or kernel was taken or refused, and why a pattern was
  // not fused.
  bool trace{};
  // NPUMESH_DEVICE_COUNT: devices of this process, each a rank that threads drive, without MPI;
  // unset: the launcher's rank, or one device.
  std::optional<int> device_count;
  // NPUMESH_GUARD: checks of programs of the C interface that cost time and memory.
  bool guard{};
  // NPUMESH_RECORD: folder for the flight record of each rank; empty: none is written.
  std::string record;
  // HCCL_ALGO: picks algorithms by name; empty: the first that does not refuse.
  std::string hccl_algo;
  // NPUMESH_ALGORITHM_LIBRARY: shared libraries with more algorithms for collectives, which go
  // before the built-in ones (collectives/algorithms/algorithm_tables.h).
  std::vector<std::string> algorithm_libraries;
  // HCCL_CONNECT_TIMEOUT: seconds a communicator waits for its members.
  std::chrono::seconds connect_timeout{};
  // HCCL_EXEC_TIMEOUT: seconds a collective waits for its peers; 0: without limit.
  std::chrono::seconds exec_timeout{};
  // TNG_LOG_LEVEL: 0 DEBUG, 1 INFO, 2 WARNING, 3 ERROR, 4 EVENT.
  int log_level{};
  // Set by launchers; compared with the truth, never believed.
  std::optional<int> local_world_size;  // LOCAL_WORLD_SIZE
  std::optional<int> rank;              // RANK
  std::optional<int> world_size;        // WORLD_SIZE
  // OMPI_COMM_WORLD_LOCAL_SIZE or MPI_LOCALNRANKS: ranks of this node, known before they have met.
  std::optional<int> launched_on_node;

  // Reads the environment of this process.
  static Result<Env> FromProcess();

  // Reads through `get`, which returns null for an unset variable. For tests.
  static Result<Env> From(const EnvGetter& get);
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_ENV_ENV_H_
