// DequantSwigluQuant: the gated activation between the two products of a quantised feed-forward
// layer, with the dequantisation before and the quantisation behind it. Ops reference 5.13.
#include <algorithm>
#include <cmath>
#include <string>

#include "graph/ops/blocked_product.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/gated_unit.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

struct SwigluPlan {
  int axis = 0;      // that is halved
  bool last = true;  // it is the last one
  int64_t half = 0;
  int64_t inner = 1;    // elements behind it
  int64_t columns = 0;  // of x
  int64_t y_columns = 0;
  int64_t y_rows = 0;
  int64_t groups = 1;
  int group_slot = -1;
  DataType group_dtype = DataType::kInt64;
  DataType x_dtype = DataType::kUndefined;
  DataType y_dtype = DataType::kInt8;
  Dequant dequant;      // of int32 x
  Factors quant_scale;  // [groups, y_columns], [groups] or one
  Factors quant_offset;
  bool dynamic = false;
  GatedUnit unit;
  Rounding rounding = Rounding::kNearest;
};

Status CheckGrouped(const OpContext& op, const Factors& factors, std::string_view port,
                    int64_t groups, int64_t columns) {
  const int64_t count = factors.count();
  if (!factors.given() || count == 1 || count == groups || count == columns * groups) {
    return Status();
  }
  return Error(Code::kInvalidArgument, "{}: \"{}\" has {} elements, expected 1, {} or {} x {}",
               op.Who(), port, count, groups, groups, columns);
}

Status ReadDequant(const OpContext& op, SwigluPlan& plan) {
  if (plan.x_dtype != DataType::kInt32) {
    if (IsRowType(plan.x_dtype)) return Status();
    return Error(Code::kUnsupported, "{}: x is {}, expected int32, float16 or bfloat16", op.Who(),
                 Name(plan.x_dtype));
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.dequant.scale, Factors::Of(op, "weight_scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.dequant.row_scale, Factors::Of(op, "activation_scale"));
  NPUMESH_RETURN_IF_ERROR(ReadBias(op, "bias", plan.dequant));
  const int64_t rows = op.in("x").shape.elements() / std::max<int64_t>(plan.columns, 1);
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.dequant.row_scale, "activation_scale", rows));
  NPUMESH_RETURN_IF_ERROR(
      CheckGrouped(op, plan.dequant.scale, "weight_scale", plan.groups, plan.columns));
  NPUMESH_RETURN_IF_ERROR(
      CheckFactors(op, plan.dequant.before, "bias", plan.groups * plan.columns));
  return CheckGrouped(op, plan.dequant.after, "bias", plan.groups, plan.columns);
}

