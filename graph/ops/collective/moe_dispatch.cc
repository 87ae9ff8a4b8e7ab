// MoeDistributeDispatch and MoeDistributeDispatchV2: every token travels to the ranks of its
// experts.
//
// First the ranks tell each other how many tokens they have for each expert, then the tokens
// travel, each with its scales and where it came from in a record of fixed size. Large ones go in
// chunks: one is quantised and packed, or unpacked, while others are on their way.
#include <cstring>

#include "graph/ops/collective/moe_exchange.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/values/element_io.h"
#include "graph/ops/toolbox/values/quantised_row.h"
#include "graph/ops/toolbox/values/row_math.h"

namespace npumesh {
namespace {

using moe::kAssist;
using moe::Placement;
using moe::Route;

enum class Quant : uint8_t { kNone, kStatic, kDynamic };  // quant_mode

// What follows the elements of a token in its record.
struct Tail {
  float scale, expert_scale;
  int32_t token, choice;
};

struct Dispatch : moe::TokensPlan {
  int x = -1;  // slot
  Quant quant = Quant::kNone;
  int64_t rows = 0;    // of expand_x
  bool sums = false;   // expert_token_nums are prefix sums
  bool assist = true;  // output 2 tells where each row came from (V2)
  DataType x_dtype = DataType::kUndefined, y_dtype = DataType::kUndefined;
  Factors scales;         // static: 1 or [width]; dynamic: [experts or all, width]
  Factors expert_scales;  // of each choice of a token
  // From Prepare.
  Workspace<std::byte> send, recv;
  Workspace<float> row, factors;
  Workspace<int32_t> seen;  // choices of each expert so far

