// MoeFinalizeRouting and MoeFinalizeRoutingV2: the rows of a token's experts, weighted and summed.
#include <algorithm>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

struct Finalize : Planned {
  int64_t tokens = 0, k = 0, width = 0;
  int64_t rows = 0;       // of expanded_x
  bool by_column = true;  // entry of (token i, choice j) is j * tokens + i, not i * k + j
  bool drops = false;     // -1 contributes nothing
  DataType dtype = DataType::kFloat;
  int x = -1;  // slots; -1: not fed
  int row_idx = -1, x1 = -1, x2 = -1, expert_idx = -1;
  int64_t experts = 0;
  Factors bias;    // [experts, width]
  Factors scales;  // [tokens, k]
  Workspace<float> sum, row, bias_row;
};

// What the second version lets choose.
void ReadMode(Check& check, const OpContext& op, Finalize& plan) {
  for (const std::string_view range :
       {"zero_expert_range", "copy_expert_range", "constant_expert_range"}) {
    check.Supported(op.attr_ints(range).empty(), "{} is not supported", range);
  }
  const int64_t mode = check.Between("drop_pad_mode", 0, 3);
  plan.by_column = mode < 2;
  plan.drops = mode % 2 == 1;
}

// Tokens and choices: from the weights, else the rows that are added, else `k` choices for each.
void ReadSizes(const OpContext& op, int64_t k, Finalize& plan) {
  const Shape& expanded = op.in(plan.x).shape;
  const int64_t entries = op.in(plan.row_idx).shape.elements();
  plan.width = expanded.rank() == 0 ? 0 : expanded.dims().back();
  plan.rows = plan.width == 0 ? 0 : expanded.elements() / plan.width;
  plan.tokens = entries;
  for (const int slot : {SlotIfFed(op, "scales"), plan.x1}) {
    if (slot >= 0 && op.in(slot).shape.rank() > 0) plan.tokens = op.in(slot).shape[0];
  }
  if (plan.tokens == entries) plan.tokens = entries / std::max<int64_t>(k, 1);
  plan.k = plan.tokens == 0 ? 0 : entries / plan.tokens;
}

bool BiasFits(const OpContext& op, const Finalize& plan) {
  return plan.expert_idx >= 0 && op.in(plan.expert_idx).dtype == DataType::kInt32 &&
         op.in(plan.expert_idx).shape.elements() == plan.tokens * plan.k &&
         plan.bias.count() == plan.experts * plan.width;
}

template <bool kSecond>
Finalize PlanFinalize(const OpContext& op, Check& check) {
  Finalize plan;
  plan.x = op.slot("expanded_x");
  plan.row_idx = op.slot("expanded_row_idx");
  plan.x1 = SlotIfFed(op, "x1");
  plan.x2 = SlotIfFed(op, "x2");
  plan.expert_idx = SlotIfFed(op, kSecond ? "expert_idx" : "expanded_expert_idx");
  if (kSecond) ReadMode(check, op, plan);
  ReadSizes(op, kSecond ? op.attr_int("k") : 1, plan);
  plan.bias = check.Take(Factors::Of(op, "bias"));
  plan.scales = check.Take(Factors::Of(op, "scales"));
  if (plan.width > 0) plan.experts = plan.bias.count() / plan.width;
  const TensorType &expanded = op.in(plan.x), &row_idx = op.in(plan.row_idx);
  plan.dtype = expanded.dtype;
  plan.outputs = {{plan.dtype, {plan.tokens, plan.width}}};
  const int64_t entries = plan.tokens * plan.k;
  bool fits = kFloats.Contains(plan.dtype) && row_idx.dtype == DataType::kInt32 &&
              entries == row_idx.shape.elements() &&
              (!plan.scales.given() || plan.scales.count() == entries) &&
              (!plan.bias.given() || BiasFits(op, plan));
  for (const int slot : {plan.x1, plan.x2}) {
    fits = fits && (slot < 0 || op.in(slot) == plan.outputs[0]);
  }
  check.That(fits,
             "expanded_x {}, expanded_row_idx {}, {} scales and {} elements of bias do not belong "
             "to {} tokens with {} choices",
             expanded, row_idx, plan.scales.count(), plan.bias.count(), plan.tokens, plan.k);
  plan.scratch.Take(plan.width, {&plan.sum, &plan.row, &plan.bias_row});
  return plan;
}

Status AddBias(const Finalize& plan, const KernelArgs& args, int64_t token, int64_t choice,
               float* row) {
  const int64_t expert =
      static_cast<const int32_t*>(args.in[plan.expert_idx])[token * plan.k + choice];
  if (expert < 0 || expert >= plan.experts) {
    return Error(Code::kInvalidArgument, "{}: expert {} of token {} has no bias, there are {}",
                 plan.who, expert, token, plan.experts);
  }
  float* const bias = plan.bias_row(args);
  plan.bias.Load(args, expert * plan.width, plan.width, bias);
  AddRow(row, bias, plan.width, row);
  return Status();
}

Status AddChoice(const Finalize& plan, const KernelArgs& args, int64_t token, int64_t choice,
                 float* sum) {
  const int64_t entry = plan.by_column ? choice * plan.tokens + token : token * plan.k + choice;
  const int64_t from = static_cast<const int32_t*>(args.in[plan.row_idx])[entry];
  if (from == -1 && plan.drops) return Status();
  if (from < 0 || from >= plan.rows) {
    return Error(Code::kInvalidArgument,
                 "{}: expanded_row_idx names row {} for token {}, there are {}", plan.who, from,
                 token, plan.rows);
  }
  float* const row = plan.row(args);
  LoadNumbers(plan.dtype, args.in[plan.x], from * plan.width, plan.width, row);
  if (plan.bias.given()) NPUMESH_RETURN_IF_ERROR(AddBias(plan, args, token, choice, row));
  const float scale = plan.scales.For(args, token * plan.k + choice, 1.0f);
  for (int64_t d = 0; d < plan.width; ++d) sum[d] += scale * row[d];
  return Status();
}

Status RunFinalize(const Finalize& plan, const KernelArgs& args) {
  const int64_t n = plan.width;
  float *sum = plan.sum(args), *row = plan.row(args);
  for (int64_t i = 0; i < plan.tokens; ++i) {
    std::fill_n(sum, n, 0.0f);
    for (const int slot : {plan.x1, plan.x2}) {
      if (slot < 0) continue;
      LoadNumbers(plan.dtype, args.in[slot], i * n, n, row);
      AddRow(sum, row, n, sum);
    }
    for (int64_t j = 0; j < plan.k; ++j) NPUMESH_RETURN_IF_ERROR(AddChoice(plan, args, i, j, sum));
    StoreRow(plan.dtype, sum, args.out[0], i * n, n);
  }
  return Status();
}

}  // namespace

void RegisterMoeFinalizeOps(OpRegistry& registry) {
  registry.Add(Define<PlanFinalize<false>, RunFinalize>(
      "MoeFinalizeRouting(expanded_x, x1, x2?, bias, scales, expanded_row_idx, "
      "expanded_expert_idx) -> y"));
  registry.Add(Define<PlanFinalize<true>, RunFinalize>(
      "MoeFinalizeRoutingV2(expanded_x, expanded_row_idx, x1?, x2?, bias?, scales?, expert_idx?, "
      "x?, alpha1?, alpha2?, v?; drop_pad_mode=0, zero_expert_range=[], copy_expert_range=[], "
      "constant_expert_range=[], k=1) -> y"));
}

}  // namespace npumesh
