#include "graph/ops/moe_exchange.h"

#include <algorithm>
#include <tuple>

#include "graph/ops/collective.h"

namespace npumesh::moe {

Result<Placement> PlacementOf(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members, hcom::MembersOf(op, "group_ep"));
  Placement placement;
  placement.ranks = static_cast<int64_t>(members.world_ranks.size());
  placement.rank = members.rank;
  placement.experts = op.attr_int("moe_expert_num");
  placement.shared_ranks = op.attr_int("shared_expert_rank_num");
  placement.shared_experts = placement.shared_ranks == 0 ? 0 : op.attr_int("shared_expert_num");
  placement.special = op.attr_int("zero_expert_num") + op.attr_int("copy_expert_num") +
                      op.attr_int("const_expert_num");
  if (op.attr_int("ep_world_size") != placement.ranks ||
      op.attr_int("ep_rank_id") != placement.rank) {
    return Error(Code::kInvalidArgument,
                 "{}: ep_rank_id {} of ep_world_size {}, but this is rank {} of the {} in group "
                 "\"{}\"",
                 op.Who(), op.attr_int("ep_rank_id"), op.attr_int("ep_world_size"), placement.rank,
                 placement.ranks, op.attr_string("group_ep"));
  }
  const bool shared_fit =
      placement.shared_ranks >= 0 && placement.shared_ranks < placement.ranks &&
      placement.shared_experts >= 0 &&
      (placement.shared_ranks == 0 ||
       (placement.shared_experts > 0 && placement.shared_ranks % placement.shared_experts == 0));
  if (!shared_fit || placement.experts < 1 ||
      placement.experts % (placement.ranks - placement.shared_ranks) != 0) {
    return Error(Code::kInvalidArgument,
                 "{}: {} experts and {} shared ones on {} shared ranks cannot be spread over {} "
                 "ranks",
                 op.Who(), placement.experts, placement.shared_experts, placement.shared_ranks,
                 placement.ranks);
  }
  if (op.attr_int("tp_world_size") > 1 || op.attr_int("expert_shard_type") != 0) {
    return Error(Code::kUnsupported, "{}: tp_world_size {} and expert_shard_type {}, expected 0",
                 op.Who(), op.attr_int("tp_world_size"), op.attr_int("expert_shard_type"));
  }
  return placement;
}

Routes::Routes(std::string who, const Placement& placement, int64_t tokens, int64_t k)
    : who_(std::move(who)),
      placement_(placement),
      tokens_(tokens),
      k_(k),
      counts_(static_cast<size_t>(placement.ranks)) {
  routes_.reserve(static_cast<size_t>(most()));
}

Status Routes::Find(const int32_t* ids, const uint8_t* active) {
  routes_.clear();
  std::fill(counts_.begin(), counts_.end(), 0);
  const int64_t share = placement_.experts_of_rank();
  const auto add = [&](int64_t rank, int64_t expert, int64_t token, int64_t choice) {
    routes_.push_back({static_cast<int32_t>(rank), static_cast<int32_t>(expert),
                       static_cast<int32_t>(token), static_cast<int32_t>(choice)});
    ++counts_[static_cast<size_t>(rank)];
  };
  for (int64_t token = 0; token < tokens_; ++token) {
    if (active != nullptr && active[token] == 0) continue;
    for (int64_t choice = 0; choice < k_; ++choice) {
      const int64_t id = ids[token * k_ + choice];
      if (id < 0 || id >= placement_.experts + placement_.special) {
        return Error(Code::kInvalidArgument,
                     "{}: expert_ids holds {} for token {}, expected 0 to {}", who_, id, token,
                     placement_.experts + placement_.special - 1);
      }
      if (id >= placement_.experts) continue;
      add(placement_.shared_ranks + id / share, id % share, token, choice);
    }
    for (int64_t shared = 0; shared < placement_.shared_experts; ++shared) {
      const int64_t copies = placement_.shared_ranks / placement_.shared_experts;
      add(shared * copies + placement_.rank % copies, 0, token, k_ + shared);
    }
  }
  std::sort(routes_.begin(), routes_.end(), [](const Route& a, const Route& b) {
    return std::tie(a.rank, a.expert, a.token, a.choice) <
           std::tie(b.rank, b.expert, b.token, b.choice);
  });
  // The bound of rows that a rank can get relies on it.
  for (size_t i = 1; i < routes_.size(); ++i) {
    const Route& a = routes_[i - 1];
    const Route& b = routes_[i];
    if (std::tie(a.rank, a.expert, a.token) != std::tie(b.rank, b.expert, b.token)) continue;
    return Error(Code::kInvalidArgument, "{}: expert_ids names one expert twice for token {}", who_,
                 a.token);
  }
  return Status();
}

}  // namespace npumesh::moe
