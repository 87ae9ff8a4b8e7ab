// MoeDistributeCombine, MoeDistributeCombineV2 and MoeDistributeCombineAddRmsNorm: the results of
// the experts travel back to the ranks of their tokens and are summed there.
//
// The rank of a token knows from its own expert_ids which rows come back and in which order, and
// tells the ranks of the experts, which compare that with what they have. Large tensors go in
// chunks of tokens: one is packed, or weighted and summed, while others are on their way.
#include "graph/ops/collective/moe_exchange.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/rms_row.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

using moe::kAssist;

enum class Form : uint8_t { kFirst, kSecond, kAddRmsNorm };

struct Combine : moe::TokensPlan {
  int64_t rows = 0;  // of expand_x
  DataType dtype = DataType::kUndefined;
  int x = -1;  // slots; -1: not fed, or the operator has none
  int ends = -1, assist = -1, shared_x = -1, original = -1;
  int residual = -1;  // added before the sum is normalised; -1: it is not
  int gamma = -1;
  double epsilon = 0;
  Factors weights, alpha1, alpha2, constant;
  // From Prepare.
  Workspace<int64_t> verdict;
  Workspace<int64_t> place;  // route of (token, choice); -1: it has none
  Workspace<std::byte> sent, back;
  Workspace<float> sum, row, constant_row, gamma_row, norm_room;

  int64_t row_bytes() const { return width * BitsOf(dtype) / 8; }
};

// What came with the rows, and what is added to them. `handed`: the port of the hand-over data.
void ReadInputs(const OpContext& op, std::string_view handed, Check& check, Combine& plan) {
  const int64_t entries = plan.assist < 0 ? plan.tokens * plan.k : plan.rows * kAssist;
  const int64_t segments = plan.placement.local_experts() * plan.placement.ranks;
  plan.weights = check.Take(Factors::Of(op, "expert_scales"));
  const TensorType &counts = op.in(plan.ends), &passed = op.in(handed);
  const bool shared_fits =
      plan.shared_x < 0 || (op.in(plan.shared_x).dtype == plan.dtype &&
                            op.in(plan.shared_x).shape.elements() == plan.tokens * plan.width);
  check.That(passed.dtype == DataType::kInt32 && passed.shape.elements() == entries &&
                 counts.dtype == DataType::kInt32 && counts.shape.elements() == segments &&
                 (!plan.weights.given() || plan.weights.count() == plan.tokens * plan.k) &&
                 shared_fits,
             "{} {}, ep_send_counts {}, {} expert_scales or shared_expert_x do not fit expand_x {} "
             "and expert_ids {}",
             handed, passed, counts, plan.weights.count(), op.in(plan.x), op.in(plan.ids));
}

// Experts that no token travels to.
void ReadSpecial(const OpContext& op, Check& check, Combine& plan) {
  const int64_t copies = plan.placement.copies, constants = plan.placement.constants;
  plan.original = SlotIfFed(op, "ori_x");
  plan.alpha1 = check.Take(Factors::Of(op, "const_expert_alpha_1"));
  plan.alpha2 = check.Take(Factors::Of(op, "const_expert_alpha_2"));
  plan.constant = check.Take(Factors::Of(op, "const_expert_v"));
  const TensorType tokens = {plan.dtype, {plan.tokens, plan.width}};
  bool fits = copies + constants == 0 || (plan.original >= 0 && op.in(plan.original) == tokens);
  const int64_t elements = constants * plan.width;
  if (constants != 0) {
    const auto one_each = [&](const Factors& alpha) {
      return alpha.count() == constants || alpha.count() == elements;
    };
    fits =
        fits && one_each(plan.alpha1) && one_each(plan.alpha2) && plan.constant.count() == elements;
  }
  check.That(fits,
             "{} copy and {} constant experts need ori_x [{},{}] and, for the latter, alphas and v",
             copies, constants, plan.tokens, plan.width);
}

// The residual and the norm of MoeDistributeCombineAddRmsNorm.
void ReadNorm(const OpContext& op, Check& check, Combine& plan) {
  plan.residual = op.slot("residual_x");
  plan.gamma = op.slot("gamma");
  plan.epsilon = static_cast<double>(op.attr_float("norm_eps"));
  const TensorType &residual = op.in(plan.residual), &gamma = op.in(plan.gamma);
  const int rank = residual.shape.rank();
  const bool fits = residual.dtype == plan.dtype && rank >= 2 &&
                    residual.shape[rank - 1] == plan.width &&
                    ElementsBetween(residual.shape, 0, rank - 1) == plan.tokens &&
                    gamma == TensorType{plan.dtype, {plan.width}};
  check.That(fits, "residual_x is {} and gamma {}; expected {} [{},1,{}] and [{}]", residual, gamma,
             Name(plan.dtype), plan.tokens, plan.width, plan.width);
}

