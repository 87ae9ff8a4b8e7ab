// Static parts in a compilation: which there are, how one is made, and how a plan takes it over.
#include <algorithm>
#include <set>

#include "graph/engine/compiler.h"
#include "graph/passes/analysis/node_error.h"

namespace npumesh {

Status Compiler::FindStaticOperators() {
  chooses_parts_ = shares_parts() && !options_.static_parts->chosen();
  if (!chooses_parts_) return Status();
  NPUMESH_ASSIGN_OR_RETURN(static_, StaticOperators(model_, bound_, order_, groups_));
  return Status();
}

void Compiler::UseParts() {
  if (!shares_parts()) return;
  std::vector<std::vector<NodeId>> fusions;
  for (const FusedStep& fused : fused_) fusions.push_back(fused.nodes);
  if (chooses_parts_) ChooseFirstParts(fusions);
  std::vector<StaticPart>& parts = options_.static_parts->parts();
  const std::vector<std::set<Value>> read_outside = StoragesReadOutside(parts);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!Fits(parts[i], fusions, read_outside[i])) continue;
    for (const NodeId id : parts[i].nodes) part_by_node_[id] = used_parts_.size();
    UsedPart& used = used_parts_.emplace_back();
    used.part = &parts[i];
    used.results.assign(parts[i].results.size(), -1);
  }
}

void Compiler::ChooseFirstParts(const std::vector<std::vector<NodeId>>& fusions) {
  StaticParts& shared = *options_.static_parts;
  std::vector<StaticPart> parts =
      ChooseParts(bound_, Kept(order_), static_, fusions, shared.lower_limit());
  const std::vector<std::set<Value>> read_outside = StoragesReadOutside(parts);
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const Value value : read_outside[i]) {
      parts[i].results.push_back({value, inference_.type(value).bytes()});
    }
  }
  if (!parts.empty()) Remember(static_);
  shared.Choose(std::move(parts));
}

void Compiler::Remember(const std::vector<bool>& is_static) {
  const auto folds = [&](NodeId id) {
    return is_static[static_cast<size_t>(id)] && Replaced({id, 0});
  };
  // Operators that the next compilation computes anew, although they are static perhaps: something
  // that they are made from is not.
  std::set<NodeId> computed_anew;
  std::set<NodeId> read;  // by nodes that will ask for the value again
  for (const NodeId id : order_) {
    const std::vector<std::optional<Value>>& inputs = graph_.node(id).inputs;
    const bool anew = bound_.op(id) != nullptr &&
                      (!is_static[static_cast<size_t>(id)] ||
                       std::any_of(inputs.begin(), inputs.end(), [&](const auto& input) {
                         return input && computed_anew.count(input->node) > 0;
                       }));
    if (anew) computed_anew.insert(id);
    if (folds(id) && !anew) continue;
    for (const std::optional<Value>& input : inputs) {
      if (input) read.insert(input->node);
    }
  }
  InferenceMemory& memory = options_.static_parts->memory();
  for (const NodeId id : order_) {
    if (!is_static[static_cast<size_t>(id)]) continue;
    memory.entries[id] = inference_.EntryOf(id, folds(id) && read.count(id) == 0);
  }
}

std::vector<std::set<Value>> Compiler::StoragesReadOutside(
    const std::vector<StaticPart>& parts) const {
  std::map<NodeId, size_t> part_of;
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const NodeId id : parts[i].nodes) part_of[id] = i;
  }
  std::vector<std::set<Value>> storages(parts.size());
  for (const NodeId id : Kept(order_)) {
    const auto reader = part_of.find(id);
    for (const std::optional<Value>& input : graph_.node(id).inputs) {
      if (!input || Folded(*input)) continue;
      const Value root = bound_.StorageRoot(*input);
      const auto producer = part_of.find(root.node);
      if (producer == part_of.end() || Folded(root)) continue;
      const bool inside = reader != part_of.end() && reader->second == producer->second;
      if (!inside) storages[producer->second].insert(root);
    }
  }
  return storages;
}

bool Compiler::Fits(const StaticPart& part, const std::vector<std::vector<NodeId>>& fusions,
                    const std::set<Value>& read_outside) const {
  const auto known = [&](Value value) {
    return std::any_of(part.results.begin(), part.results.end(),
                       [&](const PartResult& result) { return result.value == value; });
  };
  const auto same = [&](NodeId id) {
    return needed_[static_cast<size_t>(id)] && (chooses_parts_ || inference_.recalled(id));
  };
  return std::all_of(part.nodes.begin(), part.nodes.end(), same) &&
         std::all_of(read_outside.begin(), read_outside.end(), known) && SameFusions(part, fusions);
}

Compiler::UsedPart* Compiler::PartOf(NodeId id) {
  const auto found = part_by_node_.find(id);
  return found == part_by_node_.end() ? nullptr : &used_parts_[found->second];
}

void Compiler::Swap(Draft& draft) {
  std::swap(draft.steps, result_->steps_);
  std::swap(draft.constants, result_->constants_);
  std::swap(draft.scratch_bytes, result_->scratch_bytes_);
  std::swap(draft.index, index_);
  std::swap(draft.constant_index, constant_index_);
  std::swap(draft.values, values_);
  std::swap(draft.addresses, addresses_);
  std::swap(draft.plan_steps, plan_steps_);
  std::swap(draft.step_slots, step_slots_);
}

void Compiler::CompilePart(UsedPart& used, ErrorList& errors) {
  Draft draft;
  Swap(draft);
  making_ = used.part;
  making_->outside.clear();
  bool made = true;
  for (const NodeId id : used.part->nodes) {
    const Status status = MakeStepOf(id);
    if (!status.ok()) errors.Add(AtNode(graph_.node(id), status));
    made = made && status.ok();
  }
  if (made) FinishPart(*used.part);
  used.compiled_now = made;
  making_ = nullptr;
  Swap(draft);
}

