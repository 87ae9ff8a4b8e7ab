// QuantBatchMatmulV3 and WeightQuantBatchMatmulV2. Ops reference 5.6.
#include "graph/ops/blocked_product.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

// Rows and columns of an operand after its transposition, and what stands in front of them.
struct Side {
  int64_t rows = 0;
  int64_t columns = 0;
  Shape batch;
};

// The operand's shape in elements: an int32 tensor carries eight int4 in each element.
Result<Side> SideOf(const OpContext& op, std::string_view port, bool transposed) {
  const TensorType& type = op.in(port);
  Shape shape = type.shape;
  if (shape.rank() < 2) {
    return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, expected a matrix", op.Who(), port,
                 type.ToString());
  }
  if (type.dtype == DataType::kInt32) shape.mutable_dims().back() *= 8;
  Side side;
  side.rows = shape[shape.rank() - 2];
  side.columns = shape[shape.rank() - 1];
  if (transposed) std::swap(side.rows, side.columns);
  side.batch = Shape(std::vector<int64_t>(shape.dims().begin(), shape.dims().end() - 2));
  return side;
}

DataType StoredType(DataType dtype) {
  return dtype == DataType::kInt32 ? DataType::kInt4 : dtype;
}

struct QuantMatmul {
  Side left;
  Side right;
  bool transposed1 = false;
  bool transposed2 = false;
  DataType x_dtype = DataType::kUndefined;
  DataType w_dtype = DataType::kUndefined;
  DataType y_dtype = DataType::kUndefined;
  bool integers = true;
  Dequant dequant;
  WeightScale weight_scale;
  Factors out_scale;  // of an int8 result, applied after everything else
  Factors out_offset;
  Shape batch;

  Shape y() const {
    Shape shape = batch;
    shape.mutable_dims().insert(shape.mutable_dims().end(), {left.rows, right.columns});
    return shape;
  }
};

Status JoinSides(const OpContext& op, QuantMatmul& plan) {
  Result<Shape> batch = Broadcast(plan.left.batch, plan.right.batch);
  if (!batch.ok() || plan.left.columns != plan.right.rows) {
    return Error(Code::kInvalidArgument, "{}: {}{} and {}{} cannot be multiplied", op.Who(),
                 op.in(0).ToString(), plan.transposed1 ? " transposed" : "", op.in(1).ToString(),
                 plan.transposed2 ? " transposed" : "");
  }
  plan.batch = *batch;
  return Status();
}

// ---- QuantBatchMatmulV3 ----

Result<QuantMatmul> PlanQuant(const OpContext& op) {
  QuantMatmul plan;
  plan.transposed1 = op.attr_bool("transpose_x1");
  plan.transposed2 = op.attr_bool("transpose_x2");
  plan.x_dtype = StoredType(op.in("x1").dtype);
  plan.w_dtype = StoredType(op.in("x2").dtype);
  for (const DataType dtype : {plan.x_dtype, plan.w_dtype}) {
    if (dtype == DataType::kInt8 || dtype == DataType::kInt4) continue;
    return Error(Code::kUnsupported, "{}: x1 is {} and x2 {}, expected int8 or int4", op.Who(),
                 Name(plan.x_dtype), Name(plan.w_dtype));
  }
  if (op.attr_int("group_size") != 0) {
    return Error(Code::kUnsupported, "{}: group_size {}; block scales are not supported", op.Who(),
                 op.attr_int("group_size"));
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.left, SideOf(op, "x1", plan.transposed1));
  NPUMESH_ASSIGN_OR_RETURN(plan.right, SideOf(op, "x2", plan.transposed2));
  NPUMESH_RETURN_IF_ERROR(JoinSides(op, plan));
  NPUMESH_ASSIGN_OR_RETURN(plan.y_dtype, op.attr_dtype("dtype"));
  if (!IsRowType(plan.y_dtype) && plan.y_dtype != DataType::kInt8 &&
      plan.y_dtype != DataType::kInt32) {
    return Error(Code::kUnsupported, "{}: dtype is {}, expected a float type, int8 or int32",
                 op.Who(), Name(plan.y_dtype));
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.dequant.scale, Factors::Of(op, "scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.dequant.row_scale, Factors::Of(op, "pertoken_scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.out_offset, Factors::Of(op, "offset"));
  NPUMESH_RETURN_IF_ERROR(ReadBias(op, "bias", plan.dequant));
  const int64_t columns = plan.right.columns;
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.dequant.scale, "scale", columns));
  NPUMESH_RETURN_IF_ERROR(
      CheckFactors(op, plan.dequant.row_scale, "pertoken_scale", plan.left.rows));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.out_offset, "offset", columns));
  for (const Factors& bias : {plan.dequant.before, plan.dequant.after}) {
    const int64_t batches = ElementsBetween(plan.batch, 0, plan.batch.rank());
    if (!bias.given() || bias.count() == columns || bias.count() == columns * batches) continue;
    return Error(Code::kInvalidArgument, "{}: bias has {} elements, expected {} for each batch",
                 op.Who(), bias.count(), columns);
  }
  return plan;
}

