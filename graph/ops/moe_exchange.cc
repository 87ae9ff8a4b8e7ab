#include "graph/ops/moe_exchange.h"

#include <algorithm>
#include <tuple>

#include "graph/ops/collective.h"
#include "graph/ops/numbers.h"

namespace npumesh::moe {

Result<Placement> PlacementOf(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members, hcom::MembersOf(op, "group_ep"));
  Placement placement;
  placement.ranks = static_cast<int64_t>(members.world_ranks.size());
  placement.rank = members.rank;
  placement.experts = op.attr_int("moe_expert_num");
  placement.shared_ranks = op.attr_int("shared_expert_rank_num");
  placement.shared_experts = placement.shared_ranks == 0 ? 0 : op.attr_int("shared_expert_num");
  for (const AttrSpec& attr : op.schema().attrs) {
    const bool counts = attr.name == "zero_expert_num" || attr.name == "copy_expert_num" ||
                        attr.name == "const_expert_num";
    if (counts) placement.special += op.attr_int(attr.name);
  }
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
  for (const PortSpec& port : op.schema().inputs) {
    if (port.name == "elastic_info" && SlotIfFed(op, port.name) >= 0) {
      return Error(Code::kUnsupported, "{}: the input \"elastic_info\" is not supported", op.Who());
    }
  }
  return placement;
}

Chunks Chunks::Of(const Placement& placement, int64_t group_tokens, int64_t choices,
                  int64_t row_bytes) {
  const int64_t tokens = (group_tokens + placement.ranks - 1) / placement.ranks;
  Chunks chunks;
  chunks.count =
      std::clamp<int64_t>(fused::ChunksOf(static_cast<uint64_t>(tokens * choices * row_bytes)), 1,
                          std::max<int64_t>(tokens, 1));
  chunks.tokens = std::max<int64_t>((tokens + chunks.count - 1) / chunks.count, 1);
  return chunks;
}

Routes::Routes(std::string who, const Placement& placement, const Chunks& chunks, int64_t tokens,
               int64_t k)
    : who_(std::move(who)),
      placement_(placement),
      chunks_(chunks),
      tokens_(tokens),
      k_(k),
      counts_(static_cast<size_t>(chunks.count * placement.ranks)),
      first_(static_cast<size_t>(chunks.count + 1)) {
  routes_.reserve(static_cast<size_t>(most()));
}

Status Routes::Find(const int32_t* ids, const uint8_t* active) {
  routes_.clear();
  std::fill(counts_.begin(), counts_.end(), 0);
  for (int64_t token = 0; token < tokens_; ++token) {
    if (active != nullptr && active[token] == 0) continue;
    NPUMESH_RETURN_IF_ERROR(AddToken(ids, token));
  }
  std::sort(routes_.begin(), routes_.end(), [](const Route& a, const Route& b) {
    return std::tie(a.chunk, a.rank, a.expert, a.token, a.choice) <
           std::tie(b.chunk, b.rank, b.expert, b.token, b.choice);
  });
  // The bound of rows that a rank can get relies on it.
  for (size_t i = 1; i < routes_.size(); ++i) {
    const Route& a = routes_[i - 1];
    const Route& b = routes_[i];
    if (std::tie(a.rank, a.expert, a.token) != std::tie(b.rank, b.expert, b.token)) continue;
    return Error(Code::kInvalidArgument, "{}: expert_ids names one expert twice for token {}", who_,
                 a.token);
  }
  for (int64_t chunk = 0; chunk < chunks_.count; ++chunk) {
    const auto c = static_cast<size_t>(chunk);
    first_[c + 1] = first_[c];
    for (int64_t rank = 0; rank < placement_.ranks; ++rank) first_[c + 1] += count(chunk, rank);
  }
  return Status();
}

Status Routes::AddToken(const int32_t* ids, int64_t token) {
  const int64_t chunk = chunks_.Holding(token);
  const auto add = [&](int64_t rank, int64_t expert, int64_t choice) {
    routes_.push_back({static_cast<int32_t>(chunk), static_cast<int32_t>(rank),
                       static_cast<int32_t>(expert), static_cast<int32_t>(token),
                       static_cast<int32_t>(choice)});
    ++counts_[static_cast<size_t>(chunk * placement_.ranks + rank)];
  };
  const int64_t share = placement_.experts_of_rank();
  for (int64_t choice = 0; choice < k_; ++choice) {
    const int64_t id = ids[token * k_ + choice];
    if (id < 0 || id >= placement_.experts + placement_.special) {
      return Error(Code::kInvalidArgument, "{}: expert_ids holds {} for token {}, expected 0 to {}",
                   who_, id, token, placement_.experts + placement_.special - 1);
    }
    if (id < placement_.experts) add(placement_.shared_ranks + id / share, id % share, choice);
  }
  for (int64_t shared = 0; shared < placement_.shared_experts; ++shared) {
    const int64_t copies = placement_.shared_ranks / placement_.shared_experts;
    add(shared * copies + placement_.rank % copies, 0, k_ + shared);
  }
  return Status();
}

// ---- ExpandedRows ----