Result<SwigluPlan> PlanSwiglu(const OpContext& op) {
  const TensorType& x = op.in("x");
  SwigluPlan plan;
  NPUMESH_ASSIGN_OR_RETURN(plan.axis,
                           AxisOf(op, op.attr_int("activate_dim"), x.shape.rank(), "activate_dim"));
  if (x.shape[plan.axis] % 2 != 0) {
    return Error(Code::kInvalidArgument, "{}: dimension {} of x {} cannot be halved", op.Who(),
                 plan.axis, x.ToString());
  }
  plan.half = x.shape[plan.axis] / 2;
  plan.inner = ElementsBetween(x.shape, plan.axis + 1, x.shape.rank());
  plan.columns = x.shape.dims().back();
  plan.last = plan.axis + 1 == x.shape.rank();
  plan.y_columns = plan.last ? plan.half : plan.columns;
  plan.y_rows = plan.y_columns == 0 ? 0 : x.shape.elements() / 2 / plan.y_columns;
  plan.x_dtype = x.dtype;
  plan.group_slot = SlotIfFed(op, "group_index");
  NPUMESH_RETURN_IF_ERROR(ExpectIntegers(op, plan.group_slot));
  if (plan.group_slot >= 0) {
    plan.groups = op.in(plan.group_slot).shape.elements();
    plan.group_dtype = op.in(plan.group_slot).dtype;
  }
  plan.unit = GatedUnit::Of(op);
  const std::string quant_mode = op.attr_string("quant_mode");
  plan.dynamic = quant_mode == "dynamic";
  const bool dims_fit = plan.last || (plan.unit.mode == 0 && plan.group_slot < 0);
  if ((!plan.dynamic && quant_mode != "static") || plan.unit.mode < 0 || plan.unit.mode > 2 ||
      !dims_fit) {
    return Error(Code::kInvalidArgument,
                 "{}: quant_mode \"{}\", swiglu_mode {} and activate_dim {}; expected static or "
                 "dynamic, 0 to 2, and the last dimension where there are groups or other modes",
                 op.Who(), quant_mode, plan.unit.mode, plan.axis);
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.rounding, RoundingOf(op, "round_mode"));
  NPUMESH_ASSIGN_OR_RETURN(plan.y_dtype, QuantisedType(op, "dst_type"));
  NPUMESH_RETURN_IF_ERROR(ReadDequant(op, plan));
  NPUMESH_ASSIGN_OR_RETURN(plan.quant_scale, Factors::Of(op, "quant_scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.quant_offset, Factors::Of(op, "quant_offset"));
  NPUMESH_RETURN_IF_ERROR(
      CheckGrouped(op, plan.quant_scale, "quant_scale", plan.groups, plan.y_columns));
  NPUMESH_RETURN_IF_ERROR(
      CheckGrouped(op, plan.quant_offset, "quant_offset", plan.groups, plan.y_columns));
  return plan;
}

Status InferSwiglu(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const SwigluPlan plan, PlanSwiglu(op));
  Shape y = op.in("x").shape;
  y[plan.axis] /= 2;
  NPUMESH_RETURN_IF_ERROR(CheckPacking(op, plan.y_dtype, y));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, plan.y_dtype, y));
  y.mutable_dims().pop_back();
  return SetOutput(op, 1, DataType::kFloat, y);
}

class DequantSwigluKernel final : public Kernel {
 public:
  DequantSwigluKernel(const OpContext& op, SwigluPlan plan)
      : plan_(std::move(plan)), x_(op.slot("x")) {}

  // Two rows of x, one of factors, one of the result.
  uint64_t scratch_bytes() const override {
    return 4 * static_cast<uint64_t>(plan_.columns) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    int64_t group = 0;
    int64_t end = plan_.group_slot < 0 ? plan_.y_rows : RowsOf(args, 0);
    for (int64_t row = 0; row < plan_.y_rows; ++row) {
      while (row >= end && group < plan_.groups) {
        if (++group < plan_.groups) end += RowsOf(args, group);
      }
      if (group < plan_.groups) {
        RunRow(args, row, group);
      } else {
        ClearRow(args, row);
      }
    }
    return Status();
  }

 private:
  int64_t RowsOf(const KernelArgs& args, int64_t group) const {
    return std::max<int64_t>(IntegerAt(plan_.group_dtype, args.in[plan_.group_slot], group), 0);
  }

  // Rows behind the last group are unspecified; they are zero here.
  void ClearRow(const KernelArgs& args, int64_t row) const {
    auto* z = static_cast<float*>(args.scratch);
    std::fill_n(z, plan_.y_columns, 0.0f);
    StoreIntegers(plan_.y_dtype, plan_.rounding, z, args.out[0], row * plan_.y_columns,
                  plan_.y_columns);
    static_cast<float*>(args.out[1])[row] = 0;
  }

