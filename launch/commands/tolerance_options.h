// --tolerance, --rtol and --atol: how far an output may be from its golden value.
#ifndef NPUMESH_LAUNCH_COMMANDS_TOLERANCE_OPTIONS_H_
#define NPUMESH_LAUNCH_COMMANDS_TOLERANCE_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "launch/run/tolerance.h"

namespace npumesh {

// Adds the three, which fill `options`.
void AddToleranceOptions(CLI::App& command, ToleranceOptions& options);

// Error (kInvalidArgument): --tolerance beside one of the others.
Status CheckTolerance(const ToleranceOptions& options);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_COMMANDS_TOLERANCE_OPTIONS_H_