namespace {

// What a rank tells another: its tokens, the tokens it has room for, then routes by chunk and
// expert of the other rank.
constexpr int64_t kTokens = 0;
constexpr int64_t kRoom = 1;
constexpr int64_t kCounts = 2;
constexpr int64_t kRefused = -1;  // in place of the tokens

}  // namespace

ExpandedRows::ExpandedRows(std::string who, std::string node, const Placement& placement,
                           const Chunks& chunks)
    : who_(std::move(who)),
      node_(std::move(node)),
      placement_(placement),
      chunks_(chunks),
      entry_(kCounts + chunks.count * placement.experts_of_rank()),
      first_(static_cast<size_t>(placement.local_experts() * placement.ranks * chunks.count + 1)) {}

uint64_t ExpandedRows::scratch_bytes() const {
  return 2 * static_cast<uint64_t>(placement_.ranks * entry_) * sizeof(int64_t);
}

Status ExpandedRows::Hear(Communicator& group, void* scratch, const Routes& routes,
                          const Status& mine, int64_t room) {
  auto* told = static_cast<int64_t*>(scratch);
  int64_t* heard = told + placement_.ranks * entry_;
  Tell(routes, mine, room, told);
  NPUMESH_RETURN_IF_ERROR(
      group.AllToAll(told, heard, static_cast<uint64_t>(entry_), DataType::kInt64, node_));
  NPUMESH_RETURN_IF_ERROR(mine);
  NPUMESH_RETURN_IF_ERROR(CheckRoom(heard));
  LineUp(heard);
  return Status();
}

void ExpandedRows::Tell(const Routes& routes, const Status& mine, int64_t room,
                        int64_t* entries) const {
  std::fill_n(entries, placement_.ranks * entry_, 0);
  for (int64_t rank = 0; rank < placement_.ranks; ++rank) {
    entries[rank * entry_ + kTokens] = mine.ok() ? routes.tokens() : kRefused;
    entries[rank * entry_ + kRoom] = room;
  }
  if (!mine.ok()) return;
  for (const Route& route : routes.all()) {
    const int64_t at = route.chunk * placement_.experts_of_rank() + route.expert;
    ++entries[route.rank * entry_ + kCounts + at];
  }
}

Status ExpandedRows::CheckRoom(const int64_t* entries) const {
  int64_t tokens = 0;
  int64_t room = INT64_MAX;
  for (int64_t rank = 0; rank < placement_.ranks; ++rank) {
    const int64_t* entry = entries + rank * entry_;
    if (entry[kTokens] == kRefused) {
      return Error(Code::kPeerLost, "{}: rank {} of the group refuses its inputs; see its message",
                   who_, rank);
    }
    tokens += entry[kTokens];
    room = std::min(room, entry[kRoom]);
  }
  if (tokens <= room) return Status();
  return Error(
      Code::kInvalidArgument,
      "{}: the ranks have {} tokens together, but global_bs, or the tokens of the rank that "
      "has fewest, leaves room for {}; set global_bs to the most tokens of a rank times {}",
      who_, tokens, room, placement_.ranks);
}

void ExpandedRows::LineUp(const int64_t* entries) {
  int64_t row = 0;
  size_t i = 0;
  for (int64_t expert = 0; expert < placement_.local_experts(); ++expert) {
    for (int64_t rank = 0; rank < placement_.ranks; ++rank) {
      const int64_t* counts = entries + rank * entry_ + kCounts + expert;
      for (int64_t chunk = 0; chunk < chunks_.count; ++chunk) {
        first_[i++] = row;
        row += counts[chunk * placement_.experts_of_rank()];
      }
    }
  }
  first_[i] = row;
}

int64_t ExpandedRows::Count(int64_t chunk, int64_t rank) const {
  int64_t count = 0;
  for (int64_t expert = 0; expert < placement_.local_experts(); ++expert) {
    count += At(expert, rank, chunk + 1) - At(expert, rank, chunk);
  }
  return count;
}

Status CheckEnds(const std::string& who, const ExpandedRows& rows, const Placement& placement,
                 const int32_t* ends) {
  for (int64_t expert = 0; expert < placement.local_experts(); ++expert) {
    for (int64_t rank = 0; rank < placement.ranks; ++rank) {
      const int64_t end = rows.First(expert, rank + 1);
      const int64_t given = ends[expert * placement.ranks + rank];
      if (given == end) continue;
      return Error(
          Code::kMismatch,
          "{}: by ep_send_counts the rows of rank {} for local expert {} end at {}, by the "
          "expert_ids of the ranks at {}",
          who, rank, expert, given, end);
    }
  }
  return Status();
}

void LayOut(const Routes& routes, const ExpandedRows& rows, int64_t ranks, bool back,
            fused::RowTravel& travel) {
  for (int64_t chunk = 0; chunk < travel.chunks(); ++chunk) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const int64_t own = routes.count(chunk, rank);
      const int64_t theirs = rows.Count(chunk, rank);
      travel.SetRows(chunk, rank, back ? theirs : own, back ? own : theirs);
    }
  }
  travel.LineUp();
}

}  // namespace npumesh::moe
