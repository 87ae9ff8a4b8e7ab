// The wait graph: which rank cannot go on before which other has come. The same rules serve the
// verdict of a rank that hangs and the reading of flight records afterwards.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_WAIT_GRAPH_H_
#define NPUMESH_COLLECTIVES_CONTRACT_WAIT_GRAPH_H_

#include <cstdint>
#include <vector>

#include "runtime/world/position.h"

namespace npumesh {

// Where a rank stands in one of its groups.
struct Stand {
  uint64_t group = 0;
  uint64_t call = 0;
  Phase phase = Phase::kOutside;
};

struct RankStands {
  int rank = 0;
  std::vector<Stand> stands;
};

struct Wait {
  int rank = 0;      // this one waits
  int for_rank = 0;  // for this one
  uint64_t group = 0;
  friend bool operator==(const Wait&, const Wait&) = default;
};

// Who waits for whom, over ranks that are known to be in the same groups. A rank that arrives at a
// call waits for the members that have not entered it, also when it has given up by now; one that
// departs waits for the members that have not done their part.
std::vector<Wait> WaitsAmong(const std::vector<RankStands>& ranks);

// A circle of waits that can be reached from `rank`: its ranks in order, each waits for the next
// and the last for the first. The shortest one through `rank` itself, if there is one. Empty
// without a circle.
std::vector<int> CircleFrom(int rank, const std::vector<Wait>& waits);

// Ranks that others wait for and that do not wait, ascending: look there first.
std::vector<int> Roots(const std::vector<Wait>& waits);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_WAIT_GRAPH_H_
