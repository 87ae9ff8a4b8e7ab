// Small operators of model code that fit no other family: MaskedSoftmaxWithRelPosBias,
// MaskedCausalConv1d, ClippedSwiglu, MoeUpdateExpert. Ops reference 5.19.
#include <algorithm>
#include <cmath>

#include "graph/ops/infer_checks.h"
#include "graph/ops/real_kernel.h"
#include "graph/ops/train_families.h"

namespace npumesh {
namespace {

// ---- MaskedSoftmaxWithRelPosBias ----

// x as [windows, heads, plane, columns]: [B W, N, S1, S2] or [B, W, N, S1, S2]. A mask has a plane
// for each of W windows, which follow each other again and again; the bias one for each head.
struct WindowPlan {
  int64_t windows = 1;
  int64_t heads = 1;
  int64_t plane = 1;  // S1 * S2
  int64_t columns = 1;
  int64_t masks = 0;  // 0: no mask
};

Result<WindowPlan> PlanWindows(const OpContext& op) {
  const Shape& x = op.in("x").shape;
  for (const PortSpec& port : op.schema().inputs) {
    NPUMESH_RETURN_IF_ERROR(ExpectReal(op, port.name));
  }
  const int rank = x.rank();
  if (rank != 4 && rank != 5) {
    return Error(Code::kInvalidArgument, "{}: x is {}, expected four or five dimensions", op.Who(),
                 x.ToString());
  }
  WindowPlan plan;
  plan.columns = x[rank - 1];
  plan.plane = x[rank - 2] * plan.columns;
  plan.heads = x[rank - 3];
  plan.windows = ElementsBetween(x, 0, rank - 3);
  NPUMESH_RETURN_IF_ERROR(
      ExpectCount(op, "relative_pos_bias", plan.heads * plan.plane, "score of a window"));
  if (!op.has("atten_mask")) return plan;
  const int64_t mask = op.in("atten_mask").shape.elements();
  plan.masks = plan.plane > 0 ? mask / plan.plane : 1;
  const bool whole = mask == plan.masks * plan.plane && plan.masks > 0;
  if (whole && plan.windows % plan.masks == 0) return plan;
  return Error(Code::kInvalidArgument,
               "{}: atten_mask is {}, expected planes for the windows of {}", op.Who(),
               op.in("atten_mask").ToString(), x.ToString());
}

Status InferWindowSoftmax(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(PlanWindows(op).status());
  return SetOutput(op, 0, op.in("x").dtype, op.in("x").shape);
}

void SoftmaxInPlace(double* row, int64_t columns) {
  double most = -INFINITY, sum = 0;
  for (int64_t i = 0; i < columns; ++i) most = std::max(most, row[i]);
  for (int64_t i = 0; i < columns; ++i) sum += row[i] = std::exp(row[i] - most);
  for (int64_t i = 0; i < columns; ++i) row[i] /= sum;
}

Result<std::unique_ptr<Kernel>> MakeWindowSoftmax(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const WindowPlan plan, PlanWindows(op));
  const auto scale = static_cast<double>(op.attr_float("scale_value"));
  return MakeRealKernel(op, [plan, scale](RealTensors& t) {
    const double *x = t.in[0].data(), *mask = t.in[1].data(), *bias = t.in[2].data();
    double* y = t.out[0].data();
    for (int64_t window = 0; window < plan.windows; ++window) {
      for (int64_t head = 0; head < plan.heads; ++head) {
        for (int64_t i = 0; i < plan.plane; ++i) {
          y[i] = scale * x[i] + bias[head * plan.plane + i];
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
  });
}

// ---- MaskedCausalConv1d ----

// input [S, B, H], weight [W, H], mask [B, S].
Status InferCausal(OpContext& op) {
  const Shape &x = op.in("input").shape, &weight = op.in("weight").shape;
  NPUMESH_RETURN_IF_ERROR(ExpectReal(op, "input"));
  NPUMESH_RETURN_IF_ERROR(ExpectReal(op, "weight"));
  if (x.rank() != 3 || weight.rank() != 2 || weight[1] != x[2] ||
      (op.has("mask") && op.in("mask").shape != Shape({x[1], x[0]}))) {
    return Error(Code::kInvalidArgument,
                 "{}: input is {}, weight {} and mask {}; expected [S,B,H], [W,H] and [B,S]",
                 op.Who(), x.ToString(), weight.ToString(),
                 op.has("mask") ? op.in("mask").ToString() : "absent");
  }
  return SetOutput(op, 0, op.in("input").dtype, x);
}

// Rows in front of the first are zero.
Result<std::unique_ptr<Kernel>> MakeCausal(const OpContext& op) {
  const Shape& x = op.in("input").shape;
  return MakeRealKernel(op, [rows = x[0], batches = x[1], width = x[2],
                             taps = op.in("weight").shape[0]](RealTensors& t) {
    const double *in = t.in[0].data(), *weight = t.in[1].data();
    double* y = t.out[0].data();
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t b = 0; b < batches; ++b, y += width) {
        if (!t.in[2].empty() && t.in[2][static_cast<size_t>(b * rows + i)] == 0) continue;
        for (int64_t k = 0; k < std::min(taps, i + 1); ++k) {
          const double* row = in + ((i - k) * batches + b) * width;
          const double* tap = weight + (taps - 1 - k) * width;
          for (int64_t h = 0; h < width; ++h) y[h] += row[h] * tap[h];
        }
      }
    }
    return Status();
  });
}

// ---- ClippedSwiglu ----

// x as [outer, 2 pairs, inner]. Gates and linear parts alternate, or are the two halves.
struct ClippedPlan {
  int64_t outer = 1;
  int64_t pairs = 0;
  int64_t inner = 1;
  Shape y;
};

Result<ClippedPlan> PlanClipped(const OpContext& op) {
  const Shape& x = op.in("x").shape;
  NPUMESH_RETURN_IF_ERROR(ExpectReal(op, "x"));
  NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, op.attr_int("dim"), x.rank(), "dim"));
  if (x[axis] % 2 != 0 || (op.has("group_index") && !IsInteger(op.in("group_index").dtype))) {
    return Error(Code::kInvalidArgument,
                 "{}: x is {}, expected an even dimension {}, and integers as group_index",
                 op.Who(), x.ToString(), axis);
  }
  ClippedPlan plan;
  plan.outer = ElementsBetween(x, 0, axis);
  plan.pairs = x[axis] / 2;
  plan.inner = ElementsBetween(x, axis + 1, x.rank());
  plan.y = x;
  plan.y[axis] = plan.pairs;
  return plan;
}

