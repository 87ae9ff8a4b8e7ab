// DynamoExport: writes the graphs of all ranks and their weights as one package that ATC, and
// npumesh, can load (docs/export.md).
//
// In order: every rank prepares its graph and says what it would write; the ranks compare options
// and collectives; only then is anything written, aside; only when all ranks have written does the
// package appear. An error of one rank is the error of all, and leaves what was there before.
#ifndef NPUMESH_GRAPH_EXPORT_DYNAMO_EXPORT_H_
#define NPUMESH_GRAPH_EXPORT_DYNAMO_EXPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/export/export_options.h"
#include "graph/ir/graph.h"
#include "runtime/world/world.h"

namespace npumesh {

struct ExportSummary {
  std::string air;        // path of this rank's .air
  bool external = false;  // the weights are files
  uint64_t weights = 0;
  uint64_t weight_bytes = 0;
  bool configs = false;  // both JSON files were written
};

// Collective over all ranks: exports `model` as this rank's part. `weights` are inputs of the graph
// that become constants; constants that stand in the graph are weights as well.
//
// Errors, the same on all ranks: kInvalidArgument (an option, a symbolic link in the way, a graph
// that does not verify), kMismatch (ranks disagree about options, or their collectives do not fit
// together), kUnsupported (a graph without large weights beyond 2 GiB), kIo.
Result<ExportSummary> DynamoExport(World& world, Model model, const ExportOptions& options,
                                   std::vector<ExportWeight> weights = {});

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_EXPORT_DYNAMO_EXPORT_H_
