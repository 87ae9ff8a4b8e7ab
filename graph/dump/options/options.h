// The two families of dump options, and what they come to (docs/dump.md; docs/backend.md for those
// of sessions).
#ifndef NPUMESH_GRAPH_DUMP_OPTIONS_OPTIONS_H_
#define NPUMESH_GRAPH_DUMP_OPTIONS_OPTIONS_H_

#include <optional>
#include <string_view>

#include "graph/config/compiler_config.h"
#include "graph/config/system_options.h"
#include "graph/dump/options/dump_env.h"
#include "graph/dump/options/settings.h"
#include "runtime/base/status.h"

namespace npumesh {

// `dump_config.*` of a compiler configuration; nullopt: nothing is dumped. `mode` is the
// compiler's, of which only "max-autotune" dumps. dump_config_path, a JSON file (config_file.h),
// has no effect beside enable_dump, which one warning says. Errors (kInvalidArgument) name field,
// value and what is accepted; a combination names both keys.
Result<std::optional<DumpSettings>> SettingsOf(const DumpConfig& config,
                                               std::string_view mode = "max-autotune");

// The same of the session's dump options.
Result<std::optional<DumpSettings>> SettingsOf(const SystemOptions& options);

// What the environment makes of it: ASCEND_DUMP_SCENE switches exception dumps on where nothing
// else does, NPU_COLLECT_PATH always and as aic_err_norm_dump; they go below the first that is set
// of NPU_COLLECT_PATH, ASCEND_DUMP_PATH, ASCEND_WORK_PATH, then below the path of the settings,
// then below the working folder. nullopt: nothing is dumped.
std::optional<DumpSettings> WithEnvironment(std::optional<DumpSettings> settings,
                                            const DumpEnv& env);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_OPTIONS_OPTIONS_H_
