// The two families of dump options, and what they come to (docs/dump.md; docs/backend.md for those
// of sessions).
#ifndef NPUMESH_GRAPH_DUMP_OPTIONS_H_
#define NPUMESH_GRAPH_DUMP_OPTIONS_H_

#include <optional>
#include <string>
#include <string_view>

#include "graph/dump/settings.h"
#include "runtime/base/env.h"
#include "runtime/base/status.h"

namespace npumesh {

// `dump_config.*` of a compiler configuration.
struct CompilerDumpOptions {
  bool enable_dump = false;
  std::string dump_path = "./";   // existing folder, readable and writable
  std::string dump_mode = "all";  // input, output, all
  bool quant_dumpable = false;
  std::string dump_step;             // "0|3-5|10"; empty: every step
  std::string dump_layer;            // operator names between blanks; empty: all
  std::string dump_data = "tensor";  // tensor, stats
  // A JSON file (config_file.h). Without effect beside enable_dump, which one warning says.
  std::optional<std::string> dump_config_path;
};

// nullopt: nothing is dumped. `mode` is the compiler's, of which only "max-autotune" dumps. Errors
// (kInvalidArgument) name field, value and what is accepted; a combination names both keys.
Result<std::optional<DumpSettings>> SettingsOf(const CompilerDumpOptions& options,
                                               std::string_view mode = "max-autotune");

// The session's options.
struct SessionDumpOptions {
  bool enable_dump = false;
  std::optional<std::string> dump_path;  // must be given when enable_dump is on
  std::optional<std::string> dump_step;
  std::string dump_mode = "output";
  int enable_exception_dump = 0;  // 0, 1
};

Result<std::optional<DumpSettings>> SettingsOf(const SessionDumpOptions& options);

// What the environment makes of it: ASCEND_DUMP_SCENE switches exception dumps on where nothing
// else does, NPU_COLLECT_PATH always and as aic_err_norm_dump; they go below the first that is set
// of NPU_COLLECT_PATH, ASCEND_DUMP_PATH, ASCEND_WORK_PATH, then below the path of the settings,
// then below the working folder. nullopt: nothing is dumped.
std::optional<DumpSettings> WithEnvironment(std::optional<DumpSettings> settings, const Env& env);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_OPTIONS_H_
