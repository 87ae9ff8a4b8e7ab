// DynamicQuant, DynamicQuantV2, AscendQuantV2, AscendQuant and Quantize.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

// ---- DynamicQuant, DynamicQuantV2 ----

// What shares a scale: a row, the whole tensor, or a column of a matrix.
enum class Span : uint8_t { kToken, kTensor, kChannel };

// x is walked in blocks of rows that share their scales: a row, everything, or a matrix.
struct DynamicPlan : Planned {
  Span span = Span::kToken;
  bool symmetrical = true;
  Factors smooth;  // [width], or [groups, width]; of channels also [rows of a matrix]
  bool smooths_rows = false;
  Integers groups;  // prefix sums; absent: there is one group
  int64_t group_count = 1;
  InputRows from;
  DataType to = DataType::kInt8;
  int64_t block_rows = 1, blocks = 0;
  Workspace<float> x, factors, least, most, scale, offset;
};

Span SpanOf(Check& check, const OpContext& op) {
  check.OneOf("quant_mode", {"pertoken", "pertensor", "perchannel"});
  const std::string mode = op.attr_string("quant_mode");
  check.That(mode != "perchannel" || op.in("x").shape.rank() >= 2,
             "x is {}, expected at least 2 dimensions for quant_mode perchannel", op.in("x"));
  return mode == "pertensor" ? Span::kTensor : mode == "perchannel" ? Span::kChannel : Span::kToken;
}

void ReadSmoothing(Check& check, const OpContext& op, DynamicPlan& plan) {
  plan.smooth = check.Take(Factors::Of(op, "smooth_scales"));
  check.Type("group_index", kIndices);
  plan.groups = Integers::Of(op, "group_index");
  if (plan.groups.given()) plan.group_count = plan.groups.count();
  if (!plan.smooth.given()) return;
  const Shape& x = op.in("x").shape;
  plan.smooths_rows =
      plan.span == Span::kChannel && plan.smooth.count() == x[x.rank() - 2] && !plan.groups.given();
  if (plan.smooths_rows) return;
  check.That(plan.smooth.count() == plan.from.width * plan.group_count,
             "smooth_scales is {}, expected {} x {} elements for x {}", op.in("smooth_scales"),
             plan.group_count, plan.from.width, op.in("x"));
}

template <bool kSecond>  // DynamicQuantV2
DynamicPlan PlanDynamic(const OpContext& op, Check& check) {
  DynamicPlan plan;
  check.RankAtLeast("x", kFloats, 1);
  plan.to = check.TypeOf("dst_type", kQuantised);
  if constexpr (kSecond) {
    plan.span = SpanOf(check, op);
    plan.symmetrical = op.attr_bool("is_symmetrical");
  }
  if (!check.ok()) return plan;
  const Shape& x = op.in("x").shape;
  plan.from = InputRows::Of(check, op, "x");
  ReadSmoothing(check, op, plan);
  CheckPacking(check, plan.to, x);
  const int64_t rows = plan.from.count;
  const int last = x.rank() - 1;
  const bool whole = plan.span == Span::kTensor, channels = plan.span == Span::kChannel;
  plan.block_rows = whole ? rows : channels ? x[last - 1] : 1;
  plan.blocks = plan.block_rows == 0 ? 0 : rows / plan.block_rows;
  const int dropped = channels ? last - 1 : last;
  const Shape scales = whole ? Shape({1}) : Spliced(x, dropped, dropped + 1, {});
  plan.outputs = {{plan.to, x}, {DataType::kFloat, scales}};
  if (kSecond) plan.outputs.push_back(plan.outputs[1]);
  plan.scratch.Take(plan.from.width,
                    {&plan.x, &plan.factors, &plan.least, &plan.most, &plan.scale, &plan.offset});
  return plan;
}

// The rows of scratch in one run.
struct DynamicRows {
  float *x, *factors, *least, *most, *scale, *offset;
  int64_t loaded = -1;  // group whose smoothing is in `factors`
};

// The group of a row: the first whose prefix sum is above it.
int64_t GroupOfRow(const DynamicPlan& plan, const KernelArgs& args, int64_t row) {
  int64_t group = 0;
  while (group + 1 < plan.group_count && row >= plan.groups.At(args, group)) ++group;
  return group;
}

