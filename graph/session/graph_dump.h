// Graph dumps: TorchAir's debug.graph_dump and GE's DUMP_GE_GRAPH (docs/graph_dump.md).
//
// A failed graph dump never fails the run; it is logged once.
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_SESSION_GRAPH_DUMP_H_
#define NPUMESH_GRAPH_SESSION_GRAPH_DUMP_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/config/compiler_config.h"
#include "graph/dump/options/dump_env.h"
#include "graph/ir/graph.h"
#include "runtime/base/status.h"

namespace npumesh {

// Whose graphs are dumped.
struct DumpingRank {
  int rank = 0;
  int ranks = 1;
  int device = 0;
};

// Whether DUMP_GRAPH_LEVEL asks for a stage: 1 all but those of parts, 2 the main ones, 3 Build,
// 4 PreRunBegin, any other text parts of names joined by bars.
bool WantsStage(std::string_view level, std::string_view stage);

class GraphDump {
 public:
  GraphDump(GraphDumpConfig config, const DumpEnv& env, DumpingRank who);

  // True when anything will be written.
  bool wanted() const { return config_.type.has_value() || env_.dump_ge_graph > 0; }

  // The graph as it was given: dynamo_original_<graph>_rank_<r>_pid_<p>_ts_<ts>.<type>.
  void WriteOriginal(const Model& model);

  // The graph after a stage of its `graph_id`-th compilation. The first that is ready to be built
  // is dynamo_optimized_<graph>_...; of a graph that is cut (passes/rewrite/stages.h) and of
  // subgraphs the first of each part, dynamo_optimized_stage_<n>_<graph>_... for the later parts;
  // the others are ge_<form>_<counter>_graph_<id>_<stage>.
  void WriteStage(std::string_view stage, const Model& model, uint64_t graph_id);

  // Folder of the stage files. NPU_COLLECT_PATH, DUMP_GRAPH_PATH, ASCEND_WORK_PATH or the working
  // folder; in the last two several ranks get a folder each, as in the second.
  std::string StageFolder() const;

 private:
  Status WriteTorchAir(std::string_view name, const Model& model) const;
  Status WriteForms(std::string_view stage, const Model& model, uint64_t graph_id);
  // Logs a failure and writes nothing any more.
  void Keep(const Status& status);

  GraphDumpConfig config_;
  const DumpEnv env_;
  const DumpingRank who_;
  std::set<std::string> optimized_written_;  // names of the graphs, with their stages
  bool failed_ = false;
  std::vector<int> counters_;  // by form
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_GRAPH_DUMP_H_
