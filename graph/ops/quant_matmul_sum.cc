// QuantMatmulReduceSum: products of the matrices of a batch, summed; and
// QuantGroupedMatmulInplaceAdd: products of groups of the inner dimension, added to what is there.
// Ops reference 5.19.
#include <algorithm>

#include "graph/ops/float_rows.h"
#include "graph/ops/group_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/quant_matmul.h"
#include "graph/ops/small_float.h"

namespace npumesh {
namespace {

// ---- QuantMatmulReduceSum ----

struct SumPlan {
  MatmulSide left;
  MatmulSide right;
  bool transposed1 = false;
  bool transposed2 = false;
  int64_t batch = 0;
  DataType y_dtype = DataType::kUndefined;
  Dequant dequant;
  bool rows_by_matrix = false;  // x1_scale is [batch, m]
};

Status RefuseWhatIsNot(const OpContext& op) {
  for (const std::string_view port :
       {"bias", "y_scale", "x1_offset", "x2_offset", "y_offset", "x2_table"}) {
    if (SlotIfFed(op, port) < 0) continue;
    return Error(Code::kUnsupported, "{}: \"{}\" is fed, which is not supported", op.Who(), port);
  }
  for (const std::string_view attr : {"compute_type", "group_size"}) {
    if (op.attr_int(attr) <= 0) continue;
    return Error(Code::kUnsupported, "{}: {} is {}, expected -1", op.Who(), attr,
                 op.attr_int(attr));
  }
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, op.Ints("dims"));
  if (dims.size() == 1 && (dims[0] == 0 || dims[0] == -3)) return Status();
  return Error(Code::kUnsupported,
               "{}: \"dims\" has {} entries, the first {}; expected 0, the batch", op.Who(),
               dims.size(), dims.empty() ? -1 : dims[0]);
}

Result<SumPlan> PlanSum(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(RefuseWhatIsNot(op));
  SumPlan plan;
  plan.transposed1 = op.attr_bool("transpose_x1");
  plan.transposed2 = op.attr_bool("transpose_x2");
  NPUMESH_ASSIGN_OR_RETURN(plan.left, SideOf(op, "x1", plan.transposed1));
  NPUMESH_ASSIGN_OR_RETURN(plan.right, SideOf(op, "x2", plan.transposed2));
  NPUMESH_ASSIGN_OR_RETURN(plan.y_dtype, op.attr_dtype("dtype"));
  const TensorType &x1 = op.in("x1"), &x2 = op.in("x2");
  const bool fits = x1.dtype == DataType::kInt8 && x2.dtype == DataType::kInt8 &&
                    x1.shape.rank() == 3 && x2.shape.rank() == 3 && x1.shape[0] == x2.shape[0] &&
                    plan.left.columns == plan.right.rows;
  if (!fits || !IsRowType(plan.y_dtype)) {
    return Error(Code::kInvalidArgument,
                 "{}: x1 is {}, x2 {} and dtype {}; expected int8 [b,m,k] and [b,k,n] and a float "
                 "type",
                 op.Who(), x1.ToString(), x2.ToString(), Name(plan.y_dtype));
  }
  plan.batch = x1.shape[0];
  const int64_t m = plan.left.rows;
  NPUMESH_ASSIGN_OR_RETURN(plan.dequant.scale, Factors::Of(op, "x2_scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.dequant.row_scale, Factors::Of(op, "x1_scale"));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.dequant.scale, "x2_scale", plan.right.columns));
  const int64_t rows = plan.dequant.row_scale.count();
  plan.rows_by_matrix = rows != m && rows == plan.batch * m && rows > 1;
  if (!plan.rows_by_matrix) {
    NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.dequant.row_scale, "x1_scale", m));
  }
  return plan;
}

Status InferSum(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const SumPlan plan, PlanSum(op));
  Shape y({plan.left.rows, plan.right.columns});
  if (op.attr_bool("keep_dims")) y = Shape({1, plan.left.rows, plan.right.columns});
  return SetOutput(op, 0, plan.y_dtype, y);
}

class SumKernel final : public Kernel {
 public:
  SumKernel(const OpContext& op, SumPlan plan)
      : plan_(std::move(plan)), threads_(op.threads()), product_(plan_.left.columns, true) {}

