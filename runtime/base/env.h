// Env: the one table of environment variables, read once and passed as a value.
//
// Our own variables start with NPUMESH_; those of the vendor's stack (HCCL_*, TNG_LOG_LEVEL) and of
// launchers (LOCAL_WORLD_SIZE, RANK, WORLD_SIZE) keep their names. Every value is parsed strictly:
// a typing error is an error that names variable, text and accepted range, never silently a value.
// `npumesh doctor --env` and docs/env.md print `EnvTable()`.
//
// Thread-safety: an Env is immutable after construction.
#ifndef NPUMESH_RUNTIME_BASE_ENV_H_
#define NPUMESH_RUNTIME_BASE_ENV_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace npumesh {

// One row of the manual.
struct EnvVariable {
  std::string_view name;
  std::string_view accepted;
  std::string_view fallback;  // what holds when it is unset
  std::string_view meaning;
};

// Every variable that npumesh reads, in the order of the manual.
std::span<const EnvVariable> EnvTable();

// Seconds HCCL_EXEC_TIMEOUT uses for "wait for ever".
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
  // NPUMESH_RECORD: folder for the flight record of each rank; empty: none is written.
  std::string record;
  // DUMP_GE_GRAPH: 1 graphs with everything, 2 without weights, 3 nodes and edges only; 0: none.
  int dump_ge_graph{};
  // DUMP_GRAPH_LEVEL: which compile stages are dumped (docs/graph_dump.md).
  std::string dump_graph_level{};
  // DUMP_GRAPH_FORMAT: forms joined by bars.
  std::string dump_graph_format{};
  // Folders for graph dumps, the first that is set: NPU_COLLECT_PATH, DUMP_GRAPH_PATH,
  // ASCEND_WORK_PATH; for exception dumps: NPU_COLLECT_PATH, ASCEND_DUMP_PATH, ASCEND_WORK_PATH.
  std::string npu_collect_path;
  std::string dump_graph_path;
  std::string ascend_dump_path;
  std::string ascend_work_path;
  // ASCEND_DUMP_SCENE: an exception scene of the dump configuration; empty: none.
  std::string ascend_dump_scene;
  // HCCL_ALGO: picks algorithms by name; empty: the first that does not refuse.
  std::string hccl_algo;
  // HCCL_CONNECT_TIMEOUT: seconds a communicator waits for its members.
  std::chrono::seconds connect_timeout{};
  // HCCL_EXEC_TIMEOUT: seconds a collective waits for its peers; 0: for ever.
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
  static Result<Env> From(const std::function<const char*(const char*)>& get);
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_ENV_H_
