// DumpEnv: the environment variables of dumps, of graphs (docs/graph_dump.md) and of operators that
// fail (docs/dump.md). A session reads them when it is made.
//
// Thread-safety: a DumpEnv is immutable after construction.
#ifndef NPUMESH_GRAPH_DUMP_OPTIONS_DUMP_ENV_H_
#define NPUMESH_GRAPH_DUMP_OPTIONS_DUMP_ENV_H_

#include <span>
#include <string>

#include "runtime/base/env/env_table.h"
#include "runtime/base/status.h"

namespace npumesh {

// The variables, in the order of the manual.
std::span<const EnvVariable> DumpEnvTable();

// Defaults stand in DumpEnvTable alone: the fields that are {} here take the fallback of their row.
struct DumpEnv {
  // As in a process that has set none of the variables.
  DumpEnv();

  // DUMP_GE_GRAPH: 1 graphs with everything, 2 without weights, 3 nodes and edges only; 0: none.
  int dump_ge_graph{};
  // DUMP_GRAPH_LEVEL: which compile stages are dumped (docs/graph_dump.md).
  std::string dump_graph_level{};
  // DUMP_GRAPH_FORMAT: forms joined by bars.
  std::string dump_graph_format{};
  // Folders for graph dumps, the first that is set: NPU_COLLECT_PATH, DUMP_GRAPH_PATH,
  // ASCEND_WORK_PATH; for exception dumps: NPU_COLLECT_PATH, ASCEND_DUMP_PATH, ASCEND_WORK_PATH;
  // for kernel_meta: ASCEND_WORK_PATH.
  std::string npu_collect_path;
  std::string dump_graph_path;
  std::string ascend_dump_path;
  std::string ascend_work_path;
  // ASCEND_DUMP_SCENE: an exception scene of the dump configuration; empty: none.
  std::string ascend_dump_scene;

  // Errors (kInvalidArgument) name variable, text and what is accepted.
  static Result<DumpEnv> FromProcess();
  // Reads through `get`. For tests.
  static Result<DumpEnv> From(const EnvGetter& get);
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_OPTIONS_DUMP_ENV_H_
