// Which token goes to which rank: what MoeDistributeDispatchV2 and MoeDistributeCombineV2 share.
// Ops reference 5.12.
//
// The first shared_expert_rank_num ranks of the group hold the shared experts, the others equal
// parts of the experts. A shared expert lives on several ranks; a token goes to the one that its
// own rank's number chooses. Both operators compute the same routes from expert_ids, so nothing but
// the tokens themselves has to travel.
#ifndef NPUMESH_GRAPH_OPS_MOE_EXCHANGE_H_
#define NPUMESH_GRAPH_OPS_MOE_EXCHANGE_H_

#include <string>
#include <vector>

#include "graph/ops/operator.h"

namespace npumesh::moe {

// The experts of a group of ranks.
struct Placement {
  int64_t ranks = 0;
  int64_t rank = 0;  // this one
  int64_t experts = 0;
  int64_t special = 0;  // ids behind them that are not sent: zero, copy and constant experts
  int64_t shared_ranks = 0;
  int64_t shared_experts = 0;

  int64_t experts_of_rank() const { return experts / (ranks - shared_ranks); }
  // Experts on a rank: at least one slot each, so that all ranks describe the same table.
  int64_t local_experts() const { return rank < shared_ranks ? 1 : experts_of_rank(); }
};

// Reads and checks the attributes both operators have. Not collective.
Result<Placement> PlacementOf(const OpContext& op);

// Token `token` goes to local expert `expert` of rank `rank`, as its choice `choice`; choices from
// K on are shared experts.
struct Route {
  int32_t rank = 0;
  int32_t expert = 0;
  int32_t token = 0;
  int32_t choice = 0;
};

// The routes of this rank's tokens.
class Routes {
 public:
  Routes(std::string who, const Placement& placement, int64_t tokens, int64_t k);

  // `ids` are [tokens, K]; a token whose `active` byte is 0 goes nowhere (null: all are active).
  // Sorted by rank, expert, token and choice. Errors (kInvalidArgument): an id that is no
  // expert, or stands twice with one token; the routes are then of no use.
  Status Find(const int32_t* ids, const uint8_t* active);

  const std::vector<Route>& all() const { return routes_; }
  // Routes to a rank.
  uint64_t count(int64_t rank) const { return counts_[static_cast<size_t>(rank)]; }
  // The most there can be.
  int64_t most() const { return tokens_ * (k_ + placement_.shared_experts); }
  int64_t choices() const { return k_ + placement_.shared_experts; }

 private:
  std::string who_;
  Placement placement_;
  int64_t tokens_;
  int64_t k_;
  std::vector<Route> routes_;
  std::vector<uint64_t> counts_;
};

}  // namespace npumesh::moe

#endif  // NPUMESH_GRAPH_OPS_MOE_EXCHANGE_H_
