// Replay: every operator of a dump again, alone, on the inputs that were dumped with it.
//
// Errors so do not add up along the graph: an operator differs only if it itself computed something
// else. Collectives are replayed by all ranks together, on threads of this process.
#ifndef NPUMESH_GRAPH_COMPARE_REPLAY_REPLAY_H_
#define NPUMESH_GRAPH_COMPARE_REPLAY_REPLAY_H_

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/compare/laws/law_check.h"
#include "graph/compare/laws/rank_graphs.h"
#include "graph/compare/measures/comparison.h"
#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/op_registry.h"
#include "runtime/base/env/env.h"

namespace npumesh {

struct ReplayOptions {
  CompareOptions compare;
  // Which operators to replay, by key; empty: all.
  std::set<std::string> only;
  // False: operators that meet other ranks are left out.
  bool collectives = true;
  // Null: BuiltinOps().
  const OpRegistry* registry = nullptr;
};

// An operator that ran and was not replayed.
struct NotReplayed {
  int rank = 0;
  std::string name;
  std::string reason;
  // It should have been: the replay itself failed. False for what no replay can do, such as an
  // operator whose outputs are random, or whose inputs the dump lacks.
  bool failed = false;
  auto operator<=>(const NotReplayed&) const = default;
};

struct Replayed {
  // By rank: what was dumped ("mine") against what the replay computed ("golden"). Operators are
  // judged alone: each that differs is an origin.
  std::vector<Comparison> ranks;
  std::vector<NotReplayed> left_out;  // by rank, then name

  size_t LeftOut(int rank) const;
  // True when an operator that should have been replayed was not.
  bool failed() const;
};

// Replays the operators of `graphs` for which `sources`, by rank, have all inputs and at least one
// output; a rank whose source is null is left out, and so are collectives it is a member of. Each
// graph is taken as it ran (graph_that_ran.h). Uses threads of this process as ranks, each with a
// device as `env` says. Blocks as long as the operators run. Errors: what keeps all operators from
// running, such as a device that cannot be made; kInvalidArgument when a graph has no operator of
// its dump.
Result<Replayed> Replay(const RankGraphs& graphs, const RankSources& sources, const Env& env,
                        const ReplayOptions& options);

// One operator of a graph as a separate model: `inputs`, by input number of the node (default
// Tensor: not connected), are its Data, or Const where the graph has a value that is known before
// it runs. Outputs: all of the node's. Error: as GraphBuilder::Build.
struct LoneOperator {
  Model model;
  std::vector<Tensor> data;  // for the Data nodes, in order
};
Result<LoneOperator> Isolate(const Graph& graph, const Node& node,
                             const std::vector<Tensor>& inputs, const std::vector<bool>& constant);

// By node id: the outputs are known before the graph runs, because they come from weights only.
std::vector<bool> ConstantNodes(const Graph& graph, const OpRegistry& registry);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_REPLAY_REPLAY_H_
