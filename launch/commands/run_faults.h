// The options of `npumesh run` that look for faults, or make them.
#ifndef NPUMESH_LAUNCH_COMMANDS_RUN_FAULTS_H_
#define NPUMESH_LAUNCH_COMMANDS_RUN_FAULTS_H_

#include <CLI/CLI.hpp>

#include "launch/run/golden_check.h"
#include "launch/run/run_options.h"

namespace npumesh {

// --inject and --golden.
void AddFaultOptions(CLI::App& run, RunOptions& options);

// Collective over all ranks: checks against the golden graph, if one was given, and prints the
// verdict. 1: an operator differs, 0: none does.
Result<int> TellGolden(World& world, RankCircle& circle, const RunOptions& options, RunJob& job);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_COMMANDS_RUN_FAULTS_H_
