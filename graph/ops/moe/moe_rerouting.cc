// MoeReRouting: tokens that came by rank and expert, brought into the order of expert and rank. And
// MoeComputeExpertTokens, which counts the tokens of sorted experts.
#include <algorithm>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

struct ReRouting : Planned {
  int64_t experts = 0, rows = 0, row_bytes = 0;
  int scales = -1;  // slot
  int64_t scale_bytes = 0;
  Integers counts;            // of the tokens, by rank and expert
  Workspace<int64_t> begins;  // rows of tokens, by count
  bool sums = false;          // expert_token_num are prefix sums
};

ReRouting PlanReRouting(const OpContext& op, Check& check) {
  const TensorType &tokens = op.in("tokens"), &counts = op.in("expert_token_num_per_rank");
  ReRouting plan;
  const auto element = static_cast<int64_t>(check.Take(ElementBytes(op, tokens.dtype)));
  const int64_t type = op.attr_int("expert_token_num_type"), idx_type = op.attr_int("idx_type");
  check.That(tokens.shape.rank() == 2 && counts.shape.rank() == 2 &&
                 kIndices.Contains(counts.dtype) && (type == 0 || type == 1) && idx_type == 0,
             "tokens {}, expert_token_num_per_rank {}, expert_token_num_type {} and idx_type {}; "
             "expected [A,H], integers [ranks,experts], 0 or 1, and 0",
             tokens, counts, type, idx_type);
  if (!check.ok()) return plan;
  plan.experts = counts.shape[1];
  plan.rows = tokens.shape[0];
  plan.row_bytes = element * tokens.shape[1];
  plan.counts = Integers::OfSlot(op, op.slot("expert_token_num_per_rank"));
  plan.begins = plan.scratch.Take<int64_t>(plan.counts.count());
  plan.sums = type == 0;
  plan.scales = SlotIfFed(op, "per_token_scales");
  TensorType scales = {DataType::kFloat, {plan.rows}};
  if (plan.scales >= 0) {
    scales = op.in(plan.scales);
    const auto bytes = static_cast<int64_t>(check.Take(ElementBytes(op, scales.dtype)));
    check.That(scales.shape.rank() > 0 && scales.shape[0] == plan.rows,
               "per_token_scales {}; expected one row for each of {}", scales, tokens);
    plan.scale_bytes = bytes * ElementsBetween(scales.shape, 1, scales.shape.rank());
  }
  plan.outputs = {tokens, scales, {DataType::kInt32, {plan.rows}}, {counts.dtype, {plan.experts}}};
  return plan;
}

// Sets where the rows of each count begin.
Status FindRows(const ReRouting& plan, const KernelArgs& args) {
  int64_t begin = 0;
  for (int64_t entry = 0; entry < plan.counts.count(); ++entry) {
    const int64_t count = plan.counts.At(args, entry), left = plan.rows - begin;
    if (count < 0 || count > left) {
      return Error(Code::kInvalidArgument,
                   "{}: {} tokens of rank {} for expert {}, but only {} of {} rows are left",
                   plan.who, count, entry / plan.experts, entry % plan.experts, left, plan.rows);
    }
    plan.begins(args)[entry] = begin;
    begin += count;
  }
  return Status();
}

void Move(const ReRouting& plan, const KernelArgs& args, int64_t from, int64_t to) {
  const auto copy = [&](int slot, int output, int64_t bytes) {
    std::copy_n(static_cast<const std::byte*>(args.in[slot]) + from * bytes, bytes,
                static_cast<std::byte*>(args.out[output]) + to * bytes);
  };
  copy(0, 0, plan.row_bytes);
  if (plan.scales >= 0) copy(plan.scales, 1, plan.scale_bytes);
  static_cast<int32_t*>(args.out[2])[to] = static_cast<int32_t>(from);
}

// Rows that no count names are zero.
Status RunReRouting(const ReRouting& plan, const KernelArgs& args) {
  NPUMESH_RETURN_IF_ERROR(FindRows(plan, args));
  ClearOutputs(plan, args);
  int64_t to = 0;
  for (int64_t e = 0; e < plan.experts; ++e) {
    const int64_t before = to;
    for (int64_t entry = e; entry < plan.counts.count(); entry += plan.experts) {
      const int64_t begin = plan.begins(args)[entry], count = plan.counts.At(args, entry);
      for (int64_t i = 0; i < count; ++i) Move(plan, args, begin + i, to++);
    }
    const int64_t count = plan.sums ? to : to - before;
    if (plan.outputs[3].dtype == DataType::kInt64) {
      static_cast<int64_t*>(args.out[3])[e] = count;
    } else {
      static_cast<int32_t*>(args.out[3])[e] = static_cast<int32_t>(count);
    }
  }
  return Status();
}

// ---- MoeComputeExpertTokens ----

struct TokenCounts : Planned {
  int64_t experts = 0, positions = 0;
};

TokenCounts PlanTokens(const OpContext& op, Check& check) {
  TokenCounts plan;
  plan.experts = op.attr_int("num_experts");
  plan.positions = op.in(0).shape.elements();
  check.That(op.in(0).dtype == DataType::kInt32 && plan.experts >= 1,
             "sorted_experts is {} and num_experts {}", op.in(0), plan.experts);
  plan.outputs = {{DataType::kInt32, {plan.experts}}};
  return plan;
}

Status RunTokens(const TokenCounts& plan, const KernelArgs& args) {
  const auto* sorted = static_cast<const int32_t*>(args.in[0]);
  auto* to = static_cast<int32_t*>(args.out[0]);
  for (int64_t e = 0, at = 0; e < plan.experts; ++e) {
    while (at < plan.positions && sorted[at] <= e) ++at;
    to[e] = static_cast<int32_t>(at);
  }
  return Status();
}

}  // namespace

void RegisterMoeReRoutingOps(OpRegistry& registry) {
  registry.Add(Define<PlanReRouting, RunReRouting>(
      "MoeReRouting(tokens, expert_token_num_per_rank, per_token_scales?; "
      "expert_token_num_type=1, idx_type=0) -> permute_tokens, permute_per_token_scales, "
      "permute_token_idx, expert_token_num"));
  registry.Add(Define<PlanTokens, RunTokens>(
      "MoeComputeExpertTokens(sorted_experts; num_experts:int) -> total_rows_before_expert"));
}

}  // namespace npumesh
