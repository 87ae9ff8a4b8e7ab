// PartsInPlan: the static parts that one plan takes over, and where they lie in it.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_ENGINE_PLAN_PARTS_IN_PLAN_H_
#define NPUMESH_GRAPH_ENGINE_PLAN_PARTS_IN_PLAN_H_

#include <cstdint>
#include <map>
#include <vector>

#include "graph/engine/plan/plan_builder.h"
#include "graph/engine/plan/plan_draft.h"
#include "graph/engine/plan/static_parts.h"
#include "runtime/base/error_list.h"

namespace npumesh {

class PartsInPlan {
 public:
  // All must outlive it. `builder` fills `draft`, the draft of the plan.
  PartsInPlan(PlanDraft& draft, PlanBuilder& builder) : draft_(draft), builder_(builder) {}

  // Compiles those of `parts` that no compilation has compiled before, and takes all of them. They
  // must outlive it.
  void Take(const GraphAnalysis& graph, const std::vector<StaticPart*>& parts, ErrorList& errors);

  // Adds the step of a part that stands where this node does, if there is one. False: the node is
  // in no part.
  bool AddStepOf(NodeId id);

  // Tells of the parts, and of the tensors in their blocks. `plan` is that of the draft.
  void AddFacts(const GraphAnalysis& graph, const MemoryPlan& plan, PlanFacts& facts) const;

 private:
  // A part in this plan.
  struct Use {
    StaticPart* part = nullptr;
    PlanIndex block = -1;                  // holds what its steps write for each other
    std::vector<PlanIndex> results;        // by result; -1: not there yet
    std::map<uint64_t, PlanIndex> inside;  // by byte in the block
    std::vector<size_t> steps;             // by step of the part: its index in the plan
    bool compiled_now = false;
  };

  void AddStep(Use& use, const PartStep& made);
  PlanIndex IndexOf(Use& use, const PartOperand& operand);
  PlanIndex ResultOf(Use& use, size_t result);
  PlanIndex InsideOf(Use& use, uint64_t byte);

  PlanDraft& draft_;
  PlanBuilder& builder_;
  std::vector<Use> uses_;
  std::map<NodeId, size_t> use_of_;  // index into uses_
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_PLAN_PARTS_IN_PLAN_H_