  int64_t row_bytes() const { return width * BitsOf(y_dtype) / 8; }
  // Of a token on its way.
  int64_t record_bytes() const { return (row_bytes() + int64_t{sizeof(Tail)} + 15) / 16 * 16; }
};

bool ScalesFit(const Dispatch& plan) {
  const int64_t count = plan.scales.count();
  const int64_t sets = plan.width == 0 ? 0 : count / plan.width;
  const Placement& at = plan.placement;
  if (plan.quant == Quant::kNone) return true;
  if (plan.quant == Quant::kStatic) return count == 1 || sets == 1;
  return !plan.scales.given() || sets == at.experts || sets == at.experts + at.shared_experts;
}

template <bool kSecond>
Dispatch PlanDispatch(const OpContext& op, Check& check) {
  Dispatch plan;
  moe::ReadTokens(op, "x", kSecond, check, &plan);
  if (!check.ok()) return plan;
  plan.x = op.slot("x");
  const TensorType &x = op.in(plan.x), &ids = op.in(plan.ids);
  check.That(ids.shape[0] == x.shape[0], "x is {} and expert_ids {}; expected as many rows of both",
             x, ids);
  const int64_t mode = op.attr_int("quant_mode");
  check.Supported(mode >= 0 && mode <= 2, "quant_mode {} is not supported, expected 0, 1 or 2",
                  mode);
  plan.quant = static_cast<Quant>(mode);
  plan.x_dtype = x.dtype;
  plan.y_dtype = plan.quant == Quant::kNone ? x.dtype : DataType::kInt8;
  plan.scales = check.Take(Factors::Of(op, "scales"));
  check.That(ScalesFit(plan), "{} scales do not fit x {} and expert_ids {} in quant_mode {}",
             plan.scales.count(), x, ids, mode);
  check.TypeAndShape("expert_scales", DataType::kFloat, ids.shape);
  plan.expert_scales = check.Take(Factors::Of(op, "expert_scales"));
  plan.sums = op.attr_int("expert_token_nums_type") == 0;
  plan.assist = kSecond;
  const int64_t local = plan.placement.local_experts();
  plan.rows = plan.group_tokens * std::min(local, plan.k);
  plan.outputs = {{plan.y_dtype, {plan.rows, plan.width}},
                  {DataType::kFloat, {plan.rows}},
                  {DataType::kInt32, {plan.assist ? plan.rows * kAssist : plan.tokens * plan.k}},
                  {DataType::kInt64, {local}},
                  {DataType::kInt32, {local * plan.placement.ranks}},
                  {DataType::kInt32, {1}},
                  {DataType::kFloat, {plan.rows}}};
  return plan;
}

Status PrepareDispatch(const OpContext& op, Dispatch* plan) {
  const int64_t record = plan->record_bytes();
  NPUMESH_RETURN_IF_ERROR(moe::PrepareExchange(op, record, plan));
  plan->send = plan->scratch.Take<std::byte>(plan->most_routes() * record);
  plan->recv = plan->scratch.Take<std::byte>(plan->rows * record);
  plan->scratch.Take(plan->width, {&plan->row, &plan->factors});
  if (!plan->assist) plan->seen = plan->scratch.Take<int32_t>(plan->placement.experts);
  return Status();
}

// Dynamic smoothing has a row for each expert, the shared ones first where they have rows.
void ApplyScales(const Dispatch& plan, const KernelArgs& args, const Route& route, float* x) {
  const int64_t n = plan.width;
  if (plan.scales.count() == 1) return ScaleRow(x, plan.scales.At(args, 0), n, x);
  const Placement& at = plan.placement;
  const bool with_shared = plan.scales.count() > n * at.experts;
  const bool shared = route.choice >= plan.k;
  if (plan.quant == Quant::kDynamic && shared && !with_shared) return;
  const int64_t expert = (route.rank - at.shared_ranks) * at.experts_of_rank() + route.expert;
  int64_t set = shared ? route.choice - plan.k : expert + (with_shared ? at.shared_experts : 0);
  if (plan.quant == Quant::kStatic) set = 0;
  float* const factors = plan.factors(args);
  plan.scales.Load(args, set * n, n, factors);
  MultiplyRow(x, factors, n, x);
}

// The token's elements; returns its dynamic scale.
float PackRow(const Dispatch& plan, const KernelArgs& args, const Route& route, std::byte* to) {
  const int64_t n = plan.width;
  if (plan.quant == Quant::kNone) {
    const auto* x = static_cast<const std::byte*>(args.in[plan.x]);
    std::memcpy(to, x + route.token * plan.row_bytes(), static_cast<size_t>(plan.row_bytes()));
    return 0;
  }
  float* const x = plan.row(args);
  LoadNumbers(plan.x_dtype, args.in[plan.x], route.token * n, n, x);
  if (plan.scales.given()) ApplyScales(plan, args, route, x);
  if (plan.quant == Quant::kDynamic) return QuantiseToInt8(x, n, reinterpret_cast<int8_t*>(to));
  StoreIntegers(DataType::kInt8, Rounding::kNearest, x, to, 0, n);
  return 0;
}

// Records lie in the order of the routes.
void Pack(const Dispatch& plan, const KernelArgs& args, int64_t chunk) {
  const std::vector<Route>& routes = plan.exchange->routes;
  const auto record = static_cast<size_t>(plan.record_bytes());
  size_t i = plan.exchange->travel.send_at(chunk, 0) / record;
  for (; i < routes.size() && routes[i].chunk == chunk; ++i) {
    const Route& route = routes[i];
    std::byte* const to = plan.send(args) + i * record;
    Tail tail{PackRow(plan, args, route, to), 0, route.token, route.choice};
    if (route.choice < plan.k) {
      tail.expert_scale = plan.expert_scales.For(args, route.token * plan.k + route.choice, 0);
    }
    std::memcpy(to + plan.row_bytes(), &tail, sizeof(tail));
  }
}

void UnpackRow(const Dispatch& plan, const KernelArgs& args, const std::byte* record, int64_t from,
               int64_t row) {
  std::copy_n(record, plan.row_bytes(),
              static_cast<std::byte*>(args.out[0]) + row * plan.row_bytes());
  Tail tail;
  std::memcpy(&tail, record + plan.row_bytes(), sizeof(tail));
  static_cast<float*>(args.out[1])[row] = tail.scale;
  static_cast<float*>(args.out[6])[row] = tail.expert_scale;
  if (!plan.assist) return;
  int32_t* assist = static_cast<int32_t*>(args.out[2]) + row * kAssist;
  std::fill_n(assist, kAssist, 0);
  assist[0] = static_cast<int32_t>(from);
  assist[1] = tail.token;
  assist[2] = tail.choice;
}

// From (rank, expert, token) to (expert, rank, token).
void Unpack(const Dispatch& plan, const KernelArgs& args, int64_t chunk) {
  const std::byte* from = plan.recv(args) + plan.exchange->travel.recv_at(chunk, 0);
  const int64_t record = plan.record_bytes();
  plan.EachSegment(chunk, [&](int64_t rank, int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row, from += record) {
      UnpackRow(plan, args, from, rank, row);
    }
  });
}

void StoreCounts(const Dispatch& plan, const KernelArgs& args) {
  auto* counts = static_cast<int64_t*>(args.out[3]);
  auto* ends = static_cast<int32_t*>(args.out[4]);
  for (int64_t e = 0; e < plan.placement.local_experts(); ++e) {
    for (int64_t r = 0; r < plan.placement.ranks; ++r) {
      *ends++ = static_cast<int32_t>(plan.FirstRow(e, r + 1));
    }
    counts[e] = plan.FirstRow(e + 1, 0) - (plan.sums ? 0 : plan.FirstRow(e, 0));
  }
  *static_cast<int32_t*>(args.out[5]) = static_cast<int32_t>(plan.expanded_rows());
}

// V1: the place of each choice among those of this rank for the same expert.
void StoreIndices(const Dispatch& plan, const KernelArgs& args) {
  const auto* ids = static_cast<const int32_t*>(args.in[plan.ids]);
  auto* to = static_cast<int32_t*>(args.out[2]);
  int32_t* const seen = plan.seen(args);
  std::fill_n(seen, plan.placement.experts, 0);
  for (int64_t i = 0; i < plan.tokens * plan.k; ++i) {
    to[i] = plan.IsActive(args, i / plan.k) ? seen[ids[i]]++ : 0;
  }
}

// Rows after the last one are unspecified; they are zero here.
void ClearBehind(const Dispatch& plan, const KernelArgs& args) {
  const int64_t total = plan.expanded_rows();
  const auto clear = [&](int port, int64_t bytes) {
    auto* first = static_cast<std::byte*>(args.out[port]) + total * bytes;
    std::fill_n(first, (plan.rows - total) * bytes, std::byte{0});
  };
  clear(0, plan.row_bytes());
  clear(1, sizeof(float));
  if (plan.assist) clear(2, kAssist * int64_t{sizeof(int32_t)});
  clear(6, sizeof(float));
}

// Collective over the group.
Status RunDispatch(const Dispatch& plan, const KernelArgs& args) {
  NPUMESH_RETURN_IF_ERROR(moe::HearRoutes(plan, args));
  moe::LayOut(plan, false);
  const auto pack = [&](int64_t chunk) { Pack(plan, args, chunk); };
  const auto unpack = [&](int64_t chunk) { Unpack(plan, args, chunk); };
  const auto meanwhile = [&] {
    StoreCounts(plan, args);
    if (!plan.assist) StoreIndices(plan, args);
    ClearBehind(plan, args);
  };
  return plan.exchange->travel.Run(*plan.group, plan.node, plan.send(args), plan.recv(args), pack,
                                   unpack, meanwhile);
}

}  // namespace

