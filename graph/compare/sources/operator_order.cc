#include "graph/compare/sources/operator_order.h"

#include <algorithm>

namespace npumesh {

bool IsCollectiveType(std::string_view type) {
  return type.starts_with("Hcom") || type.starts_with("Distributed.");
}

Result<OperatorOrder> OperatorOrder::FromGraph(const Graph& graph, const OpRegistry& registry) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> nodes, graph.StableOrder());
  OperatorOrder order;
  order.has_edges_ = true;
  std::map<NodeId, int> places;
  for (const NodeId id : nodes) {
    const Node& node = graph.node(id);
    if (node.removed) continue;
    Entry entry{OperatorKey(node.name), {}, false};
    const Operator* const op = registry.Find(node.type);
    entry.collective = op != nullptr ? op->collective.has_value() : node.type.starts_with("Hcom");
    for (const std::optional<Value>& input : node.inputs) {
      if (input) entry.producers.push_back(places[input->node]);
    }
    places[id] = static_cast<int>(order.entries_.size());
    order.places_.emplace(entry.key, static_cast<int>(order.entries_.size()));
    order.entries_.push_back(std::move(entry));
  }
  return order;
}

OperatorOrder OperatorOrder::FromSource(const TensorSource& source) {
  OperatorOrder order;
  for (const SourceOperator& op : source.operators()) {
    order.places_.emplace(op.key, static_cast<int>(order.entries_.size()));
    order.entries_.push_back({op.key, {}, IsCollectiveType(op.type)});
  }
  return order;
}

int OperatorOrder::PlaceOf(std::string_view key) const {
  const auto place = places_.find(key);
  return place == places_.end() ? -1 : place->second;
}

bool OperatorOrder::IsCollective(std::string_view key) const {
  const int place = PlaceOf(key);
  return place >= 0 && entries_[static_cast<size_t>(place)].collective;
}

std::vector<std::string> OperatorOrder::Sorted(std::vector<std::string> keys) const {
  const auto place = [this](const std::string& key) {
    const int known = PlaceOf(key);
    return known < 0 ? static_cast<int>(entries_.size()) : known;
  };
  std::stable_sort(keys.begin(), keys.end(),
                   [&](const std::string& a, const std::string& b) { return place(a) < place(b); });
  return keys;
}

bool OperatorOrder::Sees(std::string_view key, const std::set<std::string>& others) const {
  const int start = PlaceOf(key);
  if (start < 0) return !others.empty();
  if (!has_edges_) {
    return std::any_of(others.begin(), others.end(),
                       [&](const std::string& other) { return PlaceOf(other) < start; });
  }
  std::vector<bool> visited(entries_.size());
  std::vector<int> open = entries_[static_cast<size_t>(start)].producers;
  while (!open.empty()) {
    const auto place = static_cast<size_t>(open.back());
    open.pop_back();
    if (visited[place]) continue;
    visited[place] = true;
    if (others.count(entries_[place].key) > 0) return true;
    open.insert(open.end(), entries_[place].producers.begin(), entries_[place].producers.end());
  }
  return false;
}

}  // namespace npumesh
