// Small operators of model code that fit no other family: MaskedSoftmaxWithRelPosBias,
// MaskedCausalConv1d, ClippedSwiglu, MoeUpdateExpert.
#include <algorithm>
#include <cmath>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/values/activations.h"
#include "graph/ops/toolbox/values/ceil_div.h"

namespace npumesh {
namespace {

// ---- MaskedSoftmaxWithRelPosBias ----

// x as [windows, heads, plane, columns]: [B W, N, S1, S2] or [B, W, N, S1, S2]. A mask has a plane
// for each of W windows, which follow each other again and again; the bias one for each head.
struct WindowPlan : Planned {
  int64_t windows = 1, heads = 1;
  int64_t plane = 1;  // S1 * S2
  int64_t columns = 1;
  int64_t masks = 0;  // 0: no mask
  double scale = 1;
};

WindowPlan PlanWindows(const OpContext& op, Check& check) {
  const Shape& x = op.in("x").shape;
  const int rank = x.rank();
  check.Keep(ExpectAllReal(op));
  check.That(rank == 4 || rank == 5, "x is {}, expected four or five dimensions", x);
  if (!check.ok()) return {};
  WindowPlan plan;
  plan.columns = x[rank - 1];
  plan.plane = x[rank - 2] * plan.columns;
  plan.heads = x[rank - 3];
  plan.windows = ElementsBetween(x, 0, rank - 3);
  check.Keep(ExpectCount(op, "relative_pos_bias", plan.heads * plan.plane, "score of a window"));
  plan.scale = static_cast<double>(op.attr_float("scale_value"));
  plan.outputs = {op.in("x")};
  if (!op.has("atten_mask")) return plan;
  const TensorType& mask = op.in("atten_mask");
  const int64_t elements = mask.shape.elements();
  plan.masks = plan.plane > 0 ? elements / plan.plane : 1;
  const bool whole = elements == plan.masks * plan.plane && plan.masks > 0;
  check.That(whole && plan.windows % plan.masks == 0,
             "atten_mask is {}, expected planes for the windows of {}", mask, x);
  return plan;
}

void SoftmaxInPlace(double* row, int64_t columns) {
  double most = -INFINITY, sum = 0;
  for (int64_t i = 0; i < columns; ++i) most = std::max(most, row[i]);
  for (int64_t i = 0; i < columns; ++i) sum += row[i] = std::exp(row[i] - most);
  for (int64_t i = 0; i < columns; ++i) row[i] /= sum;
}

Status WindowSoftmax(const WindowPlan& plan, RealTensors& t) {
  const double *x = t.in[0].data(), *mask = t.in[1].data(), *bias = t.in[2].data();
  double* y = t.out[0].data();
  for (int64_t window = 0; window < plan.windows; ++window) {
    for (int64_t head = 0; head < plan.heads; ++head) {
      for (int64_t i = 0; i < plan.plane; ++i) {
        y[i] = plan.scale * x[i] + bias[head * plan.plane + i];
        if (plan.masks > 0) y[i] += mask[window % plan.masks * plan.plane + i];
      }
      for (int64_t row = 0; row < plan.plane; row += plan.columns) {
        SoftmaxInPlace(y + row, plan.columns);
      }
      x += plan.plane;
      y += plan.plane;
    }
  }
  return Status();
}

// ---- MaskedCausalConv1d ----

// input [S, B, H], weight [W, H], mask [B, S].
struct CausalPlan : Planned {
  int64_t rows = 0, batches = 0, width = 0;
  int64_t taps = 0;  // W
};

CausalPlan PlanCausal(const OpContext& op, Check& check) {
  check.Keep(ExpectReal(op, "input"));
  check.Keep(ExpectReal(op, "weight"));
  const Shape &x = op.in("input").shape, &weight = op.in("weight").shape;
  check.That(x.rank() == 3 && weight.rank() == 2 && weight[1] == x[2],
             "input is {} and weight {}; expected [S,B,H] and [W,H]", x, weight);
  if (!check.ok()) return {};
  check.That(!op.has("mask") || op.in("mask").shape == Shape({x[1], x[0]}),
             "mask is {}, expected [B,S] of input {}", op.in("mask"), x);
  CausalPlan plan;
  plan.rows = x[0];
  plan.batches = x[1];
  plan.width = x[2];
  plan.taps = weight[0];
  plan.outputs = {op.in("input")};
  return plan;
}

// Rows in front of the first are zero.
Status Causal(const CausalPlan& plan, RealTensors& t) {
  const int64_t width = plan.width;
  const double *in = t.in[0].data(), *weight = t.in[1].data();
  double* y = t.out[0].data();
  for (int64_t i = 0; i < plan.rows; ++i) {
    for (int64_t b = 0; b < plan.batches; ++b, y += width) {
      if (!t.in[2].empty() && t.in[2][static_cast<size_t>(b * plan.rows + i)] == 0) continue;
      for (int64_t k = 0; k < std::min(plan.taps, i + 1); ++k) {
        const double* row = in + ((i - k) * plan.batches + b) * width;
        const double* tap = weight + (plan.taps - 1 - k) * width;
        for (int64_t h = 0; h < width; ++h) y[h] += row[h] * tap[h];
      }
    }
  }
  return Status();
}

// ---- ClippedSwiglu ----

// x as [outer, 2 pairs, inner]. Gates and linear parts alternate, or are the two halves.
struct ClippedPlan : Planned {
  int64_t outer = 1, pairs = 0, inner = 1;
  double alpha = 1, limit = 1, bias = 0;
  bool mixed = true;
};

ClippedPlan PlanClipped(const OpContext& op, Check& check) {
  const Shape& x = op.in("x").shape;
  check.Keep(ExpectReal(op, "x"));
  const int axis = check.Axis("dim", x.rank());
  if (!check.ok()) return {};
  check.That(x[axis] % 2 == 0, "x is {}, expected an even dimension {}", x, axis);
  check.That(!op.has("group_index") || IsInteger(op.in("group_index").dtype),
             "group_index is {}, expected integers", op.in("group_index"));
  ClippedPlan plan;
  plan.outer = ElementsBetween(x, 0, axis);
  plan.pairs = x[axis] / 2;
  plan.inner = ElementsBetween(x, axis + 1, x.rank());
  plan.alpha = static_cast<double>(op.attr_float("alpha"));
  plan.limit = static_cast<double>(op.attr_float("limit"));
  plan.bias = static_cast<double>(op.attr_float("bias"));
  plan.mixed = op.attr_bool("interleaved");
  plan.outputs = {op.in("x")};
  plan.outputs[0].shape[axis] = plan.pairs;
  return plan;
}

// group_index counts the rows of each group; rows after the last group are zero.
Status Clipped(const ClippedPlan& plan, RealTensors& t) {
  double rows = t.in[1].empty() ? static_cast<double>(plan.outer) : 0;
  for (const double group : t.in[1]) rows += group;
  double* y = t.out[0].data();
  for (int64_t row = 0; row < plan.outer && static_cast<double>(row) < rows; ++row) {
    const double* x = t.in[0].data() + row * 2 * plan.pairs * plan.inner;
    for (int64_t pair = 0; pair < plan.pairs; ++pair) {
      const double* gates = x + (plan.mixed ? 2 * pair : pair) * plan.inner;
      const double* others = gates + (plan.mixed ? 1 : plan.pairs) * plan.inner;
      for (int64_t i = 0; i < plan.inner; ++i) {
        const double gate = std::min(gates[i], plan.limit);
        const double linear = std::clamp(others[i], -plan.limit, plan.limit) + plan.bias;
        *y++ = Swish(gate, plan.alpha) * linear;
      }
    }
  }
  return Status();
}

// ---- MoeUpdateExpert ----

struct ExpertPlan : Planned {
  int64_t tokens = 0;
  int64_t chosen = 0;   // experts of each token
  int64_t experts = 0;  // rows of the table
  int64_t width = 0;    // of a row: a count, then physical experts
  bool by_token = false;
  int64_t rank = 0, world = 0;
};

ExpertPlan PlanExperts(const OpContext& op, Check& check) {
  const TensorType &ids = op.in("expert_ids"), &table = op.in("eplb_table");
  check.That(ids.shape.rank() == 2 && table.shape.rank() == 2 && table.shape[1] >= 2 &&
                 IsInteger(ids.dtype) && IsInteger(table.dtype),
             "expert_ids are {} and eplb_table {}; expected matrices of integers", ids, table);
  if (!check.ok()) return {};
  ExpertPlan plan;
  plan.outputs = {ids, {DataType::kBool, ids.shape}};
  plan.tokens = ids.shape[0];
  plan.chosen = ids.shape[1];
  plan.experts = table.shape[0];
  plan.width = table.shape[1];
  plan.by_token = op.attr_int("balance_mode") == 1;
  plan.rank = op.attr_int("local_rank_id");
  plan.world = op.attr_int("world_size");
  check.Keep(ExpectCount(op, "expert_scales", plan.tokens * plan.chosen, "chosen expert"));
  check.Keep(ExpectCount(op, "pruning_threshold", plan.chosen, "place of an expert"));
  check.Keep(ExpectCount(op, "active_mask", plan.tokens, "token"));
  check.That(plan.by_token || (plan.rank >= 0 && plan.rank < plan.world),
             "rank {} of {}; expected a rank of the world", plan.rank, plan.world);
  check.That(op.has("expert_scales") == op.has("pruning_threshold"),
             "expected expert_scales together with pruning_threshold");
  return plan;
}

// The physical expert that serves a logical one for this rank or token.
Result<double> PhysicalExpert(const ExpertPlan& plan, const std::vector<double>& table,
                              int64_t expert, int64_t token) {
  if (expert < 0 || expert >= plan.experts) {
    return Error(Code::kInvalidArgument, "{}: token {} chose expert {}, the table has {}", plan.who,
                 token, expert, plan.experts);
  }
  const double* row = table.data() + expert * plan.width;
  const auto copies = static_cast<int64_t>(row[0]);
  if (copies < 1 || copies >= plan.width) {
    return Error(Code::kInvalidArgument, "{}: the table gives expert {} {} copies in {} places",
                 plan.who, expert, copies, plan.width - 1);
  }
  if (plan.by_token) return row[1 + token % copies];
  const int64_t share = CeilDiv(plan.world, copies);
  return row[1 + plan.rank / share];
}

// Inputs ids, table, scales, threshold, active tokens. An expert is active when its scale is at
// least the threshold's part of the token's scales.
Status Experts(const ExpertPlan& plan, RealTensors& t) {
  const std::vector<double>&scales = t.in[2], &threshold = t.in[3], &active = t.in[4];
  for (int64_t token = 0; token < plan.tokens; ++token) {
    const auto first = static_cast<size_t>(token * plan.chosen);
    double sum = 0;
    for (size_t k = 0; !scales.empty() && k < static_cast<size_t>(plan.chosen); ++k) {
      sum += scales[first + k];
    }
    const bool runs = active.empty() || active[static_cast<size_t>(token)] != 0;
    for (size_t k = 0; k < static_cast<size_t>(plan.chosen); ++k) {
      const auto expert = static_cast<int64_t>(t.in[0][first + k]);
      NPUMESH_ASSIGN_OR_RETURN(t.out[0][first + k], PhysicalExpert(plan, t.in[1], expert, token));
      const bool kept = scales.empty() || scales[first + k] >= sum * threshold[k];
      t.out[1][first + k] = runs && kept ? 1 : 0;
    }
  }
  return Status();
}

}  // namespace

void RegisterSequenceOps(OpRegistry& registry) {
  registry.Add(DefineReal<PlanWindows, WindowSoftmax>(
      "MaskedSoftmaxWithRelPosBias(x, atten_mask?, relative_pos_bias; scale_value=1.0, "
      "inner_precision_mode=0) -> y",
      {.precision = PrecisionClass::kBlack}));
  registry.Add(
      DefineReal<PlanCausal, Causal>("MaskedCausalConv1d(input, weight, mask?) -> output"));
  registry.Add(DefineReal<PlanClipped, Clipped>(
      "ClippedSwiglu(x, group_index?; dim=-1, alpha=1.702, limit=7.0, bias=1.0, "
      "interleaved=true, clamp_mode==0) -> y"));
  registry.Add(DefineReal<PlanExperts, Experts>(
      "MoeUpdateExpert(expert_ids, eplb_table, expert_scales?, pruning_threshold?, "
      "active_mask?; local_rank_id=-1, world_size=-1, balance_mode=0) -> balanced_expert_ids, "
      "balanced_active_mask"));
}

}  // namespace npumesh
