// The options of `npumesh run` that look for faults, or make them.
#ifndef NPUMESH_LAUNCH_COMMANDS_RUN_FAULTS_H_
#define NPUMESH_LAUNCH_COMMANDS_RUN_FAULTS_H_

#include <CLI/CLI.hpp>

#include "launch/run/golden_check.h"
#include "launch/run/run_options.h"
#include "launch/run/run_story.h"

namespace npumesh {

// --inject and --golden.
void AddFaultOptions(CLI::App& run, RunOptions& options);

// Collective over all ranks: checks against the golden graph and prints what was found. Rank 0
// alone knows the rank and the operator. REQUIRES: options.golden.
Result<GoldenFinding> TellGolden(World& world, RankCircle& circle, const RunOptions& options,
                                 RunJob& job);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_COMMANDS_RUN_FAULTS_H_
