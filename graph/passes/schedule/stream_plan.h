// Which steps run beside the others, and who waits for them.
//
// There are two streams. Steps on the compute stream run one after the other; a step beside them is
// launched when the compute stream comes to it, and runs after those that were launched before it.
// So collectives keep their order, whatever the ranks compute meanwhile.
//
// Works on numbered values and steps, as the memory plan. Deterministic.
#ifndef NPUMESH_GRAPH_PASSES_SCHEDULE_STREAM_PLAN_H_
#define NPUMESH_GRAPH_PASSES_SCHEDULE_STREAM_PLAN_H_

#include <vector>

#include "graph/passes/schedule/memory_plan.h"

namespace npumesh {

enum class StepPlace {
  kCompute,
  kBeside,  // on the communication stream
  kAlone    // on the compute stream, when the communication stream is empty
};

// By step: the latest step beside that has to be finished before this one starts, because one of
// the two writes what the other touches; -1: none, or one that was waited for before. Sets
// PlanStep::done_by of the steps beside; the number of steps is the end of the run.
// REQUIRES: as PlanMemory; `places` has one entry for each step.
std::vector<int> PlanWaits(const std::vector<PlanValue>& values,
                           const std::vector<StepPlace>& places, std::vector<PlanStep>& steps);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_SCHEDULE_STREAM_PLAN_H_