void RegisterMoeDispatchOps(OpRegistry& registry) {
  const CollectiveTrait experts = {.group = "group_ep"};
  registry.Add(hcom::Collective<PlanDispatch<false>, RunDispatch, PrepareDispatch>(
      "MoeDistributeDispatch(x, expert_ids, scales?, x_active_mask?, expert_scales?; "
      "group_ep:string, ep_world_size:int, ep_rank_id:int, moe_expert_num:int, group_tp=\"\", "
      "tp_world_size=0, tp_rank_id=0, expert_shard_type=0, shared_expert_num=1, "
      "shared_expert_rank_num=0, quant_mode=0, global_bs=0, expert_token_nums_type=1) -> expand_x, "
      "dynamic_scales, expand_idx, expert_token_nums, ep_recv_count, tp_recv_count, expand_scales",
      experts));
  registry.Add(hcom::Collective<PlanDispatch<true>, RunDispatch, PrepareDispatch>(
      "MoeDistributeDispatchV2(x, expert_ids, scales?, x_active_mask?, expert_scales?, "
      "elastic_info?, performance_info?; group_ep:string, ep_world_size:int, ep_rank_id:int, "
      "moe_expert_num:int, group_tp=\"\", tp_world_size=0, tp_rank_id=0, expert_shard_type=0, "
      "shared_expert_num=1, shared_expert_rank_num=0, quant_mode=0, global_bs=0, "
      "expert_token_nums_type=1, comm_alg=\"\", zero_expert_num=0, copy_expert_num=0, "
      "const_expert_num=0, y_dtype=0) -> expand_x, dynamic_scales, expand_idx, expert_token_nums, "
      "ep_recv_count, tp_recv_count, expand_scales",
      experts));
}

}  // namespace npumesh
