// CommConfig: an HcclCommConfig as its program meant it, read by the rules of HCCL's loader.
#ifndef NPUMESH_COLLECTIVES_HCCL_COMM_CONFIG_H_
#define NPUMESH_COLLECTIVES_HCCL_COMM_CONFIG_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "collectives/hccl/comm/verdict.h"
#include "hccl/hccl_types.h"

namespace npumesh {

// The settings that mean something here. The rest of the structure is checked and has no effect:
// there are no RDMA queues and no staging buffers.
struct CommConfig {
  std::string name;                                  // empty: the default
  std::string algo;                                  // empty: HCCL_ALGO
  std::optional<std::chrono::seconds> exec_timeout;  // empty: HCCL_EXEC_TIMEOUT
  uint32_t op_expansion_mode = HCCL_COMM_DEFAULT_OP_EXPANSION_MODE;
  uint64_t symmetric_bytes = HCCL_DEFAULT_SYMMETRIC_MEMORY_STRIDE << 30;  // of windows, per rank
};

// Reads a structure of any version: takes min(its size, ours) bytes, ignores fields that are newer
// than its version, warns once about a version newer than ours. E_PTR for null; E_PARA for a wrong
// magic word (never initialised) and for values out of range.
Verdict LoadCommConfig(const HcclCommConfig* config, CommConfig* loaded);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_COMM_CONFIG_H_
