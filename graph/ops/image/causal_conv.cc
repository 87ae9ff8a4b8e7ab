// FusedCausalConv1d and InplaceFusedCausalConv1d: a depthwise convolution of three taps along
// packed sequences, each preceded by the rows that its cache holds.
//
//   y[i] = sum over k of w[k] * x'[i + k],  x' = the K - 1 cached rows, then the sequence
//
// The cache then holds the last K - 1 rows of x'. The residual x[i] is added after the activation.
// Speculative decoding, whose caches are longer, and block-wise caches are refused.
#include <algorithm>
#include <cmath>
#include <string>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/image/family.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

struct ConvPlan : Planned {
  bool in_place = false;  // y lies where x does
  int64_t rows = 0, width = 0, taps = 0;
  int64_t kept = 0;  // rows that the cache has of a sequence
  int64_t sequences = 0;
  int64_t length = 0;  // of every sequence of a three-dimensional x; 0: packed
  int64_t lines = 0;   // of the cache
  DataType dtype = DataType::kUndefined;
  Integers starts, indices, modes;
  int64_t skipped = -1;
  bool activates = false, residual = true;
  Workspace<float> weights, history, last, seen, y;
};

// x is [rows, dim] or [batch, length, dim], weight [K, dim], conv_states [lines, K - 1, dim].
void ReadShapes(const OpContext& op, Check& check, ConvPlan& plan) {
  const TensorType& x = op.in("x");
  const int rank = x.shape.rank();
  check.Type("x", kFloats);
  check.That(rank == 2 || rank == 3, "x is {}, expected [rows,dim] or [batch,length,dim]", x);
  const auto [taps, width] = check.Matrix("weight", kFloats);
  check.Rank("conv_states", kFloats, 3);
  for (const std::string_view port : {"weight", "conv_states"}) check.SameType(port, "x");
  if (!check.ok()) return;
  plan.dtype = x.dtype;
  plan.width = width;
  plan.rows = ElementsBetween(x.shape, 0, rank - 1);
  plan.taps = taps;
  plan.kept = taps - 1;
  plan.lines = op.in("conv_states").shape[0];
  if (rank == 3) {
    plan.sequences = x.shape[0];
    plan.length = x.shape[1];
  }
  check.That(x.shape[rank - 1] == width && taps >= 1 && (rank == 2 || plan.length > 0),
             "x is {} and weight {}, expected rows of one width and at least one tap", x,
             op.in("weight"));
  check.Shape("conv_states", {plan.lines, plan.kept, width});
}

void ReadLists(const OpContext& op, Check& check, ConvPlan& plan) {
  plan.starts = Integers::Of(op, "query_start_loc");
  plan.indices = Integers::Of(op, "cache_indices");
  plan.modes = Integers::Of(op, "initial_state_mode");
  const bool packed = plan.length == 0;
  check.That(!packed || plan.starts.given(), "x is packed, \"query_start_loc\" is missing");
  if (!check.ok()) return;
  if (packed) {
    plan.sequences = plan.starts.count() - 1;
    check.TypeAndShape("query_start_loc", DataType::kInt32, {plan.sequences + 1});
  }
  for (const std::string_view list : {"cache_indices", "initial_state_mode"}) {
    check.TypeAndShape(list, DataType::kInt32, {plan.sequences});
  }
  check.That(plan.indices.given() || plan.lines >= plan.sequences,
             "{} cached lines for {} sequences", plan.lines, plan.sequences);
}

template <bool kInPlace>
ConvPlan PlanConv(const OpContext& op, Check& check) {
  ConvPlan plan;
  check.NotFed({"bias", "num_accepted_tokens", "num_computed_tokens",
                "block_idx_first_scheduled_token", "block_idx_last_scheduled_token",
                "initial_state_idx"});
  check.Among("conv_mode", {0});
  check.Among("run_mode", {0, 1});
  plan.activates = check.Among("activation_mode", {0, 1, 2}) != 0;
  plan.residual = check.Among("residual_connection", {0, 1}) == 1;
  plan.skipped = op.attr_int("pad_slot_id");
  plan.in_place = kInPlace;
  ReadShapes(op, check, plan);
  ReadLists(op, check, plan);
  plan.outputs = {op.in("conv_states"), op.in("x")};
  plan.weights = plan.scratch.Floats(plan.taps * plan.width);
  plan.scratch.Take(plan.kept * plan.width, {&plan.history, &plan.last});
  plan.scratch.Take(plan.width, {&plan.seen, &plan.y});
  return plan;
}

// Row `i` of x': the history, then the sequence.
void LoadSeen(const ConvPlan& plan, const KernelArgs& args, int64_t begin, int64_t i, float* to) {
  const int64_t n = plan.width;
  if (i < plan.kept) {
    std::copy_n(plan.history(args) + i * n, n, to);
  } else {
    LoadNumbers(plan.dtype, args.in[0], (begin + i - plan.kept) * n, n, to);
  }
}

