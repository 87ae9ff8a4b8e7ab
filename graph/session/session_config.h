// From a CompilerConfig to what a session and its compiler do.
#ifndef NPUMESH_GRAPH_SESSION_SESSION_CONFIG_H_
#define NPUMESH_GRAPH_SESSION_SESSION_CONFIG_H_

#include <optional>
#include <string>

#include "graph/config/compiler_config.h"
#include "graph/config/system_options.h"
#include "graph/session/session_options.h"

namespace npumesh {

// Without any configuration: the engine's defaults, and all fusions.
SessionOptions DefaultSessionOptions();

// Validates the config and applies it; the rest of the result is the default. Says once, as
// warnings, which options have no effect. Errors as Validate, PassSwitches::From and TensorDumpOf,
// and for export_mode; as ReadTuneSelection.
Result<SessionOptions> SessionOptionsFor(const CompilerConfig& config);

// What the options of a session say about tuning (auto_tune_mode), with records in `work_path`;
// nullopt: nothing.
std::optional<TuningOptions> TuningOf(const SystemOptions& options,
                                      const std::string& work_path = "./");
// What the options of `initialize_system` say of sessions, but for dumps (TensorDumpOf) and tuning.
// Errors as PrecisionOf.
Status ApplySystemOptions(const SystemOptions& system, SessionOptions& options);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_SESSION_CONFIG_H_
