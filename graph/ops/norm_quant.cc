// AddRmsNormDynamicQuant, RmsNormDynamicMxQuant and AddRmsNormDynamicMxQuant: an RMS norm whose
// result is quantised. Ops reference 5.7 and 5.19.
//
//   x = x1 + x2, rounded to its type;  y = x * rstd * gamma + beta in float32
//
// y is quantised as it is, without a rounding in between.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/ops/float_rows.h"
#include "graph/ops/fused_families.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/mx_block.h"
#include "graph/ops/quantised_row.h"
#include "graph/ops/row_math.h"

namespace npumesh {
namespace {

// The norm of rows of x, or of x1 + x2.
struct NormRows {
  int64_t rows = 0;
  int64_t columns = 0;
  int x = 0;         // slots
  int summand = -1;  // -1: none
  DataType dtype = DataType::kUndefined;
  Factors gamma;
  Factors beta;
  double epsilon = 0;

  // Fills `row` with the norm of row r. `sum`: where x1 + x2 goes, null: nowhere. `room` has
  // `columns` floats. Returns 1 / rms.
  float Load(const KernelArgs& args, int64_t r, void* sum, float* room, float* row) const {
    LoadNumbers(dtype, args.in[x], r * columns, columns, row);
    if (summand >= 0) {
      AddRow(row, LoadRow(dtype, args.in[summand], r * columns, columns, room), columns, row);
      StoreRow(dtype, row, sum, r * columns, columns);
      LoadNumbers(dtype, sum, r * columns, columns, row);
    }
    const double mean = SumOfSquares(row, columns) / static_cast<double>(columns);
    const auto rstd = static_cast<float>(1.0 / std::sqrt(mean + epsilon));
    ScaleRow(row, rstd, columns, row);
    gamma.Load(args, 0, columns, room);
    MultiplyRow(row, room, columns, row);
    if (beta.given()) {
      beta.Load(args, 0, columns, room);
      AddRow(row, room, columns, row);
    }
    return rstd;
  }
};

Result<NormRows> NormRowsOf(const OpContext& op) {
  const bool sums = op.schema().type != "RmsNormDynamicMxQuant";
  NormRows norm;
  norm.x = op.slot(sums ? "x1" : "x");
  norm.summand = sums ? op.slot("x2") : -1;
  const TensorType& x = op.in(norm.x);
  if (!IsRowType(x.dtype) || x.shape.rank() == 0 || (sums && op.in("x2") != x)) {
    return Error(Code::kInvalidArgument,
                 "{}: x is {}{}, expected a float type with at least one dimension{}", op.Who(),
                 x.ToString(), sums ? " and x2 " + op.in("x2").ToString() : "",
                 sums ? ", the same twice" : "");
  }
  norm.dtype = x.dtype;
  norm.columns = x.shape.dims().back();
  norm.rows = ElementsBetween(x.shape, 0, x.shape.rank() - 1);
  norm.epsilon = static_cast<double>(op.attr_float("epsilon"));
  NPUMESH_ASSIGN_OR_RETURN(norm.gamma, Factors::Of(op, "gamma"));
  NPUMESH_ASSIGN_OR_RETURN(norm.beta, Factors::Of(op, "beta"));
  for (const auto& [port, factors] :
       {std::pair("gamma", &norm.gamma), std::pair("beta", &norm.beta)}) {
    if (factors->count() == norm.columns || (port[0] == 'b' && !factors->given())) continue;
    return Error(Code::kInvalidArgument, "{}: \"{}\" has {} elements, expected {}", op.Who(), port,
                 factors->count(), norm.columns);
  }
  return norm;
}

Shape WithoutLast(Shape shape) {
  shape.mutable_dims().pop_back();
  return shape;
}

// ---- AddRmsNormDynamicQuant ----

struct DynamicPlan {
  NormRows norm;
  DataType dtype = DataType::kInt8;
  Factors smooth[2];
  bool wanted[2] = {true, false};
};

Result<DynamicPlan> PlanDynamic(const OpContext& op) {
  DynamicPlan plan;
  NPUMESH_ASSIGN_OR_RETURN(plan.norm, NormRowsOf(op));
  NPUMESH_ASSIGN_OR_RETURN(plan.dtype, NarrowType(op, "dst_type"));
  NPUMESH_RETURN_IF_ERROR(CheckPacking(op, plan.dtype, op.in("x1").shape));
  NPUMESH_ASSIGN_OR_RETURN(plan.smooth[0], Factors::Of(op, "smooth_scale1"));
  NPUMESH_ASSIGN_OR_RETURN(plan.smooth[1], Factors::Of(op, "smooth_scale2"));
  plan.wanted[1] = plan.smooth[1].given();
  const AttrValue* mask = op.node().FindAttr("output_mask");
  const ListAttr* list = mask != nullptr ? mask->get<ListAttr>() : nullptr;
  if (list != nullptr && !list->b.empty()) {
    if (list->b.size() != 2) {
      return Error(Code::kInvalidArgument, "{}: output_mask has {} entries, expected 2", op.Who(),
                   list->b.size());
    }
    plan.wanted[0] = list->b[0];
    plan.wanted[1] = list->b[1];
  }
  for (const int i : {0, 1}) {
    const Factors& smooth = plan.smooth[i];
    const bool fits = !smooth.given() || smooth.count() == plan.norm.columns;
    if (fits && (plan.wanted[i] || !smooth.given())) continue;
    return Error(Code::kInvalidArgument,
                 "{}: \"smooth_scale{}\" has {} elements{}, expected {} and output {} wanted",
                 op.Who(), i + 1, smooth.count(), plan.wanted[i] ? "" : " and output_mask false",
                 plan.norm.columns, i + 1);
  }
  const bool second_alone = list == nullptr && plan.smooth[1].given() && !plan.smooth[0].given();
  if (!second_alone) return plan;
  return Error(Code::kInvalidArgument,
               "{}: \"smooth_scale2\" is fed without \"smooth_scale1\" and without output_mask",
               op.Who());
}

// Results that are not wanted are zeros.
Status InferDynamic(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const DynamicPlan plan, PlanDynamic(op));
  const TensorType& x = op.in("x1");
  for (const int port : {0, 1}) {
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, port, plan.dtype, x.shape));
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, 3 + port, DataType::kFloat, WithoutLast(x.shape)));
  }
  return SetOutput(op, 2, x.dtype, x.shape);
}

