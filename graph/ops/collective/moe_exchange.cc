#include "graph/ops/collective/moe_exchange.h"

#include <algorithm>
#include <tuple>

#include "graph/ops/toolbox/values/ceil_div.h"
#include "graph/ops/toolbox/values/element_io.h"

namespace npumesh::moe {
namespace {

// The attributes that the operators have in common.
Placement PlacementOf(const OpContext& op, bool second, Check& check) {
  const hcom::Ring ring = hcom::RingOf(op, check, "group_ep");
  Placement placement;
  placement.ranks = ring.ranks;
  placement.rank = ring.rank;
  placement.experts = op.attr_int("moe_expert_num");
  placement.shared_ranks = op.attr_int("shared_expert_rank_num");
  placement.shared_experts = placement.shared_ranks == 0 ? 0 : op.attr_int("shared_expert_num");
  if (second) {
    placement.zeros = op.attr_int("zero_expert_num");
    placement.copies = op.attr_int("copy_expert_num");
    placement.constants = op.attr_int("const_expert_num");
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
  check.Supported(tensor_ranks <= 1 && type == 0,
                  "tp_world_size {} and expert_shard_type {}, expected 0", tensor_ranks, type);
  if (second) check.NotFed({"elastic_info"});
  return placement;
}

// ---- the routes of this rank's tokens ----

Status AddRoutes(const TokensPlan& plan, const int32_t* ids, int64_t token) {
  const Placement& at = plan.placement;
  const int64_t chunk = std::min(token / plan.chunk_tokens, plan.chunks - 1);
  const auto add = [&](int64_t rank, int64_t expert, int64_t choice) {
    plan.exchange->routes.push_back({static_cast<int32_t>(chunk), static_cast<int32_t>(rank),
                                     static_cast<int32_t>(expert), static_cast<int32_t>(token),
                                     static_cast<int32_t>(choice)});
    ++plan.exchange->counts[static_cast<size_t>(chunk * at.ranks + rank)];
  };
  const int64_t share = at.experts_of_rank();
  for (int64_t choice = 0; choice < plan.k; ++choice) {
    const int64_t id = ids[token * plan.k + choice];
    if (id < 0 || id >= at.ids()) {
      return Error(Code::kInvalidArgument, "{}: expert_ids holds {} for token {}, expected 0 to {}",
                   plan.who, id, token, at.ids() - 1);
    }
    if (id < at.experts) add(at.shared_ranks + id / share, id % share, choice);
  }
  for (int64_t shared = 0; shared < at.shared_experts; ++shared) {
    const int64_t copies = at.shared_ranks / at.shared_experts;
    add(shared * copies + at.rank % copies, 0, plan.k + shared);
  }
  return Status();
}

// Fills routes and counts. After an error they are of no use.
Status FindRoutes(const TokensPlan& plan, const KernelArgs& args) {
  Exchange& exchange = *plan.exchange;
  std::vector<Route>& routes = exchange.routes;
  routes.clear();
  std::fill(exchange.counts.begin(), exchange.counts.end(), 0);
  for (int64_t token = 0; token < plan.tokens; ++token) {
    if (!plan.IsActive(args, token)) continue;
    NPUMESH_RETURN_IF_ERROR(AddRoutes(plan, static_cast<const int32_t*>(args.in[plan.ids]), token));
  }
  std::sort(routes.begin(), routes.end());
  // The bound of rows that a rank can get relies on it.
  for (size_t i = 1; i < routes.size(); ++i) {
    const Route &a = routes[i - 1], &b = routes[i];
    if (std::tie(a.rank, a.expert, a.token) != std::tie(b.rank, b.expert, b.token)) continue;
    return Error(Code::kInvalidArgument, "{}: expert_ids names one expert twice for token {}",
                 plan.who, a.token);
  }
  return Status();
}

// ---- what the ranks tell each other ----

// An entry for each rank: the tokens of the one that tells, the tokens it has room for, then routes
// by chunk and expert of the other rank.
constexpr int64_t kTokens = 0;
constexpr int64_t kRoom = 1;
constexpr int64_t kCounts = 2;
constexpr int64_t kRefused = -1;  // in place of the tokens

int64_t EntrySize(const TokensPlan& plan) {
  return kCounts + plan.chunks * plan.placement.experts_of_rank();
}

// `mine`: whether this rank has found its routes.
void Tell(const TokensPlan& plan, const Status& mine, int64_t* entries) {
  const int64_t size = EntrySize(plan);
  std::fill_n(entries, plan.placement.ranks * size, 0);
  for (int64_t rank = 0; rank < plan.placement.ranks; ++rank) {
    entries[rank * size + kTokens] = mine.ok() ? plan.tokens : kRefused;
    entries[rank * size + kRoom] = plan.group_tokens;
  }
  if (!mine.ok()) return;
  for (const Route& route : plan.exchange->routes) {
    const int64_t at = route.chunk * plan.placement.experts_of_rank() + route.expert;
    ++entries[route.rank * size + kCounts + at];
  }
}

Status CheckRoom(const TokensPlan& plan, const int64_t* entries) {
  int64_t tokens = 0;
  int64_t room = INT64_MAX;
  for (int64_t rank = 0; rank < plan.placement.ranks; ++rank) {
    const int64_t* entry = entries + rank * EntrySize(plan);
    if (entry[kTokens] == kRefused) {
      return Error(Code::kPeerLost, "{}: rank {} of the group refuses its inputs; see its message",
                   plan.who, rank);
    }
    tokens += entry[kTokens];
    room = std::min(room, entry[kRoom]);
  }
  if (tokens <= room) return Status();
  return Error(
      Code::kInvalidArgument,
      "{}: the ranks have {} tokens together, but global_bs, or the tokens of the rank that "
      "has fewest, leaves room for {}; set global_bs to the most tokens of a rank times {}",
      plan.who, tokens, room, plan.placement.ranks);
}

// Fills first_row.
void LineUp(const TokensPlan& plan, const int64_t* entries) {
  auto first = plan.exchange->first_row.begin();
  int64_t row = 0;
  for (int64_t expert = 0; expert < plan.placement.local_experts(); ++expert) {
    for (int64_t rank = 0; rank < plan.placement.ranks; ++rank) {
      const int64_t* counts = entries + rank * EntrySize(plan) + kCounts + expert;
      for (int64_t chunk = 0; chunk < plan.chunks; ++chunk) {
        *first++ = row;
        row += counts[chunk * plan.placement.experts_of_rank()];
      }
    }
  }
  *first = row;
}

}  // namespace

void ReadTokens(const OpContext& op, std::string_view rows, bool second, Check& check,
                TokensPlan* plan) {
  plan->placement = PlacementOf(op, second, check);
  plan->ids = op.slot("expert_ids");
  plan->active = SlotIfFed(op, "x_active_mask");
  const TensorType &x = op.in(rows), &ids = op.in(plan->ids);
  check.That(kFloats.Contains(x.dtype) && x.shape.rank() == 2 && ids.shape.rank() == 2 &&
                 ids.dtype == DataType::kInt32,
             "{} is {} and expert_ids {}; expected float16 or bfloat16 [rows,H] and int32[BS,K]",
             rows, x, ids);
  if (!check.ok()) return;
  plan->tokens = ids.shape[0];
  plan->k = ids.shape[1];
  plan->width = x.shape[1];
  const int64_t given = op.attr_int("global_bs");
  plan->group_tokens = given > 0 ? given : plan->tokens * plan->placement.ranks;
  check.TypeAndShape("x_active_mask", DataType::kBool, {plan->tokens});
}

Status PrepareExchange(const OpContext& op, int64_t row_bytes, TokensPlan* plan) {
  NPUMESH_RETURN_IF_ERROR(hcom::MeetGroup(op, "group_ep", plan));
  const Placement& at = plan->placement;
  const int64_t tokens = CeilDiv(plan->group_tokens, at.ranks);  // of a rank
  const int64_t fit = fused::ChunksOf(static_cast<uint64_t>(tokens * plan->choices() * row_bytes));
  const int64_t chunks = std::clamp<int64_t>(fit, 1, std::max<int64_t>(tokens, 1));
  plan->chunks = chunks;
  plan->chunk_tokens = std::max<int64_t>(CeilDiv(tokens, chunks), 1);
  plan->exchange =
      std::make_unique<Exchange>(Exchange{.travel = fused::RowTravel(at.ranks, chunks, row_bytes)});
  plan->exchange->routes.reserve(static_cast<size_t>(plan->most_routes()));
  plan->exchange->counts.resize(static_cast<size_t>(chunks * at.ranks));
  plan->exchange->first_row.resize(static_cast<size_t>(at.local_experts() * at.ranks * chunks + 1));
  plan->scratch.Take(at.ranks * EntrySize(*plan), {&plan->told, &plan->heard});
  return Status();
}

Status HearRoutes(const TokensPlan& plan, const KernelArgs& args) {
  int64_t *told = plan.told(args), *heard = plan.heard(args);
  const Status mine = FindRoutes(plan, args);
  Tell(plan, mine, told);
  NPUMESH_RETURN_IF_ERROR(plan.group->AllToAll(told, heard, static_cast<uint64_t>(EntrySize(plan)),
                                               DataType::kInt64, plan.node));
  NPUMESH_RETURN_IF_ERROR(mine);
  NPUMESH_RETURN_IF_ERROR(CheckRoom(plan, heard));
  LineUp(plan, heard);
  return Status();
}

void LayOut(const TokensPlan& plan, bool back) {
  fused::RowTravel& travel = plan.exchange->travel;
  for (int64_t chunk = 0; chunk < travel.chunks(); ++chunk) {
    for (int64_t rank = 0; rank < plan.placement.ranks; ++rank) {
      const auto route = static_cast<size_t>(chunk * plan.placement.ranks + rank);
      const int64_t own = plan.exchange->counts[route];
      int64_t theirs = 0;
      for (int64_t e = 0; e < plan.placement.local_experts(); ++e) {
        theirs += plan.FirstRow(e, rank, chunk + 1) - plan.FirstRow(e, rank, chunk);
      }
      travel.SetRows(chunk, rank, back ? theirs : own, back ? own : theirs);
    }
  }
  travel.LineUp();
}

}  // namespace npumesh::moe
