// GeluQuant, GroupQuant and QuantMax: element-wise formulas whose results are quantised. Ops
// reference 5.19.
#include <algorithm>

#include "graph/ops/elementwise.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/fused_families.h"
#include "graph/ops/group_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/quantised_row.h"

namespace npumesh {
namespace {

Status ExpectRows(const OpContext& op, int rank = 0) {
  const TensorType& x = op.in("x");
  const bool ranked = rank == 0 ? x.shape.rank() > 0 : x.shape.rank() == rank;
  if (IsRowType(x.dtype) && ranked) return Status();
  return Error(Code::kInvalidArgument,
               "{}: \"x\" is {}, expected float16, bfloat16 or float32 with {} dimension", op.Who(),
               x.ToString(), rank == 0 ? "at least one" : "two");
}

// Error unless factors are absent, one, or one for each column of x.
Status ExpectColumns(const OpContext& op, const Factors& factors, std::string_view port) {
  const int64_t width = op.in("x").shape.dims().back();
  if (!factors.given() || factors.count() == 1 || factors.count() == width) return Status();
  return Error(Code::kInvalidArgument, "{}: \"{}\" has {} elements, expected 1 or {}", op.Who(),
               port, factors.count(), width);
}

// Factors of the columns, one for all repeated.
void LoadColumns(const KernelArgs& args, const Factors& factors, int64_t first, int64_t count,
                 float* to) {
  if (factors.count() == 1) {
    std::fill_n(to, count, factors.At(args, 0));
  } else {
    factors.Load(args, first, count, to);
  }
}

Shape WithoutLast(Shape shape) {
  shape.mutable_dims().pop_back();
  return shape;
}

// ---- GeluQuant ----

struct GeluPlan {
  Formula formula = Formula::kGeluErf;
  bool dynamic = true;
  DataType dtype = DataType::kInt8;
  Rounding rounding = Rounding::kNearest;
  Factors scale;
  Factors offset;
};

Result<GeluPlan> PlanGelu(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectRows(op));
  GeluPlan plan;
  const std::string approximate = op.attr_string("approximate");
  const std::string mode = op.attr_string("quant_mode");
  if ((approximate != "none" && approximate != "tanh") || (mode != "dynamic" && mode != "static")) {
    return Error(Code::kInvalidArgument,
                 "{}: approximate \"{}\" and quant_mode \"{}\"; expected none or tanh, and dynamic "
                 "or static",
                 op.Who(), approximate, mode);
  }
  if (approximate == "tanh") plan.formula = Formula::kGeluTanh;
  plan.dynamic = mode == "dynamic";
  NPUMESH_ASSIGN_OR_RETURN(plan.dtype, NarrowType(op, "dst_type"));
  NPUMESH_ASSIGN_OR_RETURN(plan.rounding, RoundingOf(op, "round_mode"));
  NPUMESH_RETURN_IF_ERROR(CheckPacking(op, plan.dtype, op.in("x").shape));
  NPUMESH_ASSIGN_OR_RETURN(plan.scale, Factors::Of(op, "input_scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.offset, Factors::Of(op, "input_offset"));
  NPUMESH_RETURN_IF_ERROR(ExpectColumns(op, plan.scale, "input_scale"));
  NPUMESH_RETURN_IF_ERROR(ExpectColumns(op, plan.offset, "input_offset"));
  if (plan.dynamic ? !plan.offset.given() : plan.scale.given()) return plan;
  return Error(Code::kInvalidArgument, "{}: quant_mode {} {}", op.Who(), mode,
               plan.dynamic ? "takes no input_offset" : "needs input_scale");
}

Status InferGelu(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const GeluPlan plan, PlanGelu(op));
  const Shape& x = op.in("x").shape;
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, plan.dtype, x));
  return SetOutput(op, 1, DataType::kFloat, WithoutLast(x));
}

class GeluKernel final : public Kernel {
 public:
  GeluKernel(const OpContext& op, const GeluPlan& plan)
      : plan_(plan),
        formula_(FloatBlock(plan.formula)),
        x_(op.in("x").dtype),
        width_(op.in("x").shape.dims().back()),
        rows_(ElementsBetween(op.in("x").shape, 0, op.in("x").shape.rank() - 1)) {}

