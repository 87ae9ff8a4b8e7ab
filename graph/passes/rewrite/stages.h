// Stages: a graph cut where shapes become known only after something ran.
//
// A late node (Operator::late: NonZero, If, While ...) ends a stage. So does a node whose result
// decides a shape (Operator::value_inputs) and is only known when it has run, as counts that
// another rank sends. The nodes that depend on it are a separate stage, a graph whose inputs are
// the values that cross the cut. Each stage can be compiled by itself when the types of these
// values are known.
#ifndef NPUMESH_GRAPH_PASSES_REWRITE_STAGES_H_
#define NPUMESH_GRAPH_PASSES_REWRITE_STAGES_H_

#include <string_view>
#include <vector>

#include "graph/ops/core/op_registry.h"
#include "graph/passes/analysis/bound_graph.h"
#include "graph/passes/analysis/reachability.h"

namespace npumesh {

// Numbers the values that stages share. The inputs of the whole graph come first, by position in
// Graph::DataNodes; then the values that cross a cut.
using SlotNumber = int;
inline constexpr SlotNumber kNoSlot = -1;

// Attribute of a Data that stands for a value of an earlier stage.
inline constexpr std::string_view kCrossedCut = "_crossed_cut";

// Attribute of the graph of a stage: its number, counted from 0.
inline constexpr std::string_view kStageNumber = "_stage";

// A node that runs after the other nodes of its stage.
struct LateNode {
  Node node;
  // By input of the node: the output of the stage that feeds it; -1: not connected.
  std::vector<int> inputs;
  // By output of the node; kNoSlot: it has no reader.
  std::vector<SlotNumber> output_slots;
};

struct Stage {
  // No subgraphs. Its nodes have the names of the whole graph; a value from an earlier stage is a
  // Data "<node>:<port>" on the host, so that it may decide shapes.
  Model model;
  std::vector<SlotNumber> input_slots;   // by position in Graph::DataNodes of the stage
  std::vector<SlotNumber> output_slots;  // by graph output; kNoSlot: only for a late node
  std::vector<LateNode> late;            // in execution order
};

struct StagedModel {
  std::vector<Stage> stages;
  int slots = 0;
};

// True when the nodes that have to run, dead ones among them or not, are more than one stage.
// REQUIRES: as SplitStages.
bool NeedsStages(const BoundGraph& graph, DeadNodes dead = DeadNodes::kDrop);

// The main graph in stages, in the order in which they run; the outputs of the last one are those
// of the graph. Stage after stage, nodes with an effect run in the order of ExecutionOrder, so the
// cut, which depends on no value, changes the order of collectives on no rank. A RefData is the
// same slot in all stages; what reads it and what overwrites it keep their order too. Errors as
// ExecutionOrder. REQUIRES: CheckOperators is OK for the needed nodes.
Result<StagedModel> SplitStages(const Model& model, const OpRegistry& registry,
                                DeadNodes dead = DeadNodes::kDrop);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_REWRITE_STAGES_H_
