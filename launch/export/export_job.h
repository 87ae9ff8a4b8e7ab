// ExportJob: what `npumesh export` does: graphs that exist become a package.
#ifndef NPUMESH_LAUNCH_EXPORT_EXPORT_JOB_H_
#define NPUMESH_LAUNCH_EXPORT_EXPORT_JOB_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/export/dynamo_export.h"
#include "launch/screen/progress_line.h"
#include "runtime/world/world.h"

namespace npumesh {

struct ExportJobOptions {
  // Graph files in rank order, or one export folder, or one file of an export with several.
  std::vector<std::string> paths;
  ExportOptions options;
  bool allow_outside = false;  // weights may lie outside of their package
  bool show_progress = false;
};

// Shows on `line` how many weights are written, and what time is left.
std::function<void(const ExportProgress&)> TellWeights(std::shared_ptr<ProgressLine> line);

// How many ranks the graphs of `paths` are for. Errors: kNotFound, and what ChooseModelFile
// refuses.
Result<int> RanksOfPaths(const std::vector<std::string>& paths);

// Collective over all ranks of `world`: each loads its graph and exports it. Groups are taken from
// the model_relation_config.json beside the graph. Rank 0 prints what is to be said of the places
// of weights. The same error on all ranks.
Result<ExportSummary> RunExport(World& world, const ExportJobOptions& job);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_EXPORT_EXPORT_JOB_H_
