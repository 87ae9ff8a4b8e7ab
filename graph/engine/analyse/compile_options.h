// What a caller decides about compilations.
#ifndef NPUMESH_GRAPH_ENGINE_ANALYSE_COMPILE_OPTIONS_H_
#define NPUMESH_GRAPH_ENGINE_ANALYSE_COMPILE_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string_view>

#include "graph/engine/analyse/weight_cache.h"
#include "graph/ir/graph.h"
#include "graph/ops/core/static_kernels.h"
#include "graph/ops/core/tuning.h"
#include "graph/passes/analysis/reachability.h"
#include "graph/passes/rewrite/static_split.h"
#include "graph/passes/schedule/execution_order.h"

namespace npumesh {

// Stages have the names of GE: PreRunBegin, the graph as given; AfterInfershape, with all types;
// PreRunAfterOptimizeOriginalGraph, folded and without dead nodes;
// PreRunAfterOptimizeGraphBeforeBuild, in the order it runs; Build, with arena offsets, and on
// nodes that are computed by the step of another one its name as `_fused_into`.
using StageObserver = std::function<void(std::string_view stage, const Model& graph)>;

class OpContext;
class Profiler;
class StaticParts;

struct CompileOptions {
  int threads = 1;
  // Says in the log, whatever its level, which kernels were taken and which fusions were not, and
  // why. A session sets it under NPUMESH_TRACE.
  bool trace = false;
  // Keeps weights for the next compilation of the same model; null: loads them anew. Not owned.
  WeightCache* weights = nullptr;
  // Evaluates operators with constant inputs now instead of at each run. Shape queries and values
  // that decide shapes are answered either way.
  bool fold_constants = true;
  // Leaves out operators whose results are not read.
  bool drop_dead_nodes = true;
  DeadNodes dead_nodes() const { return drop_dead_nodes ? DeadNodes::kDrop : DeadNodes::kKeep; }
  // Connected operators with known shapes that are compiled once for all signatures, at least as
  // many (passes/rewrite/static_split.h); -1: none.
  int64_t static_ops_limit = kDefaultStaticOpsLimit;
  // Keeps them for the next compilation of the same graph, with the same `fuses`; null: nothing is
  // shared. Not owned.
  StaticParts* static_parts = nullptr;
  NodeOrder order = NodeOrder::kStable;
  // Says by name which fusion passes run (passes/fusion/fusion.h); null: none.
  std::function<bool(std::string_view pass)> fuses;
  // Where static kernels come from; null: none are made. Not owned.
  StaticKernelSource* static_kernels = nullptr;
  // Measures which kernels are the best, or remembers it; null: the operators' rules decide. Not
  // owned.
  KernelTuner* tuner = nullptr;
  // Runs collectives on a separate stream, beside steps that do not need them, and orders nodes so
  // that there are such steps.
  bool overlap_collectives = false;
  // Small memory before speed: searches harder for a small arena, and moves no nodes for overlap.
  bool spare_memory = false;
  // Bytes around each tensor in device memory that belong to none, a multiple of kHbmAlignment: who
  // writes past a tensor writes there (graph/guard).
  uint64_t margin = 0;
  // Told how the weights in files arrive while plans are made; may be null.
  std::function<void(const WeightProgress&)> weight_progress;
  // Asked about each operator with the types of its inputs, before it is inferred: its error is
  // that of the operator. Null: nothing is asked.
  std::function<Status(const OpContext&)> check_operator;
  // Gets spans of what is compiled and of the steps; null: nothing is profiled. Not owned.
  Profiler* profiler = nullptr;
  // Sees the graph as it stands after each stage; may be null. The graph is made for it, so an
  // observer costs a copy for each stage.
  StageObserver observer;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_ANALYSE_COMPILE_OPTIONS_H_