// ---- WeightQuantBatchMatmulV2 ----

Status PlanWeightScale(const OpContext& op, QuantMatmul& plan) {
  WeightScale& scale = plan.weight_scale;
  NPUMESH_ASSIGN_OR_RETURN(scale.scale, Factors::Of(op, "antiquant_scale"));
  NPUMESH_ASSIGN_OR_RETURN(scale.offset, Factors::Of(op, "antiquant_offset"));
  const int64_t k = plan.right.rows;
  const int64_t n = plan.right.columns;
  const int64_t group = op.attr_int("antiquant_group_size");
  const int64_t groups = group > 0 ? (k + group - 1) / group : 1;
  scale.rows = group > 0 ? group : 0;
  if (scale.scale.count() != 1) {
    scale.by_column = plan.transposed2 ? groups : 1;
    scale.by_rows = plan.transposed2 ? 1 : n;
  }
  const bool offset_fits = !scale.offset.given() || scale.offset.count() == scale.scale.count();
  if (group >= 0 && offset_fits && scale.scale.given() &&
      (scale.scale.count() == 1 || scale.scale.count() == groups * n)) {
    return Status();
  }
  return Error(Code::kInvalidArgument,
               "{}: {} antiquant scales and {} offsets with group size {} for weights of {} x {}; "
               "expected 1 or {} x {}",
               op.Who(), scale.scale.count(), scale.offset.count(), group, k, n, groups, n);
}

Result<QuantMatmul> PlanWeightQuant(const OpContext& op) {
  QuantMatmul plan;
  plan.integers = false;
  plan.transposed1 = op.attr_bool("transpose_x");
  plan.transposed2 = op.attr_bool("transpose_weight");
  plan.x_dtype = op.in("x").dtype;
  plan.w_dtype = StoredType(op.in("weight").dtype);
  if (!IsRowType(plan.x_dtype) ||
      (plan.w_dtype != DataType::kInt8 && plan.w_dtype != DataType::kInt4)) {
    return Error(Code::kUnsupported,
                 "{}: x is {} and weight {}, expected a float type and int8 or int4", op.Who(),
                 Name(plan.x_dtype), Name(op.in("weight").dtype));
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.left, SideOf(op, "x", plan.transposed1));
  NPUMESH_ASSIGN_OR_RETURN(plan.right, SideOf(op, "weight", plan.transposed2));
  NPUMESH_RETURN_IF_ERROR(JoinSides(op, plan));
  NPUMESH_RETURN_IF_ERROR(PlanWeightScale(op, plan));
  NPUMESH_RETURN_IF_ERROR(ReadBias(op, "bias", plan.dequant));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.dequant.after, "bias", plan.right.columns));
  NPUMESH_ASSIGN_OR_RETURN(plan.out_scale, Factors::Of(op, "quant_scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.out_offset, Factors::Of(op, "quant_offset"));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.out_scale, "quant_scale", plan.right.columns));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.out_offset, "quant_offset", plan.right.columns));
  plan.y_dtype = plan.out_scale.given() ? DataType::kInt8 : plan.x_dtype;
  if (!plan.out_scale.given() && op.attr_int("dtype") >= 0) {
    NPUMESH_ASSIGN_OR_RETURN(plan.y_dtype, op.attr_dtype("dtype"));
    if (!IsRowType(plan.y_dtype)) {
      return Error(Code::kUnsupported, "{}: dtype is {}, expected a float type", op.Who(),
                   Name(plan.y_dtype));
    }
  }
  return plan;
}

// ---- both ----

Result<QuantMatmul> PlanOf(const OpContext& op) {
  return op.schema().type == "QuantBatchMatmulV3" ? PlanQuant(op) : PlanWeightQuant(op);
}

Status InferQuantMatmul(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const QuantMatmul plan, PlanOf(op));
  return SetOutput(op, 0, plan.y_dtype, plan.y());
}

// Number of the matrix of an operand that belongs to number `index` of the batch.
int64_t MatrixOf(const Shape& own, const Shape& batch, int64_t index) {
  int64_t matrix = 0;
  int64_t stride = 1;
  for (int i = 0; i < batch.rank(); ++i) {
    const int at = batch.rank() - 1 - i;
    const int own_at = own.rank() - 1 - i;
    const int64_t position = index % batch[at];
    index /= batch[at];
    if (own_at < 0) continue;
    if (own[own_at] != 1) matrix += position * stride;
    stride *= own[own_at];
  }
  return matrix;
}

