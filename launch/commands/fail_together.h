// How a command of many ranks ends when it failed before it could start its world.
#ifndef NPUMESH_LAUNCH_COMMANDS_FAIL_TOGETHER_H_
#define NPUMESH_LAUNCH_COMMANDS_FAIL_TOGETHER_H_

#include <string_view>

#include "launch/ranks/rank_circle.h"

namespace npumesh {

// Collective over all MPI ranks. One rank prints one line; returns the exit code for all.
int FailTogether(std::string_view command, const Outcome& mine);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_COMMANDS_FAIL_TOGETHER_H_
