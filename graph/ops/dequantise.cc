// AscendDequant, DequantBias, AscendAntiQuantV2, AscendAntiQuant and TransQuantParamV2. Ops
// reference 5.13 and 5.6.
#include <algorithm>
#include <bit>
#include <cmath>

#include "graph/ops/blocked_product.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

Result<DataType> FloatType(const OpContext& op, std::string_view attribute) {
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, op.attr_dtype(attribute));
  if (IsRowType(dtype)) return dtype;
  return Error(Code::kInvalidArgument, "{}: {} is {}, expected float16, bfloat16 or float32",
               op.Who(), attribute, Name(dtype));
}

// A matrix of integers whose rows become floats.
Status ExpectRows(const OpContext& op, bool narrow) {
  const TensorType& x = op.in("x");
  const bool typed = narrow ? x.dtype == DataType::kInt8 || x.dtype == DataType::kInt4
                            : x.dtype == DataType::kInt32;
  if (typed && x.shape.rank() > 0) return Status();
  return Error(Code::kInvalidArgument, "{}: x is {}, expected {} with at least one dimension",
               op.Who(), x.ToString(), narrow ? "int8 or int4" : "int32");
}

// ---- AscendDequant, DequantBias ----

struct DequantPlan {
  Dequant dequant;
  DataType dtype = DataType::kUndefined;
};

Result<DequantPlan> PlanDequant(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectRows(op, false));
  const Shape& x = op.in("x").shape;
  const int64_t columns = x.dims().back();
  const int64_t rows = ElementsBetween(x, 0, x.rank() - 1);
  DequantPlan plan;
  if (op.schema().type == "AscendDequant") {
    NPUMESH_ASSIGN_OR_RETURN(plan.dtype, FloatType(op, "dtype"));
    NPUMESH_ASSIGN_OR_RETURN(plan.dequant.scale, Factors::Of(op, "deq_scale"));
    NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.dequant.scale, "deq_scale", columns));
    plan.dequant.twice = op.attr_bool("sqrt_mode");
    plan.dequant.relu = op.attr_bool("relu_flag");
    return plan;
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.dtype, FloatType(op, "output_dtype"));
  NPUMESH_ASSIGN_OR_RETURN(plan.dequant.scale, Factors::Of(op, "weight_scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.dequant.row_scale, Factors::Of(op, "activate_scale"));
  NPUMESH_RETURN_IF_ERROR(ReadBias(op, "bias", plan.dequant));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.dequant.scale, "weight_scale", columns));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.dequant.row_scale, "activate_scale", rows));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.dequant.before, "bias", columns));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.dequant.after, "bias", columns));
  return plan;
}

Status InferDequant(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const DequantPlan plan, PlanDequant(op));
  return SetOutput(op, 0, plan.dtype, op.in("x").shape);
}

class DequantKernel final : public Kernel {
 public:
  DequantKernel(const OpContext& op, DequantPlan plan)
      : plan_(std::move(plan)),
        x_(op.slot("x")),
        columns_(op.in("x").shape.dims().back()),
        rows_(columns_ == 0 ? 0 : op.in("x").shape.elements() / columns_) {}

  // A row of results and one of factors.
  uint64_t scratch_bytes() const override {
    return 2 * static_cast<uint64_t>(columns_) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    auto* row = static_cast<float*>(args.scratch);
    const auto* x = static_cast<const int32_t*>(args.in[x_]);
    for (int64_t r = 0; r < rows_; ++r, x += columns_) {
      plan_.dequant.Apply(args, {r, 0, columns_, x, nullptr}, row + columns_, row);
      StoreRow(plan_.dtype, row, args.out[0], r * columns_, columns_);
    }
    return Status();
  }

 private:
  DequantPlan plan_;
  int x_;
  int64_t columns_;
  int64_t rows_;
};

