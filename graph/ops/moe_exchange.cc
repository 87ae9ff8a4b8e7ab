#include "graph/ops/moe_exchange.h"

#include <algorithm>
#include <tuple>

#include "graph/ops/numbers.h"
#include "graph/ops/refusals.h"

namespace npumesh::moe {

namespace {

// The attributes that the operators have in common.
Placement PlacementOf(const OpContext& op, bool second, Check& check) {
  const GroupProvider::Members members = check.Take(hcom::MembersOf(op, "group_ep"));
  Placement placement;
  placement.ranks = static_cast<int64_t>(members.world_ranks.size());
  placement.rank = members.rank;
  placement.experts = op.attr_int("moe_expert_num");
  placement.shared_ranks = op.attr_int("shared_expert_rank_num");
  placement.shared_experts = placement.shared_ranks == 0 ? 0 : op.attr_int("shared_expert_num");
  if (second) {
    placement.special = op.attr_int("zero_expert_num") + op.attr_int("copy_expert_num") +
                        op.attr_int("const_expert_num");
  }
  const int64_t rank = op.attr_int("ep_rank_id"), ranks = op.attr_int("ep_world_size");
  check.That(ranks == placement.ranks && rank == placement.rank,
             "ep_rank_id {} of ep_world_size {}, but this is rank {} of the {} in group \"{}\"",
             rank, ranks, placement.rank, placement.ranks, op.attr_string("group_ep"));
  const int64_t shared = placement.shared_ranks, copies = placement.shared_experts;
  const bool shared_fit = shared == 0 || (copies > 0 && shared % copies == 0);
  check.That(shared >= 0 && shared < placement.ranks && copies >= 0 && shared_fit &&
                 placement.experts >= 1 && placement.experts % (placement.ranks - shared) == 0,
             "{} experts and {} shared ones on {} shared ranks cannot be spread over {} ranks",
             placement.experts, copies, shared, placement.ranks);
  const int64_t tensor_ranks = op.attr_int("tp_world_size"),
                type = op.attr_int("expert_shard_type");
  check.Keep(Supports(op, tensor_ranks <= 1 && type == 0,
                      "tp_world_size {} and expert_shard_type {}, expected 0", tensor_ranks, type));
  if (second) check.Keep(RefuseInputs(op, {"elastic_info"}));
  return placement;
}

}  // namespace

void ReadTokens(const OpContext& op, std::string_view rows, bool second, Check& check,
                TokensPlan* plan) {
  plan->who = op.Who();
  plan->placement = PlacementOf(op, second, check);
  plan->ids = op.slot("expert_ids");
  plan->active = SlotIfFed(op, "x_active_mask");
  const TensorType &x = op.in(rows), &ids = op.in(plan->ids);
  check.That(kFloats.Contains(x.dtype) && x.shape.rank() == 2 && ids.shape.rank() == 2 &&
                 ids.dtype == DataType::kInt32,
             "{} is {} and expert_ids {}; expected float16 or bfloat16 [rows,H] and int32[BS,K]",
             rows, x.ToString(), ids.ToString());
  if (!check.ok()) return;
  plan->tokens = ids.shape[0];
  plan->k = ids.shape[1];
  plan->width = x.shape[1];
  const int64_t given = op.attr_int("global_bs");
  plan->group_tokens = given > 0 ? given : plan->tokens * plan->placement.ranks;
  check.TypeAndShape("x_active_mask", DataType::kBool, {plan->tokens});
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
                           const Chunks& chunks, Scratch& scratch)
    : who_(std::move(who)),
      node_(std::move(node)),
      placement_(placement),
      chunks_(chunks),
      entry_(kCounts + chunks.count * placement.experts_of_rank()),
      first_(static_cast<size_t>(placement.local_experts() * placement.ranks * chunks.count + 1)),
      told_(scratch.Take<int64_t>(placement.ranks * entry_)),
      heard_(scratch.Take<int64_t>(placement.ranks * entry_)) {}

Status ExpandedRows::Hear(Communicator& group, const KernelArgs& args, const Routes& routes,
                          const Status& mine, int64_t room) {
  int64_t *told = told_(args), *heard = heard_(args);
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

Status PrepareExchange(const OpContext& op, int64_t row_bytes, TokensPlan* plan) {
  plan->node = op.node().name;
  NPUMESH_ASSIGN_OR_RETURN(plan->group, hcom::GroupOf(op, "group_ep"));
  const Placement& placement = plan->placement;
  const Chunks chunks = Chunks::Of(placement, plan->group_tokens, plan->choices(), row_bytes);
  plan->exchange = std::make_unique<Exchange>(
      Exchange{chunks, Routes(plan->who, placement, chunks, plan->tokens, plan->k),
               ExpandedRows(plan->who, plan->node, placement, chunks, plan->scratch),
               fused::RowTravel(placement.ranks, chunks.count, row_bytes)});
  return Status();
}

Status HearRoutes(const TokensPlan& plan, const KernelArgs& args) {
  Exchange& exchange = *plan.exchange;
  const auto* ids = static_cast<const int32_t*>(args.in[plan.ids]);
  const auto* active =
      plan.active < 0 ? nullptr : static_cast<const uint8_t*>(args.in[plan.active]);
  const Status mine = exchange.routes.Find(ids, active);
  return exchange.rows.Hear(*plan.group, args, exchange.routes, mine, plan.group_tokens);
}

void LayOut(Exchange& exchange, int64_t ranks, bool back) {
  fused::RowTravel& travel = exchange.travel;
  for (int64_t chunk = 0; chunk < travel.chunks(); ++chunk) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const int64_t own = exchange.routes.count(chunk, rank);
      const int64_t theirs = exchange.rows.Count(chunk, rank);
      travel.SetRows(chunk, rank, back ? theirs : own, back ? own : theirs);
    }
  }
  travel.LineUp();
}

}  // namespace npumesh::moe