void LoadSmoothed(const DynamicPlan& plan, const KernelArgs& args, int64_t row, DynamicRows& rows) {
  const int64_t width = plan.from.width;
  plan.from.Load(args, row, rows.x);
  if (!plan.smooth.given()) return;
  if (plan.smooths_rows) {
    ScaleRow(rows.x, plan.smooth.At(args, row % plan.block_rows), width, rows.x);
    return;
  }
  const int64_t group = GroupOfRow(plan, args, row);
  if (group != rows.loaded) plan.smooth.Load(args, group * width, width, rows.factors);
  rows.loaded = group;
  MultiplyRow(rows.x, rows.factors, width, rows.x);
}

void FindRange(const DynamicPlan& plan, const KernelArgs& args, int64_t block, DynamicRows& rows) {
  const int64_t width = plan.from.width;
  std::fill_n(rows.least, width, std::numeric_limits<float>::infinity());
  std::fill_n(rows.most, width, -std::numeric_limits<float>::infinity());
  for (int64_t r = 0; r < plan.block_rows; ++r) {
    LoadSmoothed(plan, args, block * plan.block_rows + r, rows);
    for (int64_t i = 0; i < width; ++i) {
      rows.least[i] = std::min(rows.least[i], rows.x[i]);
      rows.most[i] = std::max(rows.most[i], rows.x[i]);
    }
  }
  if (plan.span == Span::kChannel) return;
  std::fill_n(rows.least, width, *std::min_element(rows.least, rows.least + width));
  std::fill_n(rows.most, width, *std::max_element(rows.most, rows.most + width));
}

// A range of zero width has scale 0 and gives zeros.
void SetScales(const DynamicPlan& plan, const KernelArgs& args, int64_t block,
               const DynamicRows& rows) {
  const float largest = LargestOf(plan.to);
  for (int64_t i = 0; i < plan.from.width; ++i) {
    const float least = rows.least[i], most = rows.most[i];
    if (plan.symmetrical) {
      rows.scale[i] = std::max(std::fabs(least), std::fabs(most)) / largest;
      rows.offset[i] = 0;
      continue;
    }
    rows.scale[i] = (most - least) / (2 * largest + 1);
    rows.offset[i] = rows.scale[i] == 0 ? 0.0f : largest - most / rows.scale[i];
  }
  const int64_t count = plan.span == Span::kChannel ? plan.from.width : 1;
  const float* const from[] = {rows.scale, rows.offset};
  for (size_t port = 1; port < plan.outputs.size(); ++port) {
    std::copy_n(from[port - 1], count, static_cast<float*>(args.out[port]) + block * count);
  }
}

// Scales of a tensor without elements are zeros.
Status RunDynamic(const DynamicPlan& plan, const KernelArgs& args) {
  const int64_t width = plan.from.width;
  if (plan.blocks * plan.block_rows * width == 0) {
    ClearOutputs(plan, args);
    return Status();
  }
  DynamicRows rows = {plan.x(args),    plan.factors(args), plan.least(args),
                      plan.most(args), plan.scale(args),   plan.offset(args)};
  for (int64_t b = 0; b < plan.blocks; ++b) {
    FindRange(plan, args, b, rows);
    SetScales(plan, args, b, rows);
    for (int64_t r = b * plan.block_rows; r < (b + 1) * plan.block_rows; ++r) {
      LoadSmoothed(plan, args, r, rows);
      for (int64_t i = 0; i < width; ++i) {
        const float scale = rows.scale[i];
        rows.x[i] = scale == 0 ? 0.0f : rows.x[i] / scale + rows.offset[i];
      }
      StoreIntegers(plan.to, Rounding::kNearest, rows.x, args.out[0], r * width, width);
    }
  }
  return Status();
}