  // The product's, two segments, the sums.
  uint64_t scratch_bytes() const override {
    const int64_t floats = 2 * kBlockColumns + plan_.left.rows * plan_.right.columns;
    return product_.scratch_bytes() + static_cast<uint64_t>(floats) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    const ProductThreads threads(threads_);
    const int64_t m = plan_.left.rows, n = plan_.right.columns, k = plan_.left.columns;
    auto* room =
        reinterpret_cast<float*>(static_cast<std::byte*>(args.scratch) + product_.scratch_bytes());
    float* row = room + kBlockColumns;
    float* sums = row + kBlockColumns;
    std::fill_n(sums, m * n, 0.0f);
    for (int64_t b = 0; b < plan_.batch; ++b) {
      const StoredMatrix x{DataType::kInt8, args.in[0], b * m * k, plan_.transposed1};
      const StoredMatrix w{DataType::kInt8, args.in[1], b * k * n, plan_.transposed2};
      Dequant dequant = plan_.dequant;
      if (plan_.rows_by_matrix) dequant.row_scale = dequant.row_scale.Part(b, plan_.batch);
      const auto add = [&](const SumSegment& segment) {
        dequant.Apply(args, segment, room, row);
        float* to = sums + segment.row * n + segment.first;
        for (int64_t i = 0; i < segment.count; ++i) to[i] += row[i];
      };
      NPUMESH_RETURN_IF_ERROR(product_.Run(args, m, n, x, w, {}, add));
    }
    StoreRow(plan_.y_dtype, sums, args.out[0], 0, m * n);
    return Status();
  }

 private:
  SumPlan plan_;
  int threads_;
  BlockedProduct product_;
};

Result<std::unique_ptr<Kernel>> MakeSum(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(SumPlan plan, PlanSum(op));
  return std::unique_ptr<Kernel>(std::make_unique<SumKernel>(op, std::move(plan)));
}

// ---- QuantGroupedMatmulInplaceAdd ----

// y[g] += x1[rows of g]^T x2[rows of g], scaled for each group, or by MX scales that restart at a
// whole pair of blocks for each group.
struct GroupedAddPlan {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool mx = false;
  Factors left;
  Factors right;
  GroupRows rows;
};

Status CheckGroupedScales(const OpContext& op, const GroupedAddPlan& plan) {
  const int64_t groups = plan.rows.groups();
  const int64_t pairs = plan.k / (2 * kMxBlock) + groups;
  const Shape left = plan.mx ? Shape({pairs, plan.m, 2}) : Shape({groups});
  const Shape right = plan.mx ? Shape({pairs, plan.n, 2}) : Shape({groups, plan.n});
  const bool typed = !plan.mx || op.in("scale1").dtype == DataType::kFloat8E8M0;
  const bool counts = plan.left.count() == left.elements() || (!plan.mx && !plan.left.given());
  if (typed && counts && plan.right.count() == right.elements()) return Status();
  return Error(Code::kInvalidArgument,
               "{}: {} elements of scale1 and {} of scale2, expected {} and {} for {} groups{}",
               op.Who(), plan.left.count(), plan.right.count(), left.ToString(), right.ToString(),
               groups, plan.mx ? ", both float8_e8m0" : "");
}

Result<GroupedAddPlan> PlanGroupedAdd(const OpContext& op) {
  const TensorType &x1 = op.in("x1"), &x2 = op.in("x2"), &y = op.in("y");
  GroupedAddPlan plan;
  const int64_t kind = op.attr_int("group_list_type");
  if (kind != 0 && kind != 1) {
    return Error(Code::kUnsupported, "{}: group_list_type is {}, expected 0 or 1", op.Who(), kind);
  }
  bool fits = IsFloat8(x1.dtype) && IsFloat8(x2.dtype) && x1.shape.rank() == 2 &&
              x2.shape.rank() == 2 && x1.shape[0] == x2.shape[0];
  if (fits) {
    plan.k = x1.shape[0];
    plan.m = x1.shape[1];
    plan.n = x2.shape[1];
    NPUMESH_ASSIGN_OR_RETURN(plan.rows, GroupRows::Of(op, "group_list", kind == 1, plan.k));
    fits = y == TensorType{DataType::kFloat, {plan.rows.groups(), plan.m, plan.n}};
  }
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: x1 is {}, x2 {} and y {}; expected 8-bit floats [k,m] and [k,n] and float32 "
                 "[groups,m,n]",
                 op.Who(), x1.ToString(), x2.ToString(), y.ToString());
  }
  plan.mx = op.in("scale2").dtype == DataType::kFloat8E8M0;
  const int64_t size = op.attr_int("group_size");
  if (size > 0 && (!plan.mx || (size & 0xffff) != kMxBlock)) {
    return Error(Code::kUnsupported, "{}: group_size is {}, expected 0", op.Who(), size);
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.left, Factors::Of(op, "scale1"));
  NPUMESH_ASSIGN_OR_RETURN(plan.right, Factors::Of(op, "scale2"));
  NPUMESH_RETURN_IF_ERROR(CheckGroupedScales(op, plan));
  return plan;
}

