#include "graph/engine/plan/parts_in_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "graph/engine/plan/part_plan.h"

namespace npumesh {

void PartsInPlan::Take(const GraphAnalysis& graph, const std::vector<StaticPart*>& parts,
                       ErrorList& errors) {
  for (StaticPart* const part : parts) {
    for (const NodeId id : part->nodes) use_of_[id] = uses_.size();
    Use& use = uses_.emplace_back();
    use.part = part;
    use.results.assign(part->results.size(), -1);
    if (!part->compiled) use.compiled_now = CompilePart(graph, *part, errors);
  }
}

bool PartsInPlan::AddStepOf(NodeId id) {
  const auto found = use_of_.find(id);
  if (found == use_of_.end()) return false;
  Use& use = uses_[found->second];
  const StaticPart& part = *use.part;
  const auto step = part.step_of.find(id);
  if (part.compiled && step != part.step_of.end()) AddStep(use, part.steps[step->second]);
  return true;
}

void PartsInPlan::AddStep(Use& use, const PartStep& made) {
  Step step = made.step;
  step.part = static_cast<int>(&use - uses_.data());
  PlanStep plan;
  std::vector<PlanIndex> slots;
  for (const PartOperand& operand : made.inputs) {
    slots.push_back(IndexOf(use, operand));
    if (slots.back() >= 0) plan.reads.push_back(slots.back());
  }
  for (const PartOperand& operand : made.outputs) plan.writes.push_back(IndexOf(use, operand));
  use.steps.push_back(draft_.steps.size());
  draft_.scratch_bytes = std::max(draft_.scratch_bytes, use.part->scratch_bytes);
  draft_.AddStep(std::move(step), std::move(plan), std::move(slots));
}

PlanIndex PartsInPlan::IndexOf(Use& use, const PartOperand& operand) {
  const auto at = static_cast<size_t>(operand.at);
  switch (operand.kind) {
    case PartOperand::Kind::kAbsent:
      return -1;
    case PartOperand::Kind::kConstant:
      return draft_.AddConstant(use.part->constants[at]);
    case PartOperand::Kind::kOutside:
      return builder_.IndexOf(use.part->outside[at]);
    case PartOperand::Kind::kResult:
      return ResultOf(use, at);
    case PartOperand::Kind::kInside:
      break;
  }
  return InsideOf(use, operand.at);
}

PlanIndex PartsInPlan::ResultOf(Use& use, size_t result) {
  PlanIndex& index = use.results[result];
  if (index >= 0) return index;
  const PartResult& of_part = use.part->results[result];
  PlanValue value;
  value.bytes = of_part.bytes;
  index = draft_.AddValue(value, {Address::Kind::kArena});
  draft_.index[of_part.value] = index;
  return index;
}

PlanIndex PartsInPlan::InsideOf(Use& use, uint64_t byte) {
  if (use.block < 0) {
    PlanValue block;
    block.bytes = use.part->block_bytes;
    use.block = draft_.AddValue(block, {Address::Kind::kArena});
  }
  const auto [inside, added] = use.inside.try_emplace(byte, -1);
  if (added) {
    PlanValue value;
    value.same_as = use.block;
    inside->second = draft_.AddValue(value, {Address::Kind::kArena, byte});
  }
  return inside->second;
}

void PartsInPlan::AddFacts(const GraphAnalysis& graph, const MemoryPlan& plan,
                           PlanFacts& facts) const {
  std::set<PlanIndex> blocks;
  for (const Use& use : uses_) blocks.insert(use.block);
  facts.tensors = NamedBlocks(graph.graph(), draft_, plan, blocks);
  facts.steps_compiled = draft_.steps.size();
  for (const Use& use : uses_) {
    const StaticPart& part = *use.part;
    facts.parts.push_back(
        {part.nodes.size(), part.steps.size(), part.block_bytes, use.compiled_now});
    if (!use.compiled_now) facts.steps_compiled -= part.steps.size();
    if (use.block < 0) continue;
    const uint64_t offset = plan.offsets[static_cast<size_t>(use.block)];
    for (PlannedTensor tensor : part.tensors) {
      tensor.offset += offset;
      tensor.first = static_cast<int>(use.steps[static_cast<size_t>(tensor.first)]);
      tensor.last = static_cast<int>(use.steps[static_cast<size_t>(tensor.last)]);
      facts.tensors.push_back(std::move(tensor));
    }
  }
}

}  // namespace npumesh