// As a loop: tokens in one group. A row of NaNs has the range that FindRange starts with.
template <bool kSecond>
void LoopDynamic(const OpContext& op, LoopBuilder& loop) {
  Check check(op);
  const DynamicPlan plan = PlanDynamic<kSecond>(op, check);
  if (!check.ok() || plan.groups.given() || plan.span != Span::kToken) return;
  if (!SpansRows(op, "x", loop)) return;
  const DataType dtype = plan.to;
  const LoopValue x = LoopWith(op, loop, LoopOp::kMul, loop.In(plan.from.slot), plan.smooth);
  const auto largest_of = [&](LoopValue row) { return loop.Emit(LoopOp::kRowMax, {row}); };
  const LoopValue largest = loop.Constant(static_cast<double>(LargestOf(dtype)));
  const LoopValue zero = loop.Constant(0);
  LoopValue scale, offset = zero;
  if (plan.symmetrical) {
    const LoopValue most = largest_of(loop.Emit(LoopOp::kAbs, {x}));
    scale = loop.Emit(LoopOp::kDiv, {loop.Emit(LoopOp::kAbs, {most}), largest});
  } else {
    const LoopValue most = largest_of(x);
    const LoopValue least = loop.Emit(LoopOp::kNeg, {largest_of(loop.Emit(LoopOp::kNeg, {x}))});
    const double steps = 2 * static_cast<double>(LargestOf(dtype)) + 1;
    scale = loop.Emit(LoopOp::kDiv, {loop.Emit(LoopOp::kSub, {most, least}), loop.Constant(steps)});
    const LoopValue shift =
        loop.Emit(LoopOp::kSub, {largest, loop.Emit(LoopOp::kDiv, {most, scale})});
    offset = loop.Emit(LoopOp::kSelect, {loop.Emit(LoopOp::kEqual, {scale, zero}), zero, shift});
  }
  const LoopValue scaled = loop.Emit(LoopOp::kAdd, {loop.Emit(LoopOp::kDiv, {x, scale}), offset});
  const LoopValue y =
      loop.Emit(LoopOp::kSelect, {loop.Emit(LoopOp::kEqual, {scale, zero}), zero, scaled});
  loop.Give(0, LoopIntegers(loop, dtype, Rounding::kNearest, y));
  loop.Give(1, scale);
  if (kSecond) loop.Give(2, offset);
}

// ---- AscendQuantV2, AscendQuant, Quantize ----

// Factors that broadcast to x: one, one for each position of an axis, or of x's rank.
struct Grid {
  Factors factors;
  Shape seen;                    // their shape among the dimensions of x
  std::vector<int64_t> strides;  // for each dimension of x; empty: one factor
  float value = 0;               // where there are no factors

  // The factor at the beginning of row number `row` of x.
  int64_t First(const Shape& x, int64_t row) const {
    int64_t index = 0;
    for (size_t i = strides.empty() ? 0 : strides.size() - 1; i-- > 0;) {
      const int64_t extent = x[static_cast<int>(i)];
      index += row % extent * strides[i];
      row /= extent;
    }
    return index;
  }

  // The factors of a row of x.
  void Load(const KernelArgs& args, const Shape& x, int64_t row, int64_t width, float* to) const {
    const int64_t first = First(x, row);
    if (!strides.empty() && strides.back() != 0) {
      factors.Load(args, first, width, to);
    } else {
      std::fill_n(to, width, factors.For(args, first, value));
    }
  }

  // The same as an instruction.
  LoopValue Loop(LoopBuilder& loop) const {
    return factors.given() ? loop.Factor(factors.slot(), seen)
                           : loop.Constant(static_cast<double>(value));
  }
};

// The factors fed to a port; `otherwise` where it has none.
Grid GridOf(Check& check, const OpContext& op, std::string_view port, float otherwise) {
  Grid grid{
      .factors = check.Take(Factors::Of(op, port)), .seen = op.in(port).shape, .value = otherwise};
  if (!check.ok() || grid.factors.count() <= 1) return grid;
  const Shape& x = op.in("x").shape;
  if (grid.seen.rank() == 1) {
    const int axis = check.Axis("axis", x.rank());
    Shape seen(std::vector<int64_t>(x.dims().size(), 1));
    seen[axis] = grid.seen[0];
    grid.seen = seen;
  }
  grid.strides.assign(x.dims().size(), 0);
  bool fits = grid.seen.rank() == x.rank();
  int64_t stride = 1;
  for (int i = x.rank() - 1; fits && i >= 0; --i) {
    fits = grid.seen[i] == 1 || grid.seen[i] == x[i];
    if (grid.seen[i] != 1) grid.strides[static_cast<size_t>(i)] = stride;
    stride *= grid.seen[i];
  }
  check.That(fits, "{} is {}, expected what broadcasts to x {}", port, op.in(port), op.in("x"));
  return grid;
}

// y = round(x * scale + offset), or of x / scale.
struct StaticPlan : Planned {
  Grid scale, offset;
  bool squared = false;  // the scale is applied twice
  bool divides = false;
  Rounding rounding = Rounding::kNearest;
  InputRows from;
  DataType to = DataType::kInt8;
  Shape shape;
  Workspace<float> x, scales, offsets;
};

StaticPlan StaticOf(Check& check, const OpContext& op, DataType to) {
  StaticPlan plan;
  check.RankAtLeast("x", kFloats, 1);
  if (!check.ok()) return plan;
  plan.from = InputRows::Of(check, op, "x");
  plan.to = to;
  plan.shape = op.in("x").shape;
  plan.outputs = {{to, plan.shape}};
  plan.scratch.Take(plan.from.width, {&plan.x, &plan.scales, &plan.offsets});
  return plan;
}

