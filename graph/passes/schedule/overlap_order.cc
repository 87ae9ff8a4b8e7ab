#include "graph/passes/schedule/overlap_order.h"

#include <algorithm>
#include <set>

namespace npumesh {
namespace {

class Overlapper {
 public:
  Overlapper(const std::vector<NodeId>& order, const OrderEdges& edges,
             const std::vector<bool>& collectives)
      : order_(order),
        edges_(edges),
        collectives_(collectives),
        place_(collectives.size(), kNowhere),
        waiting_(collectives.size(), 0),
        needs_(collectives.size(), 0) {
    for (size_t i = 0; i < order.size(); ++i) place_[At(order[i])] = i;
    for (const NodeId id : order) waiting_[At(id)] = edges.predecessors[At(id)].size();
  }

  std::vector<NodeId> Run() {
    for (const NodeId id : order_) {
      if (waiting_[At(id)] == 0) MakeReady(id);
    }
    while (result_.size() < order_.size()) PlaceNext();
    return std::move(result_);
  }

 private:
  static constexpr size_t kNowhere = ~size_t{0};
  static size_t At(NodeId id) { return static_cast<size_t>(id); }

  void MakeReady(NodeId id) {
    if (collectives_[At(id)]) {
      launches_.insert(place_[At(id)]);
    } else if (needs_[At(id)] <= finished_) {
      free_.insert(place_[At(id)]);
    } else {
      held_.insert(place_[At(id)]);
    }
  }

  void PlaceNext() {
    std::set<size_t>& from = !launches_.empty() ? launches_ : !free_.empty() ? free_ : held_;
    const NodeId id = order_[*from.begin()];
    from.erase(from.begin());
    if (collectives_[At(id)]) needs_[At(id)] = ++launched_;
    if (&from == &held_) FinishUntil(needs_[At(id)]);
    result_.push_back(id);
    for (const NodeId next : edges_.successors[At(id)]) {
      if (place_[At(next)] == kNowhere) continue;
      needs_[At(next)] = std::max(needs_[At(next)], needs_[At(id)]);
      if (--waiting_[At(next)] == 0) MakeReady(next);
    }
  }

  // Collectives end in the order of their launch.
  void FinishUntil(size_t launch) {
    finished_ = launch;
    for (auto held = held_.begin(); held != held_.end();) {
      const bool freed = needs_[At(order_[*held])] <= finished_;
      if (freed) free_.insert(*held);
      held = freed ? held_.erase(held) : std::next(held);
    }
  }

  const std::vector<NodeId>& order_;
  const OrderEdges& edges_;
  const std::vector<bool>& collectives_;
  std::vector<size_t> place_;    // in `order_`, by node
  std::vector<size_t> waiting_;  // predecessors that are not placed, by node
  std::vector<size_t> needs_;    // the latest collective that it depends on, by number of launch
  // Nodes that are ready, by their place in `order_`.
  std::set<size_t> launches_;
  std::set<size_t> free_;
  std::set<size_t> held_;
  size_t launched_ = 0;
  size_t finished_ = 0;
  std::vector<NodeId> result_;
};

}  // namespace

std::vector<NodeId> OverlapOrder(const std::vector<NodeId>& order, const OrderEdges& edges,
                                 const std::vector<bool>& collectives) {
  return Overlapper(order, edges, collectives).Run();
}

}  // namespace npumesh