class DynamicKernel final : public Kernel {
 public:
  DynamicKernel(const OpContext& op, DynamicPlan plan)
      : plan_(std::move(plan)), y_bytes_(op.out(0).bytes()) {}

  // Rows for the norm, what is quantised, and factors.
  uint64_t scratch_bytes() const override {
    return 3 * static_cast<uint64_t>(plan_.norm.columns) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    const int64_t n = plan_.norm.columns;
    auto* row = static_cast<float*>(args.scratch);
    float *scaled = row + n, *room = scaled + n;
    for (const int i : {0, 1}) {
      if (plan_.wanted[i]) continue;
      std::memset(args.out[i], 0, y_bytes_);
      std::fill_n(static_cast<float*>(args.out[3 + i]), plan_.norm.rows, 0.0f);
    }
    for (int64_t r = 0; r < plan_.norm.rows; ++r) {
      plan_.norm.Load(args, r, args.out[2], room, row);
      for (const int i : {0, 1}) {
        if (plan_.wanted[i]) Quantise(args, i, r, row, room, scaled);
      }
    }
    return Status();
  }

 private:
  void Quantise(const KernelArgs& args, int i, int64_t r, const float* row, float* room,
                float* scaled) const {
    const int64_t n = plan_.norm.columns;
    std::copy_n(row, n, scaled);
    if (plan_.smooth[i].given()) {
      plan_.smooth[i].Load(args, 0, n, room);
      MultiplyRow(scaled, room, n, scaled);
    }
    static_cast<float*>(args.out[3 + i])[r] = QuantiseRow(
        plan_.dtype, Rounding::kNearest, LargestNarrow(plan_.dtype), scaled, n, args.out[i], r * n);
  }

  DynamicPlan plan_;
  uint64_t y_bytes_;
};

Result<std::unique_ptr<Kernel>> MakeDynamic(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(DynamicPlan plan, PlanDynamic(op));
  return std::unique_ptr<Kernel>(std::make_unique<DynamicKernel>(op, std::move(plan)));
}

// ---- RmsNormDynamicMxQuant, AddRmsNormDynamicMxQuant ----

// Output ports: y, the sum (-1: none), scales, rstd.
struct MxPorts {
  int sum;
  int scales;
  int rstd;
};

MxPorts MxPortsOf(const OpContext& op) {
  return op.schema().type == "RmsNormDynamicMxQuant" ? MxPorts{-1, 1, 2} : MxPorts{1, 2, 3};
}