template <Form kForm>
Combine PlanCombine(const OpContext& op, Check& check) {
  Combine plan;
  constexpr bool kSecond = kForm != Form::kFirst;
  moe::ReadTokens(op, "expand_x", kSecond, check, &plan);
  check.OnlyZero({"comm_quant_mode"});
  if (!check.ok()) return plan;
  plan.x = op.slot("expand_x");
  plan.ends = op.slot("ep_send_counts");
  plan.rows = op.in(plan.x).shape[0];
  plan.dtype = op.in(plan.x).dtype;
  const std::string_view handed = kSecond ? "assist_info_for_combine" : "expand_idx";
  if (kSecond) {
    plan.assist = op.slot(handed);
    plan.shared_x = SlotIfFed(op, "shared_expert_x");
  }
  ReadInputs(op, handed, check, plan);
  if (kSecond) ReadSpecial(op, check, plan);
  plan.outputs = {{plan.dtype, {plan.tokens, plan.width}}};
  if (kForm == Form::kAddRmsNorm) {
    ReadNorm(op, check, plan);
    if (!check.ok()) return plan;
    const Shape y = op.in(plan.residual).shape;
    plan.outputs = {{plan.dtype, y}, {DataType::kFloat, WithLast(y, 1)}, {plan.dtype, y}};
  }
  return plan;
}

Status PrepareCombine(const OpContext& op, Combine* plan) {
  NPUMESH_RETURN_IF_ERROR(moe::PrepareExchange(op, plan->row_bytes(), plan));
  const int64_t routes = plan->most_routes();
  plan->verdict = plan->scratch.Take<int64_t>(1);
  plan->place = plan->scratch.Take<int64_t>(routes);
  plan->sent = plan->scratch.Take<std::byte>(plan->rows * plan->row_bytes());
  plan->back = plan->scratch.Take<std::byte>(routes * plan->row_bytes());
  plan->scratch.Take(plan->width, {&plan->sum, &plan->row, &plan->constant_row, &plan->gamma_row,
                                   &plan->norm_room});
  return Status();
}

// Error (kMismatch) unless the ep_send_counts of the node, prefix sums by local expert and rank,
// are those of the expanded rows.
Status CheckEnds(const Combine& plan, const int32_t* ends) {
  for (int64_t expert = 0; expert < plan.placement.local_experts(); ++expert) {
    for (int64_t rank = 0; rank < plan.placement.ranks; ++rank, ++ends) {
      const int64_t end = plan.FirstRow(expert, rank + 1);
      if (*ends == end) continue;
      return Error(Code::kMismatch,
                   "{}: by ep_send_counts the rows of rank {} for local expert {} end at {}, by "
                   "the expert_ids of the ranks at {}",
                   plan.who, rank, expert, *ends, end);
    }
  }
  return Status();
}

// Error unless the rows came from where ep_send_counts says.
Status CheckAssist(const Combine& plan, const int32_t* assist) {
  for (int64_t e = 0; e < plan.placement.local_experts(); ++e) {
    for (int64_t r = 0; r < plan.placement.ranks; ++r) {
      for (int64_t row = plan.FirstRow(e, r); row < plan.FirstRow(e, r + 1); ++row) {
        if (assist[row * kAssist] == r) continue;
        return Error(Code::kInvalidArgument,
                     "{}: assist_info_for_combine says that row {} is of rank {}, ep_send_counts "
                     "that it is of rank {}",
                     plan.who, row, assist[row * kAssist], r);
      }
    }
  }
  return Status();
}

// Whether the rows of expand_x are those that the ranks wait for.
Status CheckRows(const Combine& plan, const KernelArgs& args) {
  NPUMESH_RETURN_IF_ERROR(CheckEnds(plan, static_cast<const int32_t*>(args.in[plan.ends])));
  if (plan.expanded_rows() > plan.rows) {
    return Error(Code::kInvalidArgument, "{}: ep_send_counts says {} rows, expand_x has {}",
                 plan.who, plan.expanded_rows(), plan.rows);
  }
  if (plan.assist < 0) return Status();
  return CheckAssist(plan, static_cast<const int32_t*>(args.in[plan.assist]));
}

