// Checks of one rank's graph: that it loads, that its weights are there, that its text agrees.
#ifndef NPUMESH_LAUNCH_VALIDATE_GRAPH_CHECK_H_
#define NPUMESH_LAUNCH_VALIDATE_GRAPH_CHECK_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/io/weight_places.h"
#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"
#include "graph/session/session.h"
#include "launch/validate/package_files.h"

namespace npumesh {

// The weights of all ranks so far.
struct WeightSum {
  uint64_t count = 0;
  uint64_t bytes = 0;
  std::set<std::string> files;         // of the package, relative
  bool told_stored = false;            // that stored paths lead elsewhere: one cause, said once
  std::vector<LackingWeight> lacking;  // of all ranks
  std::vector<int> lacking_ranks;      // those that lack weights
};

struct GraphCheckOptions {
  const OpRegistry* registry = nullptr;
  bool allow_outside = false;  // weights may be outside of the package
  Card card;                   // that operators are checked against, if any
};

// The graph of `rank`, or nullopt when it cannot be loaded. What `run` would refuse is an error.
// `groups` are those of the package. Weights, and those that the package lacks, are added to
// `weights`; to say the latter is the caller's.
std::optional<Model> CheckGraph(const PackageFiles& files, int rank,
                                const GraphCheckOptions& options, const GroupTable& groups,
                                WeightSum* weights, Findings* findings);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VALIDATE_GRAPH_CHECK_H_
