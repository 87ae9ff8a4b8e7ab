// `npumesh dump compare` and `npumesh dump laws`.
#ifndef NPUMESH_LAUNCH_COMMANDS_DUMP_COMPARE_H_
#define NPUMESH_LAUNCH_COMMANDS_DUMP_COMPARE_H_

#include "graph/compare/measures/comparison.h"
#include "launch/commands/command.h"

namespace npumesh {

void AddCompare(CLI::App& dump, Action& action);
void AddLaws(CLI::App& dump, Action& action);

// --atol, --rtol and --reorder, for commands that compare tensors.
void AddAllowance(CLI::App& command, CompareOptions& options);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_COMMANDS_DUMP_COMPARE_H_