Status InferMx(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const NormRows norm, NormRowsOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const MxFormat format, MxFormatOf(op));
  const MxPorts ports = MxPortsOf(op);
  const Shape x = op.in(norm.x).shape;
  NPUMESH_RETURN_IF_ERROR(CheckMxPacking(op, format.dtype, x));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, format.dtype, x));
  if (ports.sum >= 0) NPUMESH_RETURN_IF_ERROR(SetOutput(op, ports.sum, norm.dtype, x));
  NPUMESH_RETURN_IF_ERROR(
      SetOutput(op, ports.scales, DataType::kFloat8E8M0, MxScaleShape(x, x.rank() - 1, kMxBlock)));
  return SetOutput(op, ports.rstd, DataType::kFloat, WithoutLast(x));
}

class MxNormKernel final : public Kernel {
 public:
  MxNormKernel(const OpContext& op, NormRows norm, const MxFormat& format)
      : norm_(std::move(norm)),
        format_(format),
        ports_(MxPortsOf(op)),
        axis_(MxAxisOf(op.in(norm_.x).shape, op.in(norm_.x).shape.rank() - 1, kMxBlock)),
        gives_rstd_(op.attr_bool("output_rstd")) {}

  // Rows for the norm and factors.
  uint64_t scratch_bytes() const override {
    return 2 * static_cast<uint64_t>(norm_.columns) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    auto* row = static_cast<float*>(args.scratch);
    auto* scales = static_cast<uint8_t*>(args.out[ports_.scales]);
    auto* rstds = static_cast<float*>(args.out[ports_.rstd]);
    void* sum = ports_.sum >= 0 ? args.out[ports_.sum] : nullptr;
    std::memset(scales, 0, static_cast<size_t>(axis_.outer * axis_.pairs() * 2));
    for (int64_t r = 0; r < norm_.rows; ++r) {
      const float rstd = norm_.Load(args, r, sum, row + norm_.columns, row);
      rstds[r] = gives_rstd_ ? rstd : 0.0f;
      for (int64_t b = 0; b < axis_.blocks(); ++b) {
        QuantiseMxBlock(format_, axis_, r, b, row + b * kMxBlock, args.out[0], scales);
      }
    }
    return Status();
  }

 private:
  NormRows norm_;
  MxFormat format_;
  MxPorts ports_;
  MxAxis axis_;
  bool gives_rstd_;
};

Result<std::unique_ptr<Kernel>> MakeMx(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(NormRows norm, NormRowsOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const MxFormat format, MxFormatOf(op));
  return std::unique_ptr<Kernel>(std::make_unique<MxNormKernel>(op, std::move(norm), format));
}

}  // namespace

void RegisterNormQuantOps(OpRegistry& registry) {
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  const AttrSpec epsilon = {"epsilon", AttrValue::Float(1e-6f)};
  registry.Add({.schema = {"AddRmsNormDynamicQuant",
                           {{"x1"},
                            {"x2"},
                            {"gamma"},
                            optional("smooth_scale1"),
                            optional("smooth_scale2"),
                            optional("beta")},
                           {{"y1"}, {"y2"}, {"x_out"}, {"scale1"}, {"scale2"}},
                           {epsilon,
                            {"output_mask", AttrValue::Bools({})},
                            {"dst_type", AttrValue::Int(2)}}},
                .infer = InferDynamic,
                .make_kernel = MakeDynamic});
  const std::vector<AttrSpec> attrs = {epsilon,
                                       {"scale_alg", AttrValue::Int(0)},
                                       {"round_mode", AttrValue::String("rint")},
                                       {"dst_type", AttrValue::Int(40)},
                                       {"output_rstd", AttrValue::Bool(false)}};
  registry.Add({.schema = {"RmsNormDynamicMxQuant",
                           {{"x"}, {"gamma"}, optional("beta")},
                           {{"y"}, {"mxscale"}, {"rstd"}},
                           attrs},
                .infer = InferMx,
                .make_kernel = MakeMx});
  registry.Add({.schema = {"AddRmsNormDynamicMxQuant",
                           {{"x1"}, {"x2"}, {"gamma"}, optional("beta")},
                           {{"y"}, {"x"}, {"mxscale"}, {"rstd"}},
                           attrs},
                .infer = InferMx,
                .make_kernel = MakeMx});
}

}  // namespace npumesh
