// WeightPlan: which weights a graph has, and whether they stay in the .air or become files.
//
//   Take    every weight becomes a Const without bytes; the plan knows where the bytes come from
//   decide  graph and weights together against the limit: all or nothing
//   Settle  the bytes go into the Const again, or it becomes a FileConstant
//
// A weight is a Const or FileConstant of the main graph, or an input that the caller names. What
// stays inside in any case: literals (`_readable_value`), and small constants whose value shapes
// depend on, since a loader needs them before it looks for files.
#ifndef NPUMESH_GRAPH_EXPORT_WEIGHT_PLAN_H_
#define NPUMESH_GRAPH_EXPORT_WEIGHT_PLAN_H_

#include <memory>
#include <string>
#include <vector>

#include "graph/export/export_options.h"
#include "graph/export/package_layout.h"
#include "graph/ir/graph.h"

namespace npumesh {

struct PlannedWeight {
  NodeId node = kNoNode;
  std::string parameter;
  std::string file;  // name in the rank's folder
  TensorType type;
  WeightReader read;
  // The value as it stood in the graph, to be put back unchanged; null when it comes from `read`.
  std::shared_ptr<const std::string> bytes;
};

// The weight's bytes to `sink`, counted. Errors: those of reader and sink; kInvalidArgument naming
// the weight when there are more or fewer bytes than its type has.
Status ReadChecked(const PlannedWeight& weight, const WeightSink& sink);

class WeightPlan {
 public:
  // Takes the weights out of `model`. Errors (kInvalidArgument, kCorrupt, kNotFound) name the
  // weight: no such input, a type that does not fit, two weights of one file name, a name that
  // another file of the package has.
  static Result<WeightPlan> Take(Model* model, const ExportOptions& options,
                                 const PackageLayout& layout, int rank,
                                 std::vector<ExportWeight> given);

  // Serialised graph and bytes of all weights.
  uint64_t total_bytes() const { return total_bytes_; }
  bool external() const { return external_; }
  const std::vector<PlannedWeight>& weights() const { return weights_; }

  // Finishes the nodes of the weights in `model`. Errors name the weight: its reader's own, or
  // kInvalidArgument when that gave more or fewer bytes than the type has.
  Status Settle(const PackageLayout& layout, int rank, Model* model);

 private:
  std::vector<PlannedWeight> weights_;
  uint64_t total_bytes_ = 0;
  bool external_ = false;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_EXPORT_WEIGHT_PLAN_H_