  // Rows for x, scales and offsets.
  uint64_t scratch_bytes() const override {
    return 3 * static_cast<uint64_t>(width_) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    auto* row = static_cast<float*>(args.scratch);
    float *scale = row + width_, *offset = scale + width_;
    if (plan_.scale.given()) LoadColumns(args, plan_.scale, 0, width_, scale);
    if (plan_.offset.given()) LoadColumns(args, plan_.offset, 0, width_, offset);
    auto* scales = static_cast<float*>(args.out[1]);
    const float largest = LargestNarrow(plan_.dtype);
    for (int64_t r = 0; r < rows_; ++r) {
      LoadNumbers(x_, args.in[0], r * width_, width_, row);
      Activate(row);
      for (int64_t i = 0; plan_.scale.given() && i < width_; ++i) row[i] *= scale[i];
      for (int64_t i = 0; plan_.offset.given() && i < width_; ++i) row[i] += offset[i];
      if (plan_.dynamic) {
        scales[r] =
            QuantiseRow(plan_.dtype, plan_.rounding, largest, row, width_, args.out[0], r * width_);
      } else {
        scales[r] = 0;
        StoreNarrow(plan_.dtype, plan_.rounding, row, args.out[0], r * width_, width_);
      }
    }
    return Status();
  }

 private:
  void Activate(float* row) const {
    constexpr auto kBlock = static_cast<int64_t>(kBlockElements);
    for (int64_t first = 0; first < width_; first += kBlock) {
      const void* in[] = {row + first};
      formula_(in, row + first, static_cast<size_t>(std::min(kBlock, width_ - first)), {});
    }
  }

  GeluPlan plan_;
  BlockFn formula_;
  DataType x_;
  int64_t width_;
  int64_t rows_;
};

Result<std::unique_ptr<Kernel>> MakeGelu(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const GeluPlan plan, PlanGelu(op));
  return std::unique_ptr<Kernel>(std::make_unique<GeluKernel>(op, plan));
}

// ---- GroupQuant ----

struct GroupPlan {
  DataType dtype = DataType::kInt8;
  Factors scale;
  Factors offset;
  GroupRows rows;
};

Result<GroupPlan> PlanGroup(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectRows(op, 2));
  GroupPlan plan;
  const TensorType &x = op.in("x"), &scale = op.in("scale");
  NPUMESH_ASSIGN_OR_RETURN(plan.dtype, QuantisedType(op, "dst_type"));
  NPUMESH_RETURN_IF_ERROR(CheckPacking(op, plan.dtype, x.shape));
  NPUMESH_ASSIGN_OR_RETURN(plan.scale, Factors::Of(op, "scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.offset, Factors::Of(op, "offset"));
  NPUMESH_ASSIGN_OR_RETURN(plan.rows, GroupRows::Of(op, "group_index", false, x.shape[0]));
  if (scale.shape == Shape({plan.rows.groups(), x.shape[1]}) && plan.offset.count() <= 1) {
    return plan;
  }
  return Error(Code::kInvalidArgument,
               "{}: scale is {} and offset has {} elements, expected [{},{}] and at most one",
               op.Who(), scale.ToString(), plan.offset.count(), plan.rows.groups(), x.shape[1]);
}

Status InferGroup(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const GroupPlan plan, PlanGroup(op));
  return SetOutput(op, 0, plan.dtype, op.in("x").shape);
}

class GroupKernel final : public Kernel {
 public:
  GroupKernel(const OpContext& op, GroupPlan plan)
      : plan_(std::move(plan)),
        x_(op.in("x").dtype),
        height_(op.in("x").shape[0]),
        width_(op.in("x").shape[1]) {}