// Collective over the group: all leave together when one of them cannot go on.
Status Agree(const Combine& plan, const KernelArgs& args, const Status& mine) {
  int64_t* const verdict = plan.verdict(args);
  *verdict = mine.ok() ? 0 : 1;
  NPUMESH_RETURN_IF_ERROR(
      plan.group->AllReduce(verdict, verdict, 1, DataType::kInt64, ReduceOp::kMax, plan.node));
  if (!mine.ok() || *verdict == 0) return mine;
  return Error(Code::kPeerLost, "{}: another rank of the group failed; see its message", plan.who);
}

void FindPlaces(const Combine& plan, const KernelArgs& args) {
  const std::vector<moe::Route>& routes = plan.exchange->routes;
  int64_t* const place = plan.place(args);
  std::fill_n(place, plan.most_routes(), -1);
  for (size_t i = 0; i < routes.size(); ++i) {
    place[routes[i].token * plan.choices() + routes[i].choice] = static_cast<int64_t>(i);
  }
}

// Rows in the order in which they travel.
void Pack(const Combine& plan, const KernelArgs& args, int64_t chunk) {
  const auto* x = static_cast<const std::byte*>(args.in[plan.x]);
  std::byte* to = plan.sent(args) + plan.exchange->travel.send_at(chunk, 0);
  plan.EachSegment(chunk, [&](int64_t /*rank*/, int64_t first, int64_t count) {
    to = std::copy_n(x + first * plan.row_bytes(), count * plan.row_bytes(), to);
  });
}

// Adds a row times its weight to the sum.
void Add(const Combine& plan, const KernelArgs& args, const void* rows, int64_t index,
         float weight) {
  float *sum = plan.sum(args), *row = plan.row(args);
  LoadNumbers(plan.dtype, rows, index * plan.width, plan.width, row);
  for (int64_t i = 0; i < plan.width; ++i) sum[i] += weight * row[i];
}

void AddConstant(const Combine& plan, const KernelArgs& args, int64_t token, int64_t expert,
                 float weight) {
  const int64_t n = plan.width;
  float *sum = plan.sum(args), *row = plan.row(args), *constant = plan.constant_row(args);
  LoadNumbers(plan.dtype, args.in[plan.original], token * n, n, row);
  plan.constant.Load(args, expert * n, n, constant);
  const auto alpha = [&](const Factors& factors, int64_t i) {
    return factors.At(args, factors.count() == plan.placement.constants ? expert : expert * n + i);
  };
  for (int64_t i = 0; i < n; ++i) {
    sum[i] += weight * (alpha(plan.alpha1, i) * row[i] + alpha(plan.alpha2, i) * constant[i]);
  }
}

void AddChoice(const Combine& plan, const KernelArgs& args, int64_t token, int64_t choice) {
  const int64_t route = plan.place(args)[token * plan.choices() + choice];
  const bool shared = choice >= plan.k;
  const float weight = shared ? 1.0f : plan.weights.For(args, token * plan.k + choice, 1.0f);
  if (route >= 0) {
    Add(plan, args, plan.back(args), route, weight);
    return;
  }
  if (shared || !plan.IsActive(args, token)) return;
  const int64_t id = static_cast<const int32_t*>(args.in[plan.ids])[token * plan.k + choice];
  const int64_t special = id - plan.placement.experts - plan.placement.zeros;
  if (special < 0) return;
  if (special < plan.placement.copies) {
    Add(plan, args, args.in[plan.original], token, weight);
  } else {
    AddConstant(plan, args, token, special - plan.placement.copies, weight);
  }
}

// As AddRmsNorm does: the sum is rounded before it is normalised.
void Normalise(const Combine& plan, const KernelArgs& args, int64_t token) {
  const int64_t n = plan.width;
  float* const sum = plan.sum(args);
  Add(plan, args, args.in[plan.residual], token, 1);
  StoreRow(plan.dtype, sum, args.out[2], token * n, n);
  const float* x = LoadRow(plan.dtype, args.out[2], token * n, n, sum);
  const float* gamma = LoadRow(plan.dtype, args.in[plan.gamma], 0, n, plan.gamma_row(args));
  static_cast<float*>(args.out[1])[token] = NormaliseRow(
      plan.dtype, x, gamma, n, plan.epsilon, true, plan.norm_room(args), args.out[0], token * n);
}

