// The hang verdict: one paragraph that says who waits for whom, from what the ranks of the node
// have published on the board.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_HANG_VERDICT_H_
#define NPUMESH_COLLECTIVES_CONTRACT_HANG_VERDICT_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/contract/wait_graph.h"
#include "runtime/world/wait_notices.h"
#include "runtime/world/world.h"

namespace npumesh {

// What the rank that waits knows. A plain value, so that every verdict can be tested.
struct WaitScene {
  int rank = 0;                   // the one that waits, in the world
  std::string_view group;         // by name
  std::string_view what;          // what it waits in, for a wait outside of collectives
  std::vector<int> missing;       // world ranks, ascending
  std::chrono::seconds waited{};  // so far
  int64_t now_ns = 0;             // CLOCK_MONOTONIC
  std::map<int, Sight> sights;    // of all ranks of the node, the waiting one too
  // By rank: the loops in which it is, the outermost first; they are not among its positions.
  std::map<int, std::vector<Position>> loops;
};

// What the board shows now.
WaitScene Survey(const World& world, std::string_view group, std::string_view what,
                 std::vector<int> missing, std::chrono::seconds waited);

// Members of the group, `scene.missing`, of whom the waiting rank only knows that not all have
// come: those of this node that are not in the same call, or, when all of them are, those whose
// process is stopped, or those of other nodes, or all others. Ascending.
std::vector<int> LikelyMissing(const WaitScene& scene);

// Who waits for whom in the scene, the loops and steps of ranks aside.
std::vector<Wait> WaitsIn(const WaitScene& scene);

// What a rank of the scene does, as a predicate of it: "is in allgather "x" (group dp, call 17) and
// waits for rank 0".
std::string DoingText(const WaitScene& scene, int rank);

// For example: rank 0 has waited 10 s in allreduce "attn/out" (group tp, call 412) for rank 3,
// which is in allgather "x" (group dp, call 17) and waits for rank 0: the ranks wait for each other
// in a circle (0 -> 3 -> 0); ranks 1-2 wait here too
//
// A rank in a loop of its graph has the turn told: it has come further than others, or never ends.
//
// Ranks, not threads, are drawn: when a rank has threads in several groups at once, a circle is a
// strong hint but no proof.
std::string Verdict(const WaitScene& scene);

// The same for programs, with Verdict as its text: the most certain reason that the board shows,
// and the ranks at the end of the chains of waits that have it; of a circle all its ranks.
WaitNotice NoticeOf(const WaitScene& scene, bool gave_up);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_HANG_VERDICT_H_
