// The options --dump and --dump-* of commands that run a graph.
#ifndef NPUMESH_LAUNCH_COMMANDS_DUMP_ARGUMENTS_H_
#define NPUMESH_LAUNCH_COMMANDS_DUMP_ARGUMENTS_H_

#include <CLI/CLI.hpp>

#include "launch/run/run_dump.h"

namespace npumesh {

// `arguments` must outlive `command`.
void AddDumpOptions(CLI::App& command, DumpArguments& arguments);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_COMMANDS_DUMP_ARGUMENTS_H_