Status InferClipped(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(ClippedPlan plan, PlanClipped(op));
  return SetOutput(op, 0, op.in("x").dtype, std::move(plan.y));
}

// group_index counts the rows of each group; rows behind the last group are zero.
Result<std::unique_ptr<Kernel>> MakeClipped(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(ClippedPlan plan, PlanClipped(op));
  const auto number = [&](std::string_view attr) {
    return static_cast<double>(op.attr_float(attr));
  };
  return MakeRealKernel(
      op, [plan = std::move(plan), alpha = number("alpha"), limit = number("limit"),
           bias = number("bias"), mixed = op.attr_bool("interleaved")](RealTensors& t) {
        double rows = t.in[1].empty() ? static_cast<double>(plan.outer) : 0;
        for (const double group : t.in[1]) rows += group;
        double* y = t.out[0].data();
        for (int64_t row = 0; row < plan.outer && static_cast<double>(row) < rows; ++row) {
          const double* x = t.in[0].data() + row * 2 * plan.pairs * plan.inner;
          for (int64_t pair = 0; pair < plan.pairs; ++pair) {
            const double* gates = x + (mixed ? 2 * pair : pair) * plan.inner;
            const double* others = gates + (mixed ? 1 : plan.pairs) * plan.inner;
            for (int64_t i = 0; i < plan.inner; ++i) {
              const double gate = std::min(gates[i], limit);
              const double linear = std::clamp(others[i], -limit, limit) + bias;
              *y++ = gate / (1 + std::exp(-alpha * gate)) * linear;
            }
          }
        }
        return Status();
      });
}

// ---- MoeUpdateExpert ----

struct ExpertPlan {
  std::string who;
  int64_t tokens = 0;
  int64_t chosen = 0;   // experts of each token
  int64_t experts = 0;  // rows of the table
  int64_t width = 0;    // of a row: a count, then physical experts
  bool by_token = false;
  int64_t rank = 0;
  int64_t world = 0;
};

