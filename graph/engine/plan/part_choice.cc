#include "graph/engine/plan/part_choice.h"

#include <algorithm>
#include <map>
#include <optional>

namespace npumesh {

PartChoice::PartChoice(const GraphAnalysis& graph, GroupProvider* groups)
    : graph_(graph),
      groups_(groups),
      shared_(StaticPartsOf(graph.options())),
      chooses_(shared_ != nullptr && !shared_->chosen()) {}

Status PartChoice::FindStaticOperators() {
  if (!chooses_) return Status();
  NPUMESH_ASSIGN_OR_RETURN(
      static_, StaticOperators(graph_.model(), graph_.bound(), graph_.order(), groups_));
  return Status();
}

bool PartChoice::Keeps(NodeId id) const {
  if (shared_ == nullptr || chooses_) return false;
  const std::vector<StaticPart>& parts = shared_->parts();
  return std::any_of(parts.begin(), parts.end(), [id](const StaticPart& part) {
    return std::binary_search(part.nodes_by_id.begin(), part.nodes_by_id.end(), id);
  });
}

std::vector<StaticPart*> PartChoice::Parts() {
  if (shared_ == nullptr) return {};
  Fusions fusions;
  for (const FusedStep& fused : graph_.fusions()) fusions.push_back(fused.nodes);
  if (chooses_) ChooseFirst(fusions);
  std::vector<StaticPart>& parts = shared_->parts();
  const std::vector<std::set<Value>> read_outside = StoragesReadOutside(parts);
  std::vector<StaticPart*> fitting;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (Fits(parts[i], fusions, read_outside[i])) fitting.push_back(&parts[i]);
  }
  return fitting;
}

void PartChoice::ChooseFirst(const Fusions& fusions) {
  // What computes on images in blocks depends on its neighbours.
  std::vector<bool> shareable = static_;
  for (const NodeId id : graph_.Kept()) {
    if (graph_.layouts().Find(id) != nullptr) shareable[static_cast<size_t>(id)] = false;
  }
  std::vector<StaticPart> parts = ChooseParts(graph_.bound(), graph_.Kept(), std::move(shareable),
                                              fusions, shared_->lower_limit());
  const std::vector<std::set<Value>> read_outside = StoragesReadOutside(parts);
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const Value value : read_outside[i]) {
      parts[i].results.push_back({value, graph_.inference().type(value).bytes()});
    }
  }
  if (!parts.empty()) Remember();
  shared_->Choose(std::move(parts));
}

bool PartChoice::Folds(NodeId id) const {
  return static_[static_cast<size_t>(id)] && graph_.Replaced({id, 0});
}

std::set<NodeId> PartChoice::ComputedAnew() const {
  std::set<NodeId> anew;
  for (const NodeId id : graph_.order()) {
    if (graph_.bound().op(id) == nullptr) continue;
    const std::vector<std::optional<Value>>& inputs = graph_.graph().node(id).inputs;
    const bool behind = std::any_of(inputs.begin(), inputs.end(), [&](const auto& input) {
      return input && anew.count(input->node) > 0;
    });
    if (behind || !static_[static_cast<size_t>(id)]) anew.insert(id);
  }
  return anew;
}

void PartChoice::Remember() {
  const std::set<NodeId> anew = ComputedAnew();
  std::set<NodeId> read;  // by nodes that will ask for the value again
  for (const NodeId id : graph_.order()) {
    if (Folds(id) && anew.count(id) == 0) continue;
    for (const std::optional<Value>& input : graph_.graph().node(id).inputs) {
      if (input) read.insert(input->node);
    }
  }
  InferenceMemory& memory = shared_->memory();
  for (const NodeId id : graph_.order()) {
    if (!static_[static_cast<size_t>(id)]) continue;
    memory.entries[id] = graph_.inference().EntryOf(id, Folds(id) && read.count(id) == 0);
  }
}

std::vector<std::set<Value>> PartChoice::StoragesReadOutside(
    const std::vector<StaticPart>& parts) const {
  std::map<NodeId, size_t> part_of;
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const NodeId id : parts[i].nodes) part_of[id] = i;
  }
  std::vector<std::set<Value>> storages(parts.size());
  for (const NodeId id : graph_.Kept()) {
    const auto reader = part_of.find(id);
    for (const std::optional<Value>& input : graph_.graph().node(id).inputs) {
      if (!input || graph_.Folded(*input)) continue;
      const Value root = graph_.bound().StorageRoot(*input);
      const auto producer = part_of.find(root.node);
      if (producer == part_of.end() || graph_.Folded(root)) continue;
      const bool inside = reader != part_of.end() && reader->second == producer->second;
      if (!inside) storages[producer->second].insert(root);
    }
  }
  return storages;
}

bool PartChoice::Fits(const StaticPart& part, const Fusions& fusions,
                      const std::set<Value>& read_outside) const {
  const auto known = [&](Value value) {
    return std::any_of(part.results.begin(), part.results.end(),
                       [&](const PartResult& result) { return result.value == value; });
  };
  const auto same = [&](NodeId id) {
    return graph_.needed(id) && (chooses_ || graph_.inference().recalled(id));
  };
  return std::all_of(part.nodes.begin(), part.nodes.end(), same) &&
         std::all_of(read_outside.begin(), read_outside.end(), known) && SameFusions(part, fusions);
}

}  // namespace npumesh