Result<std::unique_ptr<Kernel>> MakeDequant(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(DequantPlan plan, PlanDequant(op));
  return std::unique_ptr<Kernel>(std::make_unique<DequantKernel>(op, std::move(plan)));
}

// ---- AscendAntiQuantV2, AscendAntiQuant ----

struct AntiQuantPlan {
  Factors scale;
  Factors offset;
  float scale_value = 1;
  float offset_value = 0;
  bool squared = false;
  DataType dtype = DataType::kUndefined;
};

Result<AntiQuantPlan> PlanAntiQuant(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectRows(op, true));
  NPUMESH_RETURN_IF_ERROR(CheckPacking(op, op.in("x").dtype, op.in("x").shape));
  AntiQuantPlan plan;
  plan.squared = op.attr_bool("sqrt_mode");
  if (op.schema().type == "AscendAntiQuant") {
    plan.scale_value = op.attr_float("scale");
    plan.offset_value = op.attr_float("offset");
    NPUMESH_ASSIGN_OR_RETURN(plan.dtype, FloatType(op, "dtype"));
    return plan;
  }
  const int64_t columns = op.in("x").shape.dims().back();
  NPUMESH_ASSIGN_OR_RETURN(plan.dtype, FloatType(op, "dst_type"));
  NPUMESH_ASSIGN_OR_RETURN(plan.scale, Factors::Of(op, "scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.offset, Factors::Of(op, "offset"));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.scale, "scale", columns));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.offset, "offset", columns));
  return plan;
}

Status InferAntiQuant(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const AntiQuantPlan plan, PlanAntiQuant(op));
  return SetOutput(op, 0, plan.dtype, op.in("x").shape);
}

class AntiQuantKernel final : public Kernel {
 public:
  AntiQuantKernel(const OpContext& op, AntiQuantPlan plan)
      : plan_(std::move(plan)),
        x_(op.slot("x")),
        from_(op.in("x").dtype),
        columns_(op.in("x").shape.dims().back()),
        rows_(columns_ == 0 ? 0 : op.in("x").shape.elements() / columns_) {}

  // Rows for x, scales and offsets.
  uint64_t scratch_bytes() const override {
    return 3 * static_cast<uint64_t>(columns_) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    auto* row = static_cast<float*>(args.scratch);
    float* scale = row + columns_;
    float* offset = row + 2 * columns_;
    Fill(args, plan_.scale, plan_.scale_value, scale);
    Fill(args, plan_.offset, plan_.offset_value, offset);
    for (int64_t i = 0; plan_.squared && i < columns_; ++i) scale[i] *= scale[i];
    for (int64_t r = 0; r < rows_; ++r) {
      LoadNumbers(from_, args.in[x_], r * columns_, columns_, row);
      for (int64_t i = 0; i < columns_; ++i) row[i] = (row[i] + offset[i]) * scale[i];
      StoreRow(plan_.dtype, row, args.out[0], r * columns_, columns_);
    }
    return Status();
  }

 private:
  void Fill(const KernelArgs& args, const Factors& factors, float value, float* to) const {
    if (factors.count() > 1) {
      factors.Load(args, 0, columns_, to);
    } else {
      std::fill_n(to, columns_, factors.given() ? factors.At(args, 0) : value);
    }
  }

  AntiQuantPlan plan_;
  int x_;
  DataType from_;
  int64_t columns_;
  int64_t rows_;
};

Result<std::unique_ptr<Kernel>> MakeAntiQuant(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(AntiQuantPlan plan, PlanAntiQuant(op));
  return std::unique_ptr<Kernel>(std::make_unique<AntiQuantKernel>(op, std::move(plan)));
}

// ---- TransQuantParamV2 ----