Result<ExpertPlan> PlanExperts(const OpContext& op) {
  const TensorType &ids = op.in("expert_ids"), &table = op.in("eplb_table");
  if (ids.shape.rank() != 2 || table.shape.rank() != 2 || table.shape[1] < 2 ||
      !IsInteger(ids.dtype) || !IsInteger(table.dtype)) {
    return Error(Code::kInvalidArgument,
                 "{}: expert_ids are {} and eplb_table {}; expected matrices of integers", op.Who(),
                 ids.ToString(), table.ToString());
  }
  ExpertPlan plan;
  plan.who = op.Who();
  plan.tokens = ids.shape[0];
  plan.chosen = ids.shape[1];
  plan.experts = table.shape[0];
  plan.width = table.shape[1];
  plan.by_token = op.attr_int("balance_mode") == 1;
  plan.rank = op.attr_int("local_rank_id");
  plan.world = op.attr_int("world_size");
  NPUMESH_RETURN_IF_ERROR(
      ExpectCount(op, "expert_scales", plan.tokens * plan.chosen, "chosen expert"));
  NPUMESH_RETURN_IF_ERROR(ExpectCount(op, "pruning_threshold", plan.chosen, "place of an expert"));
  NPUMESH_RETURN_IF_ERROR(ExpectCount(op, "active_mask", plan.tokens, "token"));
  const bool ranks_fit = plan.by_token || (plan.rank >= 0 && plan.rank < plan.world);
  if (ranks_fit && op.has("expert_scales") == op.has("pruning_threshold")) return plan;
  return Error(Code::kInvalidArgument,
               "{}: rank {} of {}; expected a rank of the world, and scales together with a "
               "threshold",
               op.Who(), plan.rank, plan.world);
}

Status InferExperts(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(PlanExperts(op).status());
  const TensorType& ids = op.in("expert_ids");
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, ids.dtype, ids.shape));
  return SetOutput(op, 1, DataType::kBool, ids.shape);
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
  const int64_t share = (plan.world + copies - 1) / copies;
  return row[1 + plan.rank / share];
}

// Inputs ids, table, scales, threshold, active tokens. An expert is active when its scale is at
// least the threshold's part of the token's scales.
Result<std::unique_ptr<Kernel>> MakeExperts(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(ExpertPlan plan, PlanExperts(op));
  return MakeRealKernel(op, [plan = std::move(plan)](RealTensors& t) {
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
  });
}

}  // namespace

void RegisterSequenceOps(OpRegistry& registry) {
  registry.Add({.schema = {"MaskedSoftmaxWithRelPosBias",
                           {{"x"}, {"atten_mask", PortKind::kOptional}, {"relative_pos_bias"}},
                           {{"y"}},
                           {{"scale_value", AttrValue::Float(1.0f)},
                            {"inner_precision_mode", AttrValue::Int(0)}}},
                .infer = InferWindowSoftmax,
                .make_kernel = MakeWindowSoftmax});
  registry.Add({.schema = {"MaskedCausalConv1d",
                           {{"input"}, {"weight"}, {"mask", PortKind::kOptional}},
                           {{"output"}},
                           {}},
                .infer = InferCausal,
                .make_kernel = MakeCausal});
  registry.Add({.schema = {"ClippedSwiglu",
                           {{"x"}, {"group_index", PortKind::kOptional}},
                           {{"y"}},
                           {{"dim", AttrValue::Int(-1)},
                            {"alpha", AttrValue::Float(1.702f)},
                            {"limit", AttrValue::Float(7.0f)},
                            {"bias", AttrValue::Float(1.0f)},
                            {"interleaved", AttrValue::Bool(true)},
                            AttrSpec::Only("clamp_mode", AttrValue::Int(0))}},
                .infer = InferClipped,
                .make_kernel = MakeClipped});
  registry.Add({.schema = {"MoeUpdateExpert",
                           {{"expert_ids"},
                            {"eplb_table"},
                            {"expert_scales", PortKind::kOptional},
                            {"pruning_threshold", PortKind::kOptional},
                            {"active_mask", PortKind::kOptional}},
                           {{"balanced_expert_ids"}, {"balanced_active_mask"}},
                           {{"local_rank_id", AttrValue::Int(-1)},
                            {"world_size", AttrValue::Int(-1)},
                            {"balance_mode", AttrValue::Int(0)}}},
                .infer = InferExperts,
                .make_kernel = MakeExperts});
}

}  // namespace npumesh