template <bool kInputs>  // AscendQuantV2, whose scale and offset are inputs
StaticPlan PlanAscend(const OpContext& op, Check& check) {
  StaticPlan plan = StaticOf(check, op, check.TypeOf("dst_type", kQuantised));
  plan.squared = op.attr_bool("sqrt_mode");
  plan.rounding = check.Take(RoundingOf(op, "round_mode"));
  CheckPacking(check, plan.to, plan.shape);
  if constexpr (kInputs) {
    plan.scale = GridOf(check, op, "scale", 1);
    plan.offset = GridOf(check, op, "offset", 0);
  } else {
    plan.scale.value = op.attr_float("scale");
    plan.offset.value = op.attr_float("offset");
  }
  return plan;
}

// The string of Quantize: "torch.qint8" ...
Result<DataType> TorchType(const OpContext& op) {
  const std::string name = op.attr_string("dtype");
  if (name == "torch.qint8" || name == "torch.int8") return DataType::kInt8;
  if (name == "torch.quint8" || name == "torch.uint8") return DataType::kUint8;
  if (name == "torch.qint32" || name == "torch.int32") return DataType::kInt32;
  return Error(Code::kUnsupported,
               "{}: dtype \"{}\", expected torch.qint8, torch.quint8 or torch.qint32", op.Who(),
               name);
}

StaticPlan PlanQuantize(const OpContext& op, Check& check) {
  StaticPlan plan = StaticOf(check, op, check.Take(TorchType(op)));
  plan.divides = true;
  plan.scale = GridOf(check, op, "scales", 1);
  plan.offset = GridOf(check, op, "zero_points", 0);
  return plan;
}

Status RunStatic(const StaticPlan& plan, const KernelArgs& args) {
  const int64_t width = plan.from.width;
  float *x = plan.x(args), *scale = plan.scales(args), *offset = plan.offsets(args);
  for (int64_t r = 0; r < plan.from.count; ++r) {
    plan.from.Load(args, r, x);
    plan.scale.Load(args, plan.shape, r, width, scale);
    plan.offset.Load(args, plan.shape, r, width, offset);
    for (int64_t i = 0; i < width; ++i) {
      const float scaled = plan.divides ? x[i] / scale[i] : x[i] * scale[i];
      x[i] = (plan.squared ? scaled * scale[i] : scaled) + offset[i];
    }
    StoreIntegers(plan.to, plan.rounding, x, args.out[0], r * width, width);
  }
  return Status();
}

template <auto PlanFn>
void LoopStatic(const OpContext& op, LoopBuilder& loop) {
  Check check(op);
  const StaticPlan plan = PlanFn(op, check);
  if (!check.ok()) return;
  const LoopValue scale = plan.scale.Loop(loop), offset = plan.offset.Loop(loop);
  LoopValue y = loop.In(plan.from.slot);
  y = loop.Emit(plan.divides ? LoopOp::kDiv : LoopOp::kMul, {y, scale});
  if (plan.squared) y = loop.Emit(LoopOp::kMul, {y, scale});
  y = loop.Emit(LoopOp::kAdd, {y, offset});
  loop.Give(LoopIntegers(loop, plan.to, plan.rounding, y));
}

}  // namespace

void RegisterQuantiseOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanDynamic<false>, RunDynamic>(
      "DynamicQuant(x, smooth_scales?, group_index?; dst_type=2) -> y, scale",
      {.loop = LoopDynamic<false>}));
  registry.Add(Define<PlanDynamic<true>, RunDynamic>(
      "DynamicQuantV2(x, smooth_scales?, group_index?; dst_type=2, is_symmetrical=false, "
      "quant_mode=\"pertoken\", dst_type_max=0.0) -> y, scale, offset",
      {.loop = LoopDynamic<true>}));
  registry.Add(Define<PlanAscend<true>, RunStatic>(
      "AscendQuantV2(x, scale, offset?; sqrt_mode=false, round_mode=\"round\", dst_type=2, "
      "axis=-1) -> y",
      {.loop = LoopStatic<PlanAscend<true>>}));
  registry.Add(Define<PlanAscend<false>, RunStatic>(
      "AscendQuant(x; scale:float, offset:float, sqrt_mode=false, "
      "round_mode=\"Round\", dst_type=2) -> y",
      {.loop = LoopStatic<PlanAscend<false>>}));
  registry.Add(Define<PlanQuantize, RunStatic>(
      "Quantize(x, scales, zero_points?; dtype:string, axis=1) -> y",
      {.loop = LoopStatic<PlanQuantize>}));
}

}  // namespace npumesh