  void RunRow(const KernelArgs& args, int64_t row, int64_t group) const {
    auto* first = static_cast<float*>(args.scratch);
    float* second = first + plan_.columns;
    float* room = second + plan_.columns;
    float* z = room + plan_.columns;
    if (plan_.last) {
      LoadRow(args, row, group, room, first);
      second = first + plan_.half;
    } else {
      const int64_t inner_rows = plan_.inner / plan_.columns;
      const int64_t rows = plan_.half * inner_rows;
      const int64_t at = row / rows * 2 * rows + row % rows;
      LoadRow(args, at, group, room, first);
      LoadRow(args, at + rows, group, room, second);
    }
    plan_.unit.Apply(first, second, plan_.y_columns, z);
    Quantise(args, row, group, room, z);
  }

  void LoadRow(const KernelArgs& args, int64_t row, int64_t group, float* room, float* to) const {
    const int64_t n = plan_.columns;
    if (plan_.x_dtype != DataType::kInt32) {
      LoadNumbers(plan_.x_dtype, args.in[x_], row * n, n, to);
      return;
    }
    const auto* x = static_cast<const int32_t*>(args.in[x_]) + row * n;
    plan_.dequant.Part(group, plan_.groups).Apply(args, {row, 0, n, x, nullptr}, room, to);
  }

  void Quantise(const KernelArgs& args, int64_t row, int64_t group, float* room, float* z) const {
    const int64_t n = plan_.y_columns;
    if (plan_.quant_scale.given()) {
      LoadFactors(args, plan_.quant_scale, group, room);
      for (int64_t i = 0; i < n; ++i) z[i] = plan_.dynamic ? z[i] * room[i] : z[i] / room[i];
    }
    float scale = 0;
    if (plan_.dynamic) {
      float most = 0;
      for (int64_t i = 0; i < n; ++i) most = std::max(most, std::fabs(z[i]));
      const float largest = LargestOf(plan_.y_dtype);
      scale = most / largest;
      for (int64_t i = 0; i < n; ++i) z[i] = most == 0 ? 0.0f : z[i] * largest / most;
    } else if (plan_.quant_offset.given()) {
      LoadFactors(args, plan_.quant_offset, group, room);
      for (int64_t i = 0; i < n; ++i) z[i] += room[i];
    }
    StoreIntegers(plan_.y_dtype, plan_.rounding, z, args.out[0], row * n, n);
    static_cast<float*>(args.out[1])[row] = scale;
  }

  void LoadFactors(const KernelArgs& args, const Factors& factors, int64_t group, float* to) const {
    const int64_t n = plan_.y_columns;
    if (factors.count() == n * plan_.groups) {
      factors.Load(args, group * n, n, to);
    } else {
      std::fill_n(to, n, factors.At(args, factors.count() == 1 ? 0 : group));
    }
  }

  SwigluPlan plan_;
  int x_;
};

Result<std::unique_ptr<Kernel>> MakeSwiglu(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(SwigluPlan plan, PlanSwiglu(op));
  return std::unique_ptr<Kernel>(std::make_unique<DequantSwigluKernel>(op, std::move(plan)));
}

}  // namespace

void RegisterDequantSwigluOps(OpRegistry& registry) {
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  registry.Add({.schema = {"DequantSwigluQuant",
                           {{"x"},
                            optional("weight_scale"),
                            optional("activation_scale"),
                            optional("bias"),
                            optional("quant_scale"),
                            optional("quant_offset"),
                            optional("group_index")},
                           {{"y"}, {"scale"}},
                           {{"activate_left", AttrValue::Bool(false)},
                            {"quant_mode", AttrValue::String("static")},
                            {"dst_type", AttrValue::Int(2)},
                            {"round_mode", AttrValue::String("rint")},
                            {"activate_dim", AttrValue::Int(-1)},
                            {"swiglu_mode", AttrValue::Int(0)},
                            {"clamp_limit", AttrValue::Float(7.0f)},
                            {"glu_alpha", AttrValue::Float(1.702f)},
                            {"glu_bias", AttrValue::Float(1.0f)}}},
                .infer = InferSwiglu,
                .make_kernel = MakeSwiglu});
}

}  // namespace npumesh
