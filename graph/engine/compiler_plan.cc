// The last part of a compilation: streams, addresses, and what is told about them.
#include <algorithm>

#include "graph/engine/compiler.h"
#include "graph/passes/schedule/stream_plan.h"
#include "runtime/base/log.h"

namespace npumesh {

void Compiler::AssignStreams() {
  if (!options_.overlap_collectives) return;
  std::vector<StepPlace> places;
  for (Step& step : result_->steps_) {
    // All kernels share one scratch area, so a kernel that uses it runs beside nothing.
    step.beside = step.collective && step.kernel->scratch_bytes() == 0;
    places.push_back(step.beside       ? StepPlace::kBeside
                     : step.collective ? StepPlace::kAlone
                                       : StepPlace::kCompute);
  }
  const std::vector<int> waits = PlanWaits(values_, places, plan_steps_);
  for (size_t i = 0; i < waits.size(); ++i) result_->steps_[i].wait_for = waits[i];
}

void Compiler::AssignAddresses() {
  const PlanEffort effort = options_.spare_memory ? PlanEffort::kThorough : PlanEffort::kQuick;
  const MemoryPlan plan = PlanMemory(values_, plan_steps_, kHbmAlignment, effort);
  result_->arena_bytes_ = plan.arena_bytes;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (addresses_[i].kind == Address::Kind::kArena) addresses_[i].offset += plan.offsets[i];
  }
  const auto address = [this](PlanIndex index) {
    return index < 0 ? Address() : addresses_[static_cast<size_t>(index)];
  };
  for (size_t i = 0; i < plan_steps_.size(); ++i) {
    Step& step = result_->steps_[i];
    for (const PlanIndex index : step_slots_[i]) step.inputs.push_back(address(index));
    for (const PlanIndex index : plan_steps_[i].writes) step.outputs.push_back(address(index));
  }
  for (const PlanIndex index : output_index_) result_->outputs_.push_back(address(index));
  TakeFacts(plan);
  if (options_.trace) Trace(plan);
}

void Compiler::MarkConstants() {
  std::vector<bool>& read = result_->constant_is_read_;
  read.assign(result_->constants_.size(), false);
  const auto mark = [&read](const Address& address) {
    if (address.kind == Address::Kind::kConstant) read[address.offset] = true;
  };
  for (const Step& step : result_->steps_) {
    for (size_t slot = 0; slot < step.inputs.size(); ++slot) {
      if (step.kernel->reads(static_cast<int>(slot))) mark(step.inputs[slot]);
    }
  }
  for (const Address& output : result_->outputs_) mark(output);
}

void Compiler::TakeFacts(const MemoryPlan& plan) {
  TakeNodeFacts();
  PlanFacts& facts = result_->facts_;
  facts.live_bytes = plan.live_bytes;
  facts.tensors = NamedBlocks(plan);
  TakePartFacts(plan);
  std::stable_sort(
      facts.tensors.begin(), facts.tensors.end(),
      [](const PlannedTensor& a, const PlannedTensor& b) { return a.first < b.first; });
}

std::vector<PlannedTensor> Compiler::NamedBlocks(const MemoryPlan& plan) const {
  std::set<PlanIndex> of_parts;
  for (const UsedPart& used : used_parts_) of_parts.insert(used.block);
  std::vector<PlannedTensor> tensors;
  std::map<int, size_t> by_value;  // by owning value
  for (const PlannedBlock& block : plan.blocks) {
    if (making_ == nullptr && of_parts.count(block.value) > 0) continue;
    by_value[block.value] = tensors.size();
    tensors.push_back({"", {}, block.offset, block.bytes, block.first, block.last, false});
  }
  for (const auto& [index, name] : ValueNames()) {
    const auto at = by_value.find(plan.storage[static_cast<size_t>(index)]);
    if (at == by_value.end()) continue;
    PlannedTensor& tensor = tensors[at->second];
    tensor.output = tensor.output || values_[static_cast<size_t>(index)].output;
    if (tensor.name.empty()) {
      tensor.name = name;
    } else {
      tensor.also.push_back(name);
    }
  }
  return tensors;
}

void Compiler::TakeNodeFacts() {
  PlanFacts& facts = result_->facts_;
  for (const Node& node : graph_.nodes()) {
    if (node.removed || bound_.op(node.id) == nullptr) continue;
    if (Replaced({node.id, 0})) {
      facts.folded.push_back(node.name);
    } else if (!needed_[static_cast<size_t>(node.id)]) {
      facts.pruned.push_back(node.name);
    }
  }
}

std::map<Compiler::PlanIndex, std::string> Compiler::ValueNames() const {
  std::map<PlanIndex, std::string> names;
  for (const auto& [value, index] : index_) {
    names.try_emplace(index, fmt::format("{}:{}", graph_.node(value.node).name, value.port));
  }
  for (size_t i = 0; i < plan_steps_.size(); ++i) {
    for (size_t port = 0; port < plan_steps_[i].writes.size(); ++port) {
      names.try_emplace(plan_steps_[i].writes[port],
                        fmt::format("{}:{}", result_->steps_[i].name, port));
    }
  }
  return names;
}

void Compiler::Trace(const MemoryPlan& plan) const {
  const auto say = [this](std::string_view text) {
    WriteLog(LogLevel::kInfo, {__FILE__, __LINE__},
             fmt::format("graph \"{}\": {}", graph_.name(), text));
  };
  const auto folded = std::count_if(order_.begin(), order_.end(), [this](NodeId id) {
    return bound_.op(id) != nullptr && inference_.folded(id);
  });
  say(fmt::format("{} nodes, {} needed, {} folded, {} steps, {} constants", graph_.nodes().size(),
                  order_.size(), folded, result_->steps_.size(), result_->constants_.size()));
  say(fmt::format("arena {} bytes, at most {} alive at once", plan.arena_bytes, plan.live_bytes));
  for (const Step& step : result_->steps_) {
    const std::string choice = step.kernel->choice().ToString();
    if (choice.empty()) continue;
    say(fmt::format("step \"{}\" ({}): kernel: {}", step.name, step.type, choice));
  }
  for (const UnfusedNode& unfused : result_->facts_.unfused) {
    say(fmt::format("step \"{}\": {}", unfused.step, unfused.ToString()));
  }
}

}  // namespace npumesh
