// SwigluMxQuant: a gated activation whose result is quantised in MX blocks, without a rounding in
// between. Ops reference 5.19.
#include <algorithm>
#include <cstring>

#include "graph/ops/float_rows.h"
#include "graph/ops/fused_families.h"
#include "graph/ops/gated_unit.h"
#include "graph/ops/group_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/mx_block.h"

namespace npumesh {
namespace {

struct SwigluMxPlan {
  GatedUnit unit;
  MxFormat format;
  GroupRows groups;
  Shape y;
};

Result<SwigluMxPlan> PlanSwigluMx(const OpContext& op) {
  const TensorType& x = op.in("x");
  const int rank = x.shape.rank();
  if (!IsRowType(x.dtype) || rank == 0 || x.shape[rank - 1] % 2 != 0) {
    return Error(Code::kInvalidArgument,
                 "{}: \"x\" is {}, expected a float type and a last dimension that can be halved",
                 op.Who(), x.ToString());
  }
  for (const std::string_view attr : {"activate_dim", "axis"}) {
    NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, op.attr_int(attr), rank, attr));
    if (axis == rank - 1) continue;
    return Error(Code::kUnsupported, "{}: {} is {}, expected the last dimension", op.Who(), attr,
                 axis);
  }
  SwigluMxPlan plan;
  plan.unit = GatedUnit::Of(op);
  const int64_t group_mode = op.attr_int("group_mode");
  if (plan.unit.mode < 0 || plan.unit.mode > 2 || group_mode != 0 ||
      op.attr_float("max_dtype_value") != 0) {
    return Error(Code::kUnsupported,
                 "{}: swiglu_mode {}, group_mode {} and max_dtype_value {}; expected 0 to 2, 0 and "
                 "0",
                 op.Who(), plan.unit.mode, group_mode, op.attr_float("max_dtype_value"));
  }
  plan.y = x.shape;
  plan.y[rank - 1] /= 2;
  NPUMESH_ASSIGN_OR_RETURN(plan.format, MxFormatOf(op));
  NPUMESH_RETURN_IF_ERROR(CheckMxPacking(op, plan.format.dtype, plan.y));
  const int64_t rows = ElementsBetween(x.shape, 0, rank - 1);
  NPUMESH_ASSIGN_OR_RETURN(plan.groups, GroupRows::Of(op, "group_index", true, rows));
  return plan;
}

Status InferSwigluMx(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const SwigluMxPlan plan, PlanSwigluMx(op));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, plan.format.dtype, plan.y));
  return SetOutput(op, 1, DataType::kFloat8E8M0, MxScaleShape(plan.y, plan.y.rank() - 1, kMxBlock));
}

// Rows behind the last group are unspecified; they are zeros here.
class SwigluMxKernel final : public Kernel {
 public:
  SwigluMxKernel(const OpContext& op, SwigluMxPlan plan)
      : plan_(std::move(plan)),
        x_(op.in("x").dtype),
        axis_(MxAxisOf(plan_.y, plan_.y.rank() - 1, kMxBlock)),
        y_bytes_(op.out(0).bytes()),
        scale_bytes_(op.out(1).bytes()) {}

  // A row of x and one of y.
  uint64_t scratch_bytes() const override {
    return 3 * static_cast<uint64_t>(axis_.length) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    std::memset(args.out[0], 0, y_bytes_);
    std::memset(args.out[1], 0, scale_bytes_);
    if (!plan_.groups.given()) {
      RunRows(args, 0, axis_.outer);
      return Status();
    }
    return plan_.groups.ForEach(args, [&](int64_t, int64_t begin, int64_t end) {
      RunRows(args, begin, end);
      return Status();
    });
  }

 private:
  void RunRows(const KernelArgs& args, int64_t begin, int64_t end) const {
    const int64_t n = axis_.length;
    auto* row = static_cast<float*>(args.scratch);
    float* z = row + 2 * n;
    for (int64_t r = begin; r < end; ++r) {
      LoadNumbers(x_, args.in[0], r * 2 * n, 2 * n, row);
      plan_.unit.Apply(row, row + n, n, z);
      for (int64_t b = 0; b < axis_.blocks(); ++b) {
        QuantiseMxBlock(plan_.format, axis_, r, b, z + b * kMxBlock, args.out[0],
                        static_cast<uint8_t*>(args.out[1]));
      }
    }
  }

  SwigluMxPlan plan_;
  DataType x_;
  MxAxis axis_;
  uint64_t y_bytes_;
  uint64_t scale_bytes_;
};

Result<std::unique_ptr<Kernel>> MakeSwigluMx(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(SwigluMxPlan plan, PlanSwigluMx(op));
  return std::unique_ptr<Kernel>(std::make_unique<SwigluMxKernel>(op, std::move(plan)));
}

}  // namespace

void RegisterSwigluMxOps(OpRegistry& registry) {
  registry.Add({.schema = {"SwigluMxQuant",
                           {{"x"}, {"group_index", PortKind::kOptional}},
                           {{"y"}, {"mxscale"}},
                           {{"activate_dim", AttrValue::Int(-1)},
                            {"activate_left", AttrValue::Bool(false)},
                            {"swiglu_mode", AttrValue::Int(0)},
                            {"clamp_limit", AttrValue::Float(7.0f)},
                            {"glu_alpha", AttrValue::Float(1.702f)},
                            {"glu_bias", AttrValue::Float(1.0f)},
                            {"group_mode", AttrValue::Int(0)},
                            {"axis", AttrValue::Int(-1)},
                            {"dst_type", AttrValue::Int(40)},
                            {"round_mode", AttrValue::String("rint")},
                            {"scale_alg", AttrValue::Int(0)},
                            {"max_dtype_value", AttrValue::Float(0.0f)}}},
                .infer = InferSwigluMx,
                .make_kernel = MakeSwigluMx});
}

}  // namespace npumesh
