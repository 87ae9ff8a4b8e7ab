// Do the collectives of all ranks' graphs fit together? Found out without running anything.
//
// The ranks are walked like a run: a collective ends when all members of its group have come to one
// of that group. There its kind, reduction, root, dtypes and shapes are compared, as far as they
// are known. A send never waits, a receive waits for its send; what is reported as a deadlock is
// one.
#ifndef NPUMESH_GRAPH_EXPORT_COLLECTIVE_MATCH_H_
#define NPUMESH_GRAPH_EXPORT_COLLECTIVE_MATCH_H_

#include <string>
#include <vector>

#include "graph/export/collective_trace.h"

namespace npumesh {

struct CollectiveMismatch {
  int rank = 0;      // whose graph deviates
  std::string text;  // what, where, on which ranks
};

// `traces` by world rank. At most `most` mismatches, the first of the program first.
std::vector<CollectiveMismatch> MatchCollectives(const std::vector<CollectiveTrace>& traces,
                                                 size_t most = 16);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_EXPORT_COLLECTIVE_MATCH_H_
