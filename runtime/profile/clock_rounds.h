// How the clocks of hosts are apart, from rounds in which their ranks met.
//
// Each round all ranks read their clock before they enter and after they leave a gathering that
// none leaves before all have entered. So with o = rank 0's clock - mine,
//   its exit >= my entry + o   and   my exit + o >= its entry,
// which bounds o from both sides, without an assumption that both ways take equally long.
#ifndef NPUMESH_RUNTIME_PROFILE_CLOCK_ROUNDS_H_
#define NPUMESH_RUNTIME_PROFILE_CLOCK_ROUNDS_H_

#include "runtime/profile/profiler.h"
#include "runtime/world/world.h"

namespace npumesh {

// Collective over all ranks. Notes one sample a round in the profile of each rank that is not on
// rank 0's host; without other hosts it does nothing. Errors: as Gathering::Share.
Status NoteClocks(World& world, Profiler& profiler);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_PROFILE_CLOCK_ROUNDS_H_
