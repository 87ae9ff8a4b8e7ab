// Who is right when as many ranks hold one value as the other.
#ifndef NPUMESH_GRAPH_COMPARE_REPLAY_LAW_REPLAY_H_
#define NPUMESH_GRAPH_COMPARE_REPLAY_LAW_REPLAY_H_

#include "graph/compare/laws/law_check.h"
#include "graph/compare/replay/replay.h"

namespace npumesh {

// Replays the operator of an undecided law on all ranks: the lowest of its two ranks whose output
// is not what it computes from its dumped inputs is the one that breaks the law. `broken` stays
// undecided when the dump lacks inputs, or when the replay blames both or none. Uses threads as
// Replay does. Errors: those of Replay.
Status DecideByReplay(const RankGraphs& graphs, const RankSources& sources, const Env& env,
                      BrokenLaw& broken);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_REPLAY_LAW_REPLAY_H_
