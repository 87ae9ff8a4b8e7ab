#include "graph/engine/plan/plan_draft.h"

#include <fmt/format.h>

#include <string>

#include "runtime/device/device_memory.h"

namespace npumesh {
namespace {

// "<node>:<port>" of each value that has a name.
std::map<PlanIndex, std::string> ValueNames(const Graph& graph, const PlanDraft& draft) {
  std::map<PlanIndex, std::string> names;
  for (const auto& [value, index] : draft.index) {
    names.try_emplace(index, fmt::format("{}:{}", graph.node(value.node).name, value.port));
  }
  for (size_t i = 0; i < draft.plan_steps.size(); ++i) {
    const std::vector<PlanIndex>& writes = draft.plan_steps[i].writes;
    for (size_t port = 0; port < writes.size(); ++port) {
      names.try_emplace(writes[port], fmt::format("{}:{}", draft.steps[i].name, port));
    }
  }
  return names;
}

}  // namespace

void PlanDraft::AddStep(Step step, PlanStep plan, std::vector<PlanIndex> operands) {
  steps.push_back(std::move(step));
  plan_steps.push_back(std::move(plan));
  slots.push_back(std::move(operands));
}

PlanIndex PlanDraft::AddValue(const PlanValue& value, Address address) {
  values.push_back(value);
  addresses.push_back(address);
  return static_cast<PlanIndex>(values.size()) - 1;
}

PlanIndex PlanDraft::AddConstant(const Tensor& tensor) {
  const auto [known, added] = constant_index.try_emplace({tensor.data(), tensor.bytes()}, -1);
  if (!added) return known->second;
  PlanValue constant;
  constant.bytes = tensor.bytes();
  constant.external = true;
  known->second = AddValue(constant, {Address::Kind::kConstant, constants.size()});
  constants.push_back(tensor);
  return known->second;
}

PlanIndex PlanDraft::StorageOf(PlanIndex at) const {
  while (value(at).same_as >= 0) at = value(at).same_as;
  return at;
}

MemoryPlan PlanMemory(const PlanDraft& draft, bool spare, uint64_t margin) {
  const PlanEffort effort = spare ? PlanEffort::kThorough : PlanEffort::kQuick;
  return PlanMemory(draft.values, draft.plan_steps, kHbmAlignment, effort, margin);
}

std::vector<PlannedTensor> NamedBlocks(const Graph& graph, const PlanDraft& draft,
                                       const MemoryPlan& plan,
                                       const std::set<PlanIndex>& left_out) {
  std::vector<PlannedTensor> tensors;
  std::map<int, size_t> by_value;  // by owning value
  for (const PlannedBlock& block : plan.blocks) {
    if (left_out.count(block.value) > 0) continue;
    by_value[block.value] = tensors.size();
    tensors.push_back({"", {}, block.offset, block.bytes, block.first, block.last, false});
  }
  for (const auto& [index, name] : ValueNames(graph, draft)) {
    const auto at = by_value.find(plan.storage[static_cast<size_t>(index)]);
    if (at == by_value.end()) continue;
    PlannedTensor& tensor = tensors[at->second];
    tensor.output = tensor.output || draft.value(index).output;
    if (tensor.name.empty()) {
      tensor.name = name;
    } else {
      tensor.also.push_back(name);
    }
  }
  return tensors;
}

}  // namespace npumesh
