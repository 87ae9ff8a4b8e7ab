// The tables: every option of a config object, in the order of docs/config.md.
//
// Rows point into the object, which must outlive the table.
#ifndef NPUMESH_GRAPH_CONFIG_OPTION_TABLES_H_
#define NPUMESH_GRAPH_CONFIG_OPTION_TABLES_H_

#include "graph/config/compiler_config.h"
#include "graph/config/option.h"
#include "graph/config/system_options.h"

namespace npumesh {

OptionTable OptionsOf(CompilerConfig& config);
// Paths start with "session.".
OptionTable OptionsOf(SystemOptions& options);
// Both, as a file or a command line names them.
OptionTable OptionsOf(CompilerConfig& config, SystemOptions& options);

// The parts of the first table. Internal to graph/config.
void AddDebugOptions(CompilerConfig& config, std::vector<Option>& rows);
void AddDumpOptions(CompilerConfig& config, std::vector<Option>& rows);
void AddGeOptions(CompilerConfig& config, std::vector<Option>& rows);
void AddExperimentalOptions(CompilerConfig& config, std::vector<Option>& rows);
void AddCaptureOptions(CompilerConfig& config, std::vector<Option>& rows);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_CONFIG_OPTION_TABLES_H_