class QuantMatmulKernel final : public Kernel {
 public:
  QuantMatmulKernel(const OpContext& op, QuantMatmul plan)
      : plan_(std::move(plan)),
        threads_(op.threads()),
        product_(plan_.left.columns, plan_.integers) {}

  // The product's, and two segments: factors and results.
  uint64_t scratch_bytes() const override {
    return product_.scratch_bytes() + 2 * kBlockColumns * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    const ProductThreads threads(threads_);
    const int64_t batches = ElementsBetween(plan_.batch, 0, plan_.batch.rank());
    for (int64_t b = 0; b < batches; ++b) {
      const int64_t m = plan_.left.rows;
      const int64_t n = plan_.right.columns;
      const int64_t k = plan_.left.columns;
      const StoredMatrix x{plan_.x_dtype, args.in[0],
                           MatrixOf(plan_.left.batch, plan_.batch, b) * m * k, plan_.transposed1};
      const StoredMatrix w{plan_.w_dtype, args.in[1],
                           MatrixOf(plan_.right.batch, plan_.batch, b) * k * n, plan_.transposed2};
      const auto take = [&](const SumSegment& segment) { Store(args, b, segment); };
      NPUMESH_RETURN_IF_ERROR(product_.Run(args, m, n, x, w, plan_.weight_scale, take));
    }
    return Status();
  }

 private:
  void Store(const KernelArgs& args, int64_t batch, const SumSegment& segment) const {
    const int64_t n = plan_.right.columns;
    const int64_t first = (batch * plan_.left.rows + segment.row) * n + segment.first;
    const Dequant dequant = DequantOf(batch);
    if (plan_.y_dtype == DataType::kInt32 && !dequant.row_scale.given()) {
      dequant.AddIntegers(args, segment, static_cast<int32_t*>(args.out[0]) + first);
      return;
    }
    auto* room =
        reinterpret_cast<float*>(static_cast<std::byte*>(args.scratch) + product_.scratch_bytes());
    float* row = room + kBlockColumns;
    dequant.Apply(args, segment, room, row);
    for (const auto& [factors, adds] :
         {std::pair(&plan_.out_scale, false), std::pair(&plan_.out_offset, true)}) {
      if (!factors->given()) continue;
      const bool shared = factors->count() == 1;
      factors->Load(args, shared ? 0 : segment.first, shared ? 1 : segment.count, room);
      for (int64_t i = 0; i < segment.count; ++i) {
        const float factor = room[shared ? 0 : i];
        row[i] = adds ? row[i] + factor : row[i] * factor;
      }
    }
    StoreNumbers(plan_.y_dtype, row, args.out[0], first, segment.count);
  }

  // A bias may have a row for each matrix of the batch.
  Dequant DequantOf(int64_t batch) const {
    Dequant dequant = plan_.dequant;
    const int64_t batches = ElementsBetween(plan_.batch, 0, plan_.batch.rank());
    for (Factors* bias : {&dequant.before, &dequant.after}) {
      if (bias->count() > plan_.right.columns) *bias = bias->Part(batch, batches);
    }
    return dequant;
  }

  QuantMatmul plan_;
  int threads_;
  BlockedProduct product_;
};

Result<std::unique_ptr<Kernel>> MakeQuantMatmul(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(QuantMatmul plan, PlanOf(op));
  return std::unique_ptr<Kernel>(std::make_unique<QuantMatmulKernel>(op, std::move(plan)));
}

}  // namespace

void RegisterQuantMatmulOps(OpRegistry& registry) {
  const AttrValue no = AttrValue::Bool(false);
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  registry.Add({.schema = {"QuantBatchMatmulV3",
                           {{"x1"},
                            {"x2"},
                            {"scale"},
                            optional("offset"),
                            optional("bias"),
                            optional("pertoken_scale")},
                           {{"y"}},
                           {{"dtype", std::nullopt},
                            {"transpose_x1", no},
                            {"transpose_x2", no},
                            {"group_size", AttrValue::Int(0)}}},
                .infer = InferQuantMatmul,
                .make_kernel = MakeQuantMatmul});
  registry.Add({.schema = {"WeightQuantBatchMatmulV2",
                           {{"x"},
                            {"weight"},
                            {"antiquant_scale"},
                            optional("antiquant_offset"),
                            optional("quant_scale"),
                            optional("quant_offset"),
                            optional("bias")},
                           {{"y"}},
                           {{"transpose_x", no},
                            {"transpose_weight", no},
                            {"antiquant_group_size", AttrValue::Int(0)},
                            {"dtype", AttrValue::Int(-1)},
                            {"inner_precise", AttrValue::Int(0)}}},
                .infer = InferQuantMatmul,
                .make_kernel = MakeQuantMatmul});
}

}  // namespace npumesh