// The layout of ops reference 5.6: the scale's bits below, 9 bits of offset at 37, a mark at 46.
uint64_t PackedScale(float scale, float offset, bool rounds) {
  constexpr uint32_t kDropped = (1u << 13) - 1;
  auto bits = std::bit_cast<uint32_t>(scale);
  if (rounds) bits += kDropped / 2 + (bits >> 13 & 1);
  bits &= ~kDropped;
  const float clipped = std::clamp(std::nearbyint(offset), -256.0f, 255.0f);
  const auto nine = static_cast<uint64_t>(static_cast<int64_t>(clipped)) & 0x1ff;
  return uint64_t{1} << 46 | nine << 37 | bits;
}

Status InferTransParam(OpContext& op) {
  const TensorType& scale = op.in("scale");
  NPUMESH_ASSIGN_OR_RETURN(const Factors offset, Factors::Of(op, "offset"));
  const int64_t count = scale.shape.elements();
  const bool floats =
      scale.dtype == DataType::kFloat && (!offset.given() || offset.dtype() == DataType::kFloat);
  if (!floats || (offset.given() && offset.count() != 1 && count != 1 && offset.count() != count)) {
    return Error(
        Code::kInvalidArgument,
        "{}: scale is {} and offset has {} elements; expected float32 and equal counts, or "
        "one",
        op.Who(), scale.ToString(), offset.count());
  }
  const bool longer = offset.given() && offset.count() > count;
  return SetOutput(op, 0, DataType::kUint64, longer ? op.in("offset").shape : scale.shape);
}

Result<std::unique_ptr<Kernel>> MakeTransParam(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Factors scale, Factors::OfSlot(op, op.slot("scale")));
  NPUMESH_ASSIGN_OR_RETURN(const Factors offset, Factors::Of(op, "offset"));
  const bool rounds = op.attr_int("round_mode") == 1;
  const int64_t count = op.out(0).shape.elements();
  return MakeKernel([=](const KernelArgs& args) {
    auto* y = static_cast<uint64_t*>(args.out[0]);
    for (int64_t i = 0; i < count; ++i) {
      const float shift = offset.given() ? offset.At(args, offset.count() == 1 ? 0 : i) : 0.0f;
      y[i] = PackedScale(scale.At(args, scale.count() == 1 ? 0 : i), shift, rounds);
    }
    return Status();
  });
}

}  // namespace

void RegisterDequantiseOps(OpRegistry& registry) {
  const AttrSpec sqrt_mode = {"sqrt_mode", AttrValue::Bool(false)};
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  registry.Add(
      {.schema = {"AscendDequant",
                  {{"x"}, {"deq_scale"}},
                  {{"y"}},
                  {sqrt_mode, {"relu_flag", AttrValue::Bool(false)}, {"dtype", AttrValue::Int(0)}}},
       .infer = InferDequant,
       .make_kernel = MakeDequant});
  registry.Add({.schema = {"DequantBias",
                           {{"x"}, {"weight_scale"}, optional("activate_scale"), optional("bias")},
                           {{"y"}},
                           {{"output_dtype", Required::kInt}}},
                .infer = InferDequant,
                .make_kernel = MakeDequant});
  registry.Add({.schema = {"AscendAntiQuantV2",
                           {{"x"}, {"scale"}, optional("offset")},
                           {{"y"}},
                           {{"dst_type", AttrValue::Int(1)}, sqrt_mode}},
                .infer = InferAntiQuant,
                .make_kernel = MakeAntiQuant});
  registry.Add({.schema = {"AscendAntiQuant",
                           {{"x"}},
                           {{"y"}},
                           {{"scale", Required::kFloat},
                            {"offset", Required::kFloat},
                            {"dtype", AttrValue::Int(0)},
                            sqrt_mode}},
                .infer = InferAntiQuant,
                .make_kernel = MakeAntiQuant});
  registry.Add({.schema = {"TransQuantParamV2",
                           {{"scale"}, optional("offset")},
                           {{"y"}},
                           {{"round_mode", AttrValue::Int(0)}}},
                .infer = InferTransParam,
                .make_kernel = MakeTransParam});
}

}  // namespace npumesh
