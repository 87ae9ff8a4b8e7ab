// DequantSwigluQuant: the gated activation between the two products of a quantised feed-forward
// layer, with the dequantisation before it and the quantisation after it.
#include <algorithm>
#include <string>

#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/product/blocked_product.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/gated_unit.h"
#include "graph/ops/toolbox/values/quantised_row.h"

namespace npumesh {
namespace {

struct DequantSwigluPlan : Planned {
  bool last = true;       // the last dimension is halved
  int64_t half_rows = 1;  // rows of x in a half of another dimension
  int64_t columns = 0;    // of x
  int64_t y_columns = 0, y_rows = 0, groups = 1;
  Integers group_rows;  // of each group; absent: there is one
  DataType x_dtype = DataType::kUndefined, y_dtype = DataType::kInt8;
  Dequant dequant;      // of int32 x
  Factors quant_scale;  // [groups, y_columns], [groups] or one
  Factors quant_offset;
  bool dynamic = false;
  GatedUnit unit;
  Rounding rounding = Rounding::kNearest;
  Workspace<float> first, second, factors, z;
};

void ReadDequant(Check& check, const OpContext& op, DequantSwigluPlan& plan) {
  constexpr TypeSet kTypes = kFloats | DataType::kInt32;
  check.Supported(kTypes.Contains(plan.x_dtype), "x is {}, expected {}", Name(plan.x_dtype),
                  kTypes);
  if (!check.ok() || plan.x_dtype != DataType::kInt32) return;
  const int64_t groups = plan.groups, all = groups * plan.columns;
  const int64_t rows = op.in("x").shape.elements() / std::max<int64_t>(plan.columns, 1);
  Dequant& dequant = plan.dequant;
  dequant.scale = FactorsOf(check, op, "weight_scale", {1, groups, all});
  dequant.row_scale = FactorsOf(check, op, "activation_scale", {1, rows});
  ReadBias(check, op, dequant);
  if (dequant.before.given()) check.Elements("bias", {1, all});
  check.Elements("bias", {1, groups, all});
}

// Reads x and the dimension that is halved; gives its number.
int ReadHalves(Check& check, const OpContext& op, DequantSwigluPlan& plan) {
  const TensorType& x = op.in("x");
  const int rank = x.shape.rank(), axis = check.Axis("activate_dim", rank);
  if (!check.ok()) return axis;
  check.That(x.shape[axis] % 2 == 0, "dimension {} of x {} cannot be halved", axis, x);
  const int64_t half = x.shape[axis] / 2;
  plan.last = axis + 1 == rank;
  plan.x_dtype = x.dtype;
  plan.columns = x.shape[rank - 1];
  plan.y_columns = plan.last ? half : plan.columns;
  plan.y_rows = plan.y_columns == 0 ? 0 : x.shape.elements() / 2 / plan.y_columns;
  if (!plan.last) plan.half_rows = half * ElementsBetween(x.shape, axis + 1, rank - 1);
  return axis;
}

DequantSwigluPlan PlanDequantSwiglu(const OpContext& op, Check& check) {
  DequantSwigluPlan plan;
  const int axis = ReadHalves(check, op, plan);
  check.Type("group_index", kIndices);
  check.OneOf("quant_mode", {"static", "dynamic"});
  check.Between("swiglu_mode", 0, 2);
  if (!check.ok()) return plan;
  plan.group_rows = Integers::Of(op, "group_index");
  if (plan.group_rows.given()) plan.groups = plan.group_rows.count();
  plan.unit = GatedUnit::Of(op);
  plan.dynamic = op.attr_string("quant_mode") == "dynamic";
  check.That(plan.last || (plan.unit.mode == 0 && !plan.group_rows.given()),
             "activate_dim is {}, expected the last dimension of x where there are groups or a "
             "swiglu_mode",
             axis);
  plan.rounding = check.Take(RoundingOf(op, "round_mode"));
  plan.y_dtype = check.TypeOf("dst_type", kQuantised);
  ReadDequant(check, op, plan);
  const int64_t groups = plan.groups, all = groups * plan.y_columns;
  plan.quant_scale = FactorsOf(check, op, "quant_scale", {1, groups, all});
  plan.quant_offset = FactorsOf(check, op, "quant_offset", {1, groups, all});
  Shape y = op.in("x").shape;
  y[axis] /= 2;
  CheckPacking(check, plan.y_dtype, y);
  plan.outputs = {{plan.y_dtype, y}, {DataType::kFloat, WithoutLast(y)}};
  plan.scratch.Take(plan.columns, {&plan.first, &plan.second, &plan.factors});
  plan.z = plan.scratch.Floats(plan.y_columns);
  return plan;
}

// Row `row` of x, dequantised.
void LoadX(const DequantSwigluPlan& plan, const KernelArgs& args, int64_t row, int64_t group,
           float* to) {
  const int64_t n = plan.columns;
  if (plan.x_dtype != DataType::kInt32) {
    LoadNumbers(plan.x_dtype, args.in[0], row * n, n, to);
    return;
  }
  const auto* x = static_cast<const int32_t*>(args.in[0]) + row * n;
  plan.dequant.Part(group, plan.groups)
      .Apply(args, {row, 0, n, x, nullptr}, plan.factors(args), to);
}

// Gives row `row` of y and its scale; `z` is changed.
void Quantise(const DequantSwigluPlan& plan, const KernelArgs& args, int64_t row, int64_t group,
              float* z) {
  const int64_t n = plan.y_columns;
  const Factors by = plan.quant_scale.Part(group, plan.groups);
  float* room = plan.factors(args);
  float scale = 0;
  if (plan.dynamic) {
    ScaleColumns(args, by, {}, 0, n, room, z);
    const float most = LargestMagnitude(z, n), largest = LargestOf(plan.y_dtype);
    scale = most / largest;
    for (int64_t i = 0; i < n; ++i) z[i] = most == 0 ? 0.0f : z[i] * largest / most;
  } else {
    if (by.given()) LoadColumns(args, by, 0, n, room);
    for (int64_t i = 0; by.given() && i < n; ++i) z[i] /= room[i];
    ScaleColumns(args, {}, plan.quant_offset.Part(group, plan.groups), 0, n, room, z);
  }
  StoreIntegers(plan.y_dtype, plan.rounding, z, args.out[0], row * n, n);
  static_cast<float*>(args.out[1])[row] = scale;
}

void RunRow(const DequantSwigluPlan& plan, const KernelArgs& args, int64_t row, int64_t group) {
  float *first = plan.first(args), *second = plan.second(args), *z = plan.z(args);
  if (plan.last) {
    LoadX(plan, args, row, group, first);
    second = first + plan.y_columns;
  } else {
    const int64_t at = row / plan.half_rows * 2 * plan.half_rows + row % plan.half_rows;
    LoadX(plan, args, at, group, first);
    LoadX(plan, args, at + plan.half_rows, group, second);
  }
  plan.unit.Apply(first, second, plan.y_columns, z);
  Quantise(plan, args, row, group, z);
}

// Rows after the last group are unspecified; they are zero here.
Status RunDequantSwiglu(const DequantSwigluPlan& plan, const KernelArgs& args) {
  const bool listed = plan.group_rows.given();
  if (listed) ClearOutputs(plan, args);
  int64_t row = 0;
  for (int64_t group = 0; group < plan.groups; ++group) {
    const int64_t left = plan.y_rows - row;
    const int64_t count = listed ? std::min(plan.group_rows.At(args, group), left) : left;
    for (const int64_t end = row + count; row < end; ++row) RunRow(plan, args, row, group);
  }
  return Status();
}

}  // namespace

void RegisterDequantSwigluOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanDequantSwiglu, RunDequantSwiglu>(
      "DequantSwigluQuant(x, weight_scale?, activation_scale?, bias?, quant_scale?, "
      "quant_offset?, group_index?; activate_left=false, quant_mode=\"static\", dst_type=2, "
      "round_mode=\"rint\", activate_dim=-1, swiglu_mode=0, clamp_limit=7.0, glu_alpha=1.702, "
      "glu_bias=1.0) -> y, scale"));
}

}  // namespace npumesh