// The choices of a token are added in their order, wherever their experts live.
void Sum(const Combine& plan, const KernelArgs& args, int64_t chunk) {
  const int64_t n = plan.width;
  float* const sum = plan.sum(args);
  for (int64_t token = plan.FirstToken(chunk); token < plan.FirstToken(chunk + 1); ++token) {
    std::fill_n(sum, n, 0.0f);
    for (int64_t choice = 0; choice < plan.choices(); ++choice) {
      AddChoice(plan, args, token, choice);
    }
    if (plan.shared_x >= 0) Add(plan, args, args.in[plan.shared_x], token, 1);
    if (plan.residual >= 0) {
      Normalise(plan, args, token);
    } else {
      StoreRow(plan.dtype, sum, args.out[0], token * n, n);
    }
  }
}

// Collective over the group.
Status RunCombine(const Combine& plan, const KernelArgs& args) {
  NPUMESH_RETURN_IF_ERROR(moe::HearRoutes(plan, args));
  NPUMESH_RETURN_IF_ERROR(Agree(plan, args, CheckRows(plan, args)));
  moe::LayOut(plan, true);
  FindPlaces(plan, args);
  const auto pack = [&](int64_t chunk) { Pack(plan, args, chunk); };
  const auto sum = [&](int64_t chunk) { Sum(plan, args, chunk); };
  return plan.exchange->travel.Run(*plan.group, plan.node, plan.sent(args), plan.back(args), pack,
                                   sum);
}

}  // namespace

void RegisterMoeCombineOps(OpRegistry& registry) {
  const CollectiveTrait experts = {.group = "group_ep"};
  registry.Add(hcom::Collective<PlanCombine<Form::kFirst>, RunCombine, PrepareCombine>(
      "MoeDistributeCombine(expand_x, expert_ids, expand_idx, ep_send_counts, expert_scales, "
      "tp_send_counts?, x_active_mask?, activation_scale?, weight_scale?, group_list?, "
      "expand_scales?; group_ep:string, ep_world_size:int, ep_rank_id:int, moe_expert_num:int, "
      "group_tp=\"\", tp_world_size=0, tp_rank_id=0, expert_shard_type=0, shared_expert_num=1, "
      "shared_expert_rank_num=0, global_bs=0, out_dtype=0, comm_quant_mode=0, group_list_type=0) "
      "-> x",
      experts));
  registry.Add(hcom::Collective<PlanCombine<Form::kSecond>, RunCombine, PrepareCombine>(
      "MoeDistributeCombineV2(expand_x, expert_ids, assist_info_for_combine, ep_send_counts, "
      "expert_scales, tp_send_counts?, x_active_mask?, activation_scale?, weight_scale?, "
      "group_list?, expand_scales?, shared_expert_x?, elastic_info?, ori_x?, "
      "const_expert_alpha_1?, const_expert_alpha_2?, const_expert_v?, performance_info?; "
      "group_ep:string, ep_world_size:int, ep_rank_id:int, moe_expert_num:int, group_tp=\"\", "
      "tp_world_size=0, tp_rank_id=0, expert_shard_type=0, shared_expert_num=1, "
      "shared_expert_rank_num=0, global_bs=0, out_dtype=0, comm_quant_mode=0, group_list_type=0, "
      "comm_alg=\"\", zero_expert_num=0, copy_expert_num=0, const_expert_num=0) -> x",
      experts));
  registry.Add(hcom::Collective<PlanCombine<Form::kAddRmsNorm>, RunCombine, PrepareCombine>(
      "MoeDistributeCombineAddRmsNorm(expand_x, expert_ids, assist_info_for_combine, "
      "ep_send_counts, expert_scales, residual_x, gamma, tp_send_counts?, x_active_mask?, "
      "activation_scale?, weight_scale?, group_list?, expand_scales?, shared_expert_x?, "
      "elastic_info?, ori_x?, const_expert_alpha_1?, const_expert_alpha_2?, const_expert_v?; "
      "group_ep:string, ep_world_size:int, ep_rank_id:int, moe_expert_num:int, group_tp=\"\", "
      "tp_world_size=0, tp_rank_id=0, expert_shard_type=0, shared_expert_num=1, "
      "shared_expert_rank_num=0, global_bs=0, out_dtype=0, comm_quant_mode=0, group_list_type=0, "
      "comm_alg=\"\", zero_expert_num=0, copy_expert_num=0, const_expert_num=0, norm_eps=1e-06) -> "
      "y, rstd, x",
      experts));
}

}  // namespace npumesh