void RunRow(const ConvPlan& plan, const KernelArgs& args, int64_t begin, int64_t i) {
  const int64_t n = plan.width;
  const float* weights = plan.weights(args);
  float *seen = plan.seen(args), *y = plan.y(args);
  std::fill_n(y, n, 0.0f);
  for (int64_t k = 0; k < plan.taps; ++k) {
    LoadSeen(plan, args, begin, i + k, seen);
    for (int64_t d = 0; d < n; ++d) y[d] += weights[k * n + d] * seen[d];
  }
  for (int64_t d = 0; plan.activates && d < n; ++d) y[d] /= 1.0f + std::exp(-y[d]);
  // The last tap saw x[i].
  for (int64_t d = 0; plan.residual && d < n; ++d) y[d] += seen[d];
  StoreRow(plan.dtype, y, args.out[1], (begin + i) * n, n);
}

Status RunSequence(const ConvPlan& plan, const KernelArgs& args, int64_t b, int64_t begin,
                   int64_t end) {
  const int64_t line = plan.indices.given() ? plan.indices.At(args, b) : b;
  if (plan.skipped >= 0 && line == plan.skipped) return Status();
  if (line < 0 || line >= plan.lines) {
    return Error(Code::kInvalidArgument, "{}: sequence {} has line {} of a cache of {}", plan.who,
                 b, line, plan.lines);
  }
  const int64_t mode = plan.modes.given() ? plan.modes.At(args, b) : 1;
  if (mode != 0 && mode != 1) {
    return Error(Code::kUnsupported, "{}: initial_state_mode of sequence {} is {}, expected 0 or 1",
                 plan.who, b, mode);
  }
  const int64_t elements = plan.kept * plan.width;
  float *history = plan.history(args), *last = plan.last(args);
  LoadNumbers(plan.dtype, args.out[0], line * elements, elements, history);
  if (mode == 0) std::fill_n(history, elements, 0.0f);
  for (int64_t k = 0; k < plan.kept; ++k) {
    LoadSeen(plan, args, begin, end - begin + k, last + k * plan.width);
  }
  // From the end on, because y may lie where x does.
  for (int64_t i = end - begin; i-- > 0;) RunRow(plan, args, begin, i);
  StoreRow(plan.dtype, last, args.out[0], line * elements, elements);
  return Status();
}

Status RunConv(const ConvPlan& plan, const KernelArgs& args) {
  const bool packed = plan.length == 0;
  LoadNumbers(plan.dtype, args.in[1], 0, plan.taps * plan.width, plan.weights(args));
  if (!plan.in_place) ClearOutput(plan, args, 1);
  for (int64_t b = 0; b < plan.sequences; ++b) {
    const int64_t begin = packed ? plan.starts.At(args, b) : b * plan.length;
    const int64_t end = packed ? plan.starts.At(args, b + 1) : begin + plan.length;
    if (begin < 0 || end < begin || end > plan.rows) {
      return Error(Code::kInvalidArgument,
                   "{}: \"query_start_loc\" gives sequence {} rows {} to {} of {}", plan.who, b,
                   begin, end, plan.rows);
    }
    NPUMESH_RETURN_IF_ERROR(RunSequence(plan, args, b, begin, end));
  }
  return Status();
}

}  // namespace

void RegisterCausalConvOps(OpRegistry& registry) {
  registry.Add(Define<PlanConv<false>, RunConv>(
      "FusedCausalConv1d(x, weight, conv_states, query_start_loc?, cache_indices?, "
      "initial_state_mode?, bias?, num_accepted_tokens?, num_computed_tokens?, "
      "block_idx_first_scheduled_token?, block_idx_last_scheduled_token?, initial_state_idx?; "
      "activation_mode=0, pad_slot_id=-1, run_mode=0, max_query_len=-1, residual_connection=1, "
      "block_size=128, conv_mode=0) -> conv_states, y",
      {.in_place = {{0, 2}}}));
  registry.Add(Define<PlanConv<true>, RunConv>(
      "InplaceFusedCausalConv1d(x, weight, conv_states, query_start_loc?, cache_indices?, "
      "initial_state_mode?, bias?, num_accepted_tokens?, num_computed_tokens?, "
      "block_idx_first_scheduled_token?, block_idx_last_scheduled_token?, initial_state_idx?; "
      "activation_mode=0, pad_slot_id=-1, run_mode=0, max_query_len=-1, residual_connection=1, "
      "block_size=128, conv_mode=0) -> conv_states, x",
      {.in_place = {{0, 2}, {1, 0}}}));
}

}  // namespace npumesh
