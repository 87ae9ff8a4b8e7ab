// Checks of one rank's graph: that it loads, that its weights are there, that its text agrees.
#ifndef NPUMESH_LAUNCH_VALIDATE_GRAPH_CHECK_H_
#define NPUMESH_LAUNCH_VALIDATE_GRAPH_CHECK_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"
#include "graph/session/session.h"
#include "launch/validate/package_files.h"

namespace npumesh {

// The weights of all ranks so far.
struct WeightSum {
  uint64_t count = 0;
  uint64_t bytes = 0;
  std::set<std::string> files;  // of the package, relative
  bool told_relative = false;   // that paths are relative to another folder: one cause, said once
};

struct GraphCheckOptions {
  const OpRegistry* registry = nullptr;
  bool allow_outside = false;  // links of weights may lead out of the package
};

// The graph of `rank`, or nullopt when it cannot be loaded. What `run` would refuse is an error.
// `groups` are those of the package. Weights are looked for in the package only, and added to
// `weights`.
std::optional<Model> CheckGraph(const PackageFiles& files, int rank,
                                const GraphCheckOptions& options, const GroupTable& groups,
                                WeightSum* weights, Findings* findings);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VALIDATE_GRAPH_CHECK_H_
