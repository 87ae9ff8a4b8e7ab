#include "graph/engine/plan/part_plan.h"

#include <map>
#include <utility>

#include "graph/engine/plan/plan_builder.h"
#include "graph/engine/plan/plan_draft.h"
#include "graph/passes/analysis/node_error.h"

namespace npumesh {
namespace {

// Values of the draft that others read: their place in StaticPart::results.
using ResultPlaces = std::map<PlanIndex, size_t>;

// Results lie outside of the part's block.
ResultPlaces TakeResultsOut(const StaticPart& part, PlanDraft& draft) {
  ResultPlaces places;
  for (size_t i = 0; i < part.results.size(); ++i) {
    const PlanIndex index = draft.index.at(part.results[i].value);
    places[index] = i;
    draft.value(index).external = true;
  }
  return places;
}

PartOperand OperandOf(PlanIndex index, const PlanDraft& draft, const MemoryPlan& plan,
                      const ResultPlaces& results) {
  if (index < 0) return {};
  const PlanIndex root = draft.StorageOf(index);
  if (const auto result = results.find(root); result != results.end()) {
    return {PartOperand::Kind::kResult, result->second};
  }
  const Address& address = draft.address(root);
  switch (address.kind) {
    case Address::Kind::kConstant:
      return {PartOperand::Kind::kConstant, address.offset};
    case Address::Kind::kInput:
      return {PartOperand::Kind::kOutside, address.offset};
    default:
      return {PartOperand::Kind::kInside, plan.offsets[static_cast<size_t>(index)]};
  }
}

std::vector<PartStep> PartStepsOf(const PlanDraft& draft, const MemoryPlan& plan,
                                  const ResultPlaces& results) {
  std::vector<PartStep> steps;
  for (size_t i = 0; i < draft.steps.size(); ++i) {
    PartStep& made = steps.emplace_back();
    for (const PlanIndex index : draft.slots[i]) {
      made.inputs.push_back(OperandOf(index, draft, plan, results));
    }
    for (const PlanIndex index : draft.plan_steps[i].writes) {
      made.outputs.push_back(OperandOf(index, draft, plan, results));
    }
    made.step = draft.steps[i];
  }
  return steps;
}

void Finish(const GraphAnalysis& graph, PlanDraft draft, StaticPart& part) {
  const ResultPlaces results = TakeResultsOut(part, draft);
  const CompileOptions& options = graph.options();
  const MemoryPlan plan = PlanMemory(draft, options.spare_memory, options.margin);
  part.steps = PartStepsOf(draft, plan, results);
  for (size_t i = 0; i < part.steps.size(); ++i) part.step_of[part.steps[i].step.node] = i;
  part.tensors = NamedBlocks(graph.graph(), draft, plan);
  part.block_bytes = plan.arena_bytes;
  part.constants = std::move(draft.constants);
  part.outside = std::move(draft.outside);
  part.scratch_bytes = draft.scratch_bytes;
  part.compiled = true;
}

}  // namespace

bool CompilePart(const GraphAnalysis& graph, StaticPart& part, ErrorList& errors) {
  PlanDraft draft;
  PlanBuilder builder(graph, draft, &part);
  bool made = true;
  for (const NodeId id : part.nodes) {
    const Status status = builder.AddStepOf(id);
    if (!status.ok()) errors.Add(AtNode(graph.graph().node(id), status));
    made = made && status.ok();
  }
  if (made) Finish(graph, std::move(draft), part);
  return made;
}

}  // namespace npumesh
