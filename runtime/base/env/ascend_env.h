// The vendor's variables of runtime and log, which users of his stack have set: one is obeyed, the
// others are answered once, because silence would look like obedience.
#ifndef NPUMESH_RUNTIME_BASE_ENV_ASCEND_ENV_H_
#define NPUMESH_RUNTIME_BASE_ENV_ASCEND_ENV_H_

#include <span>

#include "runtime/base/env/env_table.h"

namespace npumesh {

// ASCEND_GLOBAL_LOG_LEVEL: the values of TNG_LOG_LEVEL, which wins (runtime/base/log.cc).
inline constexpr const char* kAscendLogLevel = "ASCEND_GLOBAL_LOG_LEVEL";

// Their rows of the manual.
std::span<const EnvVariable> AscendEnvTable();

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_ENV_ASCEND_ENV_H_