  // Rows for x and scales.
  uint64_t scratch_bytes() const override {
    return 2 * static_cast<uint64_t>(width_) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    auto* row = static_cast<float*>(args.scratch);
    float* scale = row + width_;
    const float offset = plan_.offset.given() ? plan_.offset.At(args, 0) : 0.0f;
    int64_t done = 0;
    NPUMESH_RETURN_IF_ERROR(
        plan_.rows.ForEach(args, [&](int64_t group, int64_t begin, int64_t end) {
          plan_.scale.Load(args, group * width_, width_, scale);
          for (int64_t r = begin; r < end; ++r) {
            LoadNumbers(x_, args.in[0], r * width_, width_, row);
            for (int64_t i = 0; i < width_; ++i) row[i] = row[i] * scale[i] + offset;
            Store(args, r, row);
          }
          done = end;
          return Status();
        }));
    std::fill_n(row, width_, 0.0f);
    for (int64_t r = done; r < height_; ++r) Store(args, r, row);
    return Status();
  }

 private:
  void Store(const KernelArgs& args, int64_t r, const float* row) const {
    StoreIntegers(plan_.dtype, Rounding::kNearest, row, args.out[0], r * width_, width_);
  }

  GroupPlan plan_;
  DataType x_;
  int64_t height_;
  int64_t width_;
};

Result<std::unique_ptr<Kernel>> MakeGroup(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(GroupPlan plan, PlanGroup(op));
  return std::unique_ptr<Kernel>(std::make_unique<GroupKernel>(op, std::move(plan)));
}

// ---- QuantMax ----

Status InferMax(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectRows(op));
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, NarrowType(op, "dst_type"));
  NPUMESH_RETURN_IF_ERROR(RoundingOf(op, "round_mode").status());
  const TensorType &x = op.in("x"), &scale = op.in("scale");
  if (scale.dtype != DataType::kFloat || scale.shape.elements() != 1 || dtype == DataType::kInt8 ||
      dtype == DataType::kInt4) {
    return Error(Code::kInvalidArgument,
                 "{}: scale is {} and dst_type {}, expected one float32 and an 8-bit float",
                 op.Who(), scale.ToString(), Name(dtype));
  }
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, dtype, x.shape));
  return SetOutput(op, 1, x.dtype, {1});
}

Result<std::unique_ptr<Kernel>> MakeMax(const OpContext& op) {
  const DataType from = op.in("x").dtype, to = op.out(0).dtype;
  const int64_t elements = op.in("x").shape.elements();
  return MakeKernel([=](const KernelArgs& args) {
    constexpr int64_t kBlock = 512;
    float row[kBlock];
    const float scale = *static_cast<const float*>(args.in[1]);
    float most = 0;
    for (int64_t first = 0; first < elements; first += kBlock) {
      const int64_t count = std::min(kBlock, elements - first);
      LoadNumbers(from, args.in[0], first, count, row);
      most = std::max(most, LargestMagnitude(row, count));
      for (int64_t i = 0; i < count; ++i) row[i] *= scale;
      StoreNarrow(to, Rounding::kNearest, row, args.out[0], first, count);
    }
    StoreRow(from, &most, args.out[1], 0, 1);
    return Status();
  });
}

}  // namespace

void RegisterActivationQuantOps(OpRegistry& registry) {
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  const AttrSpec round = {"round_mode", AttrValue::String("rint")};
  registry.Add({.schema = {"GeluQuant",
                           {{"x"}, optional("input_scale"), optional("input_offset")},
                           {{"y"}, {"out_scale"}},
                           {{"approximate", AttrValue::String("none")},
                            {"quant_mode", AttrValue::String("dynamic")},
                            {"dst_type", AttrValue::Int(2)},
                            round}},
                .infer = InferGelu,
                .make_kernel = MakeGelu});
  registry.Add({.schema = {"GroupQuant",
                           {{"x"}, {"scale"}, {"group_index"}, optional("offset")},
                           {{"y"}},
                           {{"dst_type", AttrValue::Int(2)}}},
                .infer = InferGroup,
                .make_kernel = MakeGroup});
  registry.Add({.schema = {"QuantMax",
                           {{"x"}, {"scale"}},
                           {{"y"}, {"amax"}},
                           {round, {"dst_type", AttrValue::Int(35)}}},
                .infer = InferMax,
                .make_kernel = MakeMax});
}

}  // namespace npumesh