Status InferGroupedAdd(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(PlanGroupedAdd(op).status());
  return SetOutput(op, 0, DataType::kFloat, op.in("y").shape);
}

class GroupedAddKernel final : public Kernel {
 public:
  GroupedAddKernel(const OpContext& op, GroupedAddPlan plan)
      : plan_(std::move(plan)),
        x1_(op.in("x1").dtype),
        x2_(op.in("x2").dtype),
        threads_(op.threads()) {}

  // The product's for all of k, and two segments.
  uint64_t scratch_bytes() const override {
    return BlockedProduct(plan_.k, false).scratch_bytes() + 2 * kBlockColumns * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    const ProductThreads threads(threads_);
    return plan_.rows.ForEach(args, [&](int64_t group, int64_t begin, int64_t end) {
      return RunGroup(args, group, begin, end);
    });
  }

 private:
  BlockScale ScaleOf(const Factors& factors, int64_t lines, int64_t group, int64_t begin) const {
    BlockScale scale;
    scale.factors = factors;
    scale.first = (begin / (2 * kMxBlock) + group) * lines * 2;
    scale.depth = kMxBlock;
    scale.by_lines = 2;
    scale.by_pair = 2 * lines;
    scale.by_block = 1;
    return scale;
  }

  Status RunGroup(const KernelArgs& args, int64_t group, int64_t begin, int64_t end) const {
    const int64_t m = plan_.m, n = plan_.n;
    const BlockedProduct product(end - begin, false);
    BlockScale left, right;
    if (plan_.mx) {
      left = ScaleOf(plan_.left, m, group, begin);
      right = ScaleOf(plan_.right, n, group, begin);
    }
    const StoredMatrix x{x1_, args.in[0], begin * m, true, 0, plan_.mx ? &left : nullptr};
    const StoredMatrix w{x2_, args.in[1], begin * n, false, 0, plan_.mx ? &right : nullptr};
    Dequant dequant;
    if (!plan_.mx) {
      const int64_t groups = plan_.rows.groups();
      dequant.scale = plan_.right.Part(group, groups);
      if (plan_.left.given()) dequant.row_scale = plan_.left.Part(group, groups);
    }
    auto* room = reinterpret_cast<float*>(static_cast<std::byte*>(args.scratch) + scratch_bytes()) -
                 2 * kBlockColumns;
    float* row = room + kBlockColumns;
    return product.Run(args, m, n, x, w, {}, [&](const SumSegment& segment) {
      dequant.Apply(args, segment, room, row);
      float* y = static_cast<float*>(args.out[0]) + (group * m + segment.row) * n + segment.first;
      for (int64_t i = 0; i < segment.count; ++i) y[i] += row[i];
    });
  }

  GroupedAddPlan plan_;
  DataType x1_;
  DataType x2_;
  int threads_;
};

Result<std::unique_ptr<Kernel>> MakeGroupedAdd(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(GroupedAddPlan plan, PlanGroupedAdd(op));
  return std::unique_ptr<Kernel>(std::make_unique<GroupedAddKernel>(op, std::move(plan)));
}

}  // namespace

void RegisterSummedMatmulOps(OpRegistry& registry) {
  const AttrValue no = AttrValue::Bool(false);
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  registry.Add({.schema = {"QuantMatmulReduceSum",
                           {{"x1"},
                            {"x2"},
                            {"dims"},
                            optional("bias"),
                            optional("x1_scale"),
                            optional("x2_scale"),
                            optional("y_scale"),
                            optional("x1_offset"),
                            optional("x2_offset"),
                            optional("y_offset"),
                            optional("x2_table")},
                           {{"y"}},
                           {{"dtype", Required::kInt},
                            {"compute_type", AttrValue::Int(-1)},
                            {"transpose_x1", no},
                            {"transpose_x2", no},
                            {"group_size", AttrValue::Int(-1)},
                            {"keep_dims", no}}},
                .infer = InferSum,
                .make_kernel = MakeSum,
                .value_inputs = {"dims"}});
  registry.Add(
      {.schema = {"QuantGroupedMatmulInplaceAdd",
                  {{"x1"}, {"x2"}, {"scale2"}, {"group_list"}, {"y"}, optional("scale1")},
                  {{"y"}},
                  {{"group_list_type", AttrValue::Int(0)}, {"group_size", AttrValue::Int(0)}}},
       .infer = InferGroupedAdd,
       .make_kernel = MakeGroupedAdd,
       .in_place = {{0, 4}}});
}

}  // namespace npumesh