void Compiler::FinishPart(StaticPart& part) {
  std::map<PlanIndex, size_t> results;
  for (size_t i = 0; i < part.results.size(); ++i) {
    const PlanIndex index = index_.at(part.results[i].value);
    results[index] = i;
    values_[static_cast<size_t>(index)].external = true;
  }
  const PlanEffort effort = options_.spare_memory ? PlanEffort::kThorough : PlanEffort::kQuick;
  const MemoryPlan plan = PlanMemory(values_, plan_steps_, kHbmAlignment, effort);
  part.steps.clear();
  for (size_t i = 0; i < plan_steps_.size(); ++i) {
    PartStep& made = part.steps.emplace_back();
    for (const PlanIndex index : step_slots_[i]) {
      made.inputs.push_back(OperandOf(index, plan, results));
    }
    for (const PlanIndex index : plan_steps_[i].writes) {
      made.outputs.push_back(OperandOf(index, plan, results));
    }
    made.step = result_->steps_[i];
    part.step_of[made.step.node] = i;
  }
  part.tensors = NamedBlocks(plan);
  part.block_bytes = plan.arena_bytes;
  part.constants = std::move(result_->constants_);
  part.scratch_bytes = result_->scratch_bytes_;
  part.compiled = true;
}

PartOperand Compiler::OperandOf(PlanIndex index, const MemoryPlan& plan,
                                const std::map<PlanIndex, size_t>& results) const {
  if (index < 0) return {};
  const PlanIndex root = StorageOf(index);
  if (const auto result = results.find(root); result != results.end()) {
    return {PartOperand::Kind::kResult, result->second};
  }
  const Address& address = addresses_[static_cast<size_t>(root)];
  switch (address.kind) {
    case Address::Kind::kConstant:
      return {PartOperand::Kind::kConstant, address.offset};
    case Address::Kind::kInput:
      return {PartOperand::Kind::kOutside, address.offset};
    default:
      return {PartOperand::Kind::kInside, plan.offsets[static_cast<size_t>(index)]};
  }
}

void Compiler::TakePartStep(UsedPart& used, NodeId id) {
  const StaticPart& part = *used.part;
  const auto found = part.step_of.find(id);
  if (!part.compiled || found == part.step_of.end()) return;
  const PartStep& made = part.steps[found->second];
  Step step = made.step;
  step.part = static_cast<int>(&used - used_parts_.data());
  PlanStep plan;
  std::vector<PlanIndex> slots;
  for (const PartOperand& operand : made.inputs) {
    slots.push_back(IndexOf(used, operand));
    if (slots.back() >= 0) plan.reads.push_back(slots.back());
  }
  for (const PartOperand& operand : made.outputs) plan.writes.push_back(IndexOf(used, operand));
  used.steps.push_back(result_->steps_.size());
  result_->steps_.push_back(std::move(step));
  result_->scratch_bytes_ = std::max(result_->scratch_bytes_, part.scratch_bytes);
  plan_steps_.push_back(std::move(plan));
  step_slots_.push_back(std::move(slots));
}

Compiler::PlanIndex Compiler::IndexOf(UsedPart& used, const PartOperand& operand) {
  const StaticPart& part = *used.part;
  const auto at = static_cast<size_t>(operand.at);
  switch (operand.kind) {
    case PartOperand::Kind::kAbsent:
      return -1;
    case PartOperand::Kind::kConstant:
      return AddConstant(part.constants[at]);
    case PartOperand::Kind::kOutside:
      return IndexOf(part.outside[at]);
    case PartOperand::Kind::kResult: {
      PlanIndex& index = used.results[at];
      if (index < 0) {
        PlanValue value;
        value.bytes = part.results[at].bytes;
        index = AddValue(value, {Address::Kind::kArena});
        index_[part.results[at].value] = index;
      }
      return index;
    }
    case PartOperand::Kind::kInside:
      break;
  }
  if (used.block < 0) {
    PlanValue block;
    block.bytes = part.block_bytes;
    used.block = AddValue(block, {Address::Kind::kArena});
  }
  const auto [inside, added] = used.inside.try_emplace(operand.at, -1);
  if (added) {
    PlanValue value;
    value.same_as = used.block;
    inside->second = AddValue(value, {Address::Kind::kArena, operand.at});
  }
  return inside->second;
}

Compiler::PlanIndex Compiler::AddOutside(Value value) {
  PlanValue outside;
  outside.bytes = inference_.type(value).bytes();
  outside.external = true;
  making_->outside.push_back(value);
  return AddValue(outside, {Address::Kind::kInput, making_->outside.size() - 1});
}

void Compiler::TakePartFacts(const MemoryPlan& plan) {
  PlanFacts& facts = result_->facts_;
  facts.steps_compiled = result_->steps_.size();
  for (const UsedPart& used : used_parts_) {
    const StaticPart& part = *used.part;
    facts.parts.push_back(
        {part.nodes.size(), part.steps.size(), part.block_bytes, used.compiled_now});
    if (!used.compiled_now) facts.steps_compiled -= part.steps.size();
    if (used.block < 0) continue;
    const uint64_t offset = plan.offsets[static_cast<size_t>(used.block)];
    for (PlannedTensor tensor : part.tensors) {
      tensor.offset += offset;
      tensor.first = static_cast<int>(used.steps[static_cast<size_t>(tensor.first)]);
      tensor.last = static_cast<int>(used.steps[static_cast<size_t>(tensor.last)]);
      facts.tensors.push_back(std::move(tensor));
    }
  }
}

}  // namespace npumesh
