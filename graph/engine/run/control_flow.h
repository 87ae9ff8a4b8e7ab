// ControlFlow: runs the subgraphs of one If, Case or While node.
//
// Each subgraph is a Program, made when it is first entered. Its Data nodes take the inputs of the
// node that their attribute `_parent_node_index` numbers, its NetOutput inputs give the outputs
// that theirs number; without it, both count up.
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_ENGINE_RUN_CONTROL_FLOW_H_
#define NPUMESH_GRAPH_ENGINE_RUN_CONTROL_FLOW_H_

#include <memory>
#include <vector>

#include "graph/engine/run/plan_cache.h"

namespace npumesh {

class Program;

class ControlFlow {
 public:
  // All must outlive it. REQUIRES: CheckSubgraphs(library) is OK.
  ControlFlow(const Node& node, const Model& library, const PlanSettings& settings,
              DeviceMemory& memory, ProgramStats& stats);
  ~ControlFlow();

  // `inputs` by input of the node; dtype kUndefined: not connected. One tensor for each output.
  // Errors: kInvalidArgument for a tensor that cannot be a condition; those of the subgraph with
  // its name.
  Result<std::vector<Tensor>> Run(const std::vector<PlanOperand>& inputs, StepObserver* observer,
                                  uint64_t iteration);

  uint64_t arena_bytes() const;
  uint64_t constant_bytes() const;

 private:
  struct Branch;
  Result<std::vector<Tensor>> RunWhile(const std::vector<PlanOperand>& inputs,
                                       StepObserver* observer, uint64_t iteration);
  Result<std::vector<Tensor>> RunBranch(size_t index, const std::vector<PlanOperand>& inputs,
                                        StepObserver* observer, uint64_t iteration);
  Result<Branch*> Enter(size_t index);

  const Node& node_;
  const Model& library_;
  const PlanSettings& settings_;
  DeviceMemory& memory_;
  ProgramStats& stats_;
  std::vector<std::unique_ptr<Branch>> branches_;  // by subgraph; null: never entered
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_RUN_CONTROL_FLOW_H_
