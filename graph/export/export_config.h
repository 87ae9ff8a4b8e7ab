// From a CompilerConfig to the options of an export.
#ifndef NPUMESH_GRAPH_EXPORT_EXPORT_CONFIG_H_
#define NPUMESH_GRAPH_EXPORT_EXPORT_CONFIG_H_

#include "graph/config/compiler_config.h"
#include "graph/export/export_options.h"

namespace npumesh {

// What `dynamo_export(config=...)` takes from its config: path and name, the layers and the two
// JSON files; the rest of the result is the default. Says once, as warnings, which options have no
// effect, and in one line which have it in a session only. Errors as Validate for a config with
// export_mode, which an export sets.
Result<ExportOptions> ExportOptionsFor(const CompilerConfig& config);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_EXPORT_EXPORT_CONFIG_H_
