#include "graph/engine/plan/lending.h"

#include <algorithm>
#include <cstdint>
#include <map>

namespace npumesh {
namespace {

// Kernels use vector instructions that take any address, and scalars at addresses of their size.
constexpr int kMostAlignment = 8;

// Walks the operands of all steps in the order of their numbers.
template <typename Visit>
void ForEachOperand(const PlanDraft& draft, Visit visit) {
  size_t number = 0;
  for (size_t step = 0; step < draft.steps.size(); ++step) {
    for (const PlanIndex index : draft.slots[step]) visit(step, index, number++);
    for (const PlanIndex index : draft.plan_steps[step].writes) visit(step, index, number++);
  }
}

// The step at whose end step `at` is finished.
int EndOf(const PlanDraft& draft, size_t at) {
  return std::max(draft.plan_steps[at].done_by, static_cast<int>(at));
}

// The inputs whose storage `value`, which step `at` writes, may take over.
std::vector<int> InputsUnder(const PlanDraft& draft, size_t at, PlanIndex value) {
  const PlanStep& step = draft.plan_steps[at];
  std::vector<int> positions;
  if (step.writes.empty() || step.writes[0] != value) return positions;
  for (const PlanIndex index : step.may_take_over) {
    const Address& address = draft.address(index);
    if (address.kind == Address::Kind::kInput)
      positions.push_back(static_cast<int>(address.offset));
  }
  return positions;
}

// The numbers of the outputs that can be moved, by storage.
std::map<int, size_t> Movable(const PlanDraft& draft, const MemoryPlan& plan,
                              const std::vector<PlanIndex>& outputs) {
  std::map<int, size_t> movable;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const PlanIndex output = outputs[i];
    if (draft.address(output).kind != Address::Kind::kArena) continue;
    const int storage = plan.storage[static_cast<size_t>(output)];
    const bool whole = draft.value(storage).bytes == draft.value(output).bytes &&
                       draft.address(storage) == draft.address(output);
    if (whole && draft.value(output).bytes > 0) movable.try_emplace(storage, i);
  }
  return movable;
}

}  // namespace

PlanUses UsesOf(const PlanDraft& draft, const MemoryPlan& plan, const std::vector<bool>& written,
                const std::vector<PlanIndex>& outputs) {
  PlanUses uses;
  uses.inputs.resize(written.size());
  uses.outputs.resize(outputs.size());
  for (size_t i = 0; i < written.size(); ++i) uses.inputs[i].written = written[i];
  const std::map<int, size_t> movable = Movable(draft, plan, outputs);
  for (const auto& [storage, output] : movable) uses.outputs[output].movable = true;
  ForEachOperand(draft, [&](size_t step, PlanIndex index, size_t number) {
    if (index < 0) return;
    const Address& address = draft.address(index);
    const bool remote = draft.steps[step].collective;
    if (address.kind == Address::Kind::kInput) {
      InputUse& use = uses.inputs[address.offset];
      use.remote = use.remote || remote;
      use.last = std::max(use.last, EndOf(draft, step));
      use.operands.push_back(number);
    } else if (address.kind == Address::Kind::kArena) {
      const auto found = movable.find(plan.storage[static_cast<size_t>(index)]);
      if (found == movable.end()) return;
      OutputUse& use = uses.outputs[found->second];
      if (use.operands.empty()) {
        use.first = static_cast<int>(step);
        use.over = InputsUnder(draft, step, index);
      }
      use.remote = use.remote || remote;
      use.operands.push_back(number);
    }
  });
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Address& address = draft.address(outputs[i]);
    if (address.kind == Address::Kind::kInput) {
      uses.inputs[address.offset].last = static_cast<int>(draft.steps.size());
    } else if (address.kind == Address::Kind::kArena) {
      const auto found = movable.find(plan.storage[static_cast<size_t>(outputs[i])]);
      if (found != movable.end()) uses.outputs[i].within = static_cast<int>(found->second);
    }
  }
  return uses;
}

std::vector<bool> WrittenInputs(const BoundGraph& graph) {
  const std::vector<NodeId> inputs = graph.graph().DataNodes();
  std::vector<bool> written(inputs.size());
  for (const InPlaceWrite& write : graph.writes()) {
    const auto at = std::find(inputs.begin(), inputs.end(), graph.StorageRoot(write.target).node);
    if (at != inputs.end()) written[static_cast<size_t>(at - inputs.begin())] = true;
  }
  return written;
}

bool IsAligned(const void* data, DataType dtype) {
  const int bytes = std::min(BitsOf(dtype) / 8, kMostAlignment);
  return bytes <= 1 || reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes) == 0;
}

}  // namespace npumesh
