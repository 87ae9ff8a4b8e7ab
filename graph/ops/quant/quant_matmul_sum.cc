// QuantMatmulReduceSum: products of the matrices of a batch, summed; and
// QuantGroupedMatmulInplaceAdd: products of groups of the inner dimension, added to what is there.
#include <algorithm>

#include "graph/ops/quant/quant_matmul.h"
#include "graph/ops/toolbox/rows/group_list.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

// ---- QuantMatmulReduceSum ----

struct SumPlan : QuantMatmul {
  bool rows_by_matrix = false;  // x1_scale is [batch, m]
  Workspace<float> sums;
};

void RefuseWhatIsMissing(Check& check, const OpContext& op) {
  check.NotFed({"bias", "y_scale", "x1_offset", "x2_offset", "y_offset", "x2_table"});
  for (const std::string_view attr : {"compute_type", "group_size"}) {
    check.Supported(op.attr_int(attr) <= 0, "{} is {}, expected -1", attr, op.attr_int(attr));
  }
  const std::vector<int64_t> dims = check.Take(op.Ints("dims"));
  check.Supported(dims.size() == 1 && (dims[0] == 0 || dims[0] == -3),
                  "dims has {} entries, the first {}; expected 0, the batch", dims.size(),
                  dims.empty() ? -1 : dims[0]);
}

SumPlan PlanSum(const OpContext& op, Check& check) {
  SumPlan plan;
  RefuseWhatIsMissing(check, op);
  for (const std::string_view port : {"x1", "x2"}) check.Rank(port, DataType::kInt8, 3);
  ReadSides(check, op, kQuantProduct, plan);
  plan.y_dtype = check.TypeOf("dtype", kFloats, Code::kInvalidArgument);
  check.That(plan.left.batch == plan.right.batch,
             "x1 is {} and x2 {}, expected [b,m,k] and [b,k,n]", op.in("x1"), op.in("x2"));
  const int64_t m = plan.left.rows, n = plan.right.columns;
  plan.dequant.scale = FactorsOf(check, op, "x2_scale", {1, n});
  plan.dequant.row_scale = FactorsOf(check, op, "x1_scale", {1, m, plan.batch.elements() * m});
  const int64_t rows = plan.dequant.row_scale.count();
  plan.rows_by_matrix = rows != m && rows > 1;
  plan.outputs = {{plan.y_dtype, op.attr_bool("keep_dims") ? Shape({1, m, n}) : Shape({m, n})}};
  plan.TakeProduct(op, plan.left.columns, true);
  plan.sums = plan.scratch.Floats(m * n);
  return plan;
}

Status RunSum(const SumPlan& plan, const KernelArgs& args) {
  const ThreadCount threads(plan.threads);
  const int64_t m = plan.left.rows, n = plan.right.columns, batch = plan.batch.elements();
  float *factors = plan.factors(args), *row = plan.results(args), *sums = plan.sums(args);
  std::fill_n(sums, m * n, 0.0f);
  BlockScale unscaled;
  for (int64_t b = 0; b < batch; ++b) {
    const StoredMatrix x = plan.left.Matrix(args, plan.batch, b, unscaled);
    const StoredMatrix w = plan.right.Matrix(args, plan.batch, b, unscaled);
    Dequant dequant = plan.dequant;
    if (plan.rows_by_matrix) dequant.row_scale = dequant.row_scale.Part(b, batch);
    const auto add = [&](const SumSegment& segment) {
      dequant.Apply(args, segment, factors, row);
      float* to = sums + segment.row * n + segment.first;
      AddRow(to, row, segment.count, to);
    };
    NPUMESH_RETURN_IF_ERROR(plan.product.Run(args, m, n, x, w, {}, add));
  }
  StoreRow(plan.y_dtype, sums, args.out[0], 0, m * n);
  return Status();
}

// ---- QuantGroupedMatmulInplaceAdd ----

// y[g] += x1[rows of g]^T x2[rows of g], scaled for each group, or by MX scales that restart at a
// whole pair of blocks for each group.
struct GroupedAddPlan : ProductPlan {
  int64_t m = 0, n = 0, k = 0;
  DataType x1 = DataType::kUndefined, x2 = DataType::kUndefined;
  bool mx = false;
  Factors left, right;
  GroupRows rows;
};

void ReadOperands(Check& check, const OpContext& op, GroupedAddPlan& plan) {
  const int64_t kind = op.attr_int("group_list_type");
  check.Supported(kind == 0 || kind == 1, "group_list_type is {}, expected 0 or 1", kind);
  const auto [k, m] = check.Matrix("x1", kEightBitFloats);
  const auto [depth, n] = check.Matrix("x2", kEightBitFloats);
  check.That(k == depth, "x1 is {} and x2 {}, expected [k,m] and [k,n]", op.in("x1"), op.in("x2"));
  plan.rows = check.Take(GroupRows::Of(op, "group_list", kind == 1, k));
  check.TypeAndShape("y", DataType::kFloat, {plan.rows.groups(), m, n});
  plan.x1 = op.in("x1").dtype;
  plan.x2 = op.in("x2").dtype;
  plan.m = m;
  plan.n = n;
  plan.k = k;
}

void ReadGroupedScales(Check& check, const OpContext& op, GroupedAddPlan& plan) {
  plan.mx = op.in("scale2").dtype == DataType::kFloat8E8M0;
  const int64_t size = op.attr_int("group_size");
  check.Supported(size <= 0 || (plan.mx && (size & 0xffff) == kMxBlock),
                  "group_size is {}, expected 0", size);
  plan.left = check.Take(Factors::Of(op, "scale1"));
  plan.right = check.Take(Factors::Of(op, "scale2"));
  const int64_t groups = plan.rows.groups(), pairs = plan.k / (2 * kMxBlock) + groups;
  const Shape left = plan.mx ? Shape({pairs, plan.m, 2}) : Shape({groups});
  const Shape right = plan.mx ? Shape({pairs, plan.n, 2}) : Shape({groups, plan.n});
  const bool typed = !plan.mx || plan.left.dtype() == DataType::kFloat8E8M0;
  const bool counts = plan.left.count() == left.elements() || (!plan.mx && !plan.left.given());
  check.That(typed && counts && plan.right.count() == right.elements(),
             "{} elements of scale1 and {} of scale2, expected {} and {} for {} groups{}",
             plan.left.count(), plan.right.count(), left, right, groups,
             plan.mx ? ", both float8_e8m0" : "");
}

GroupedAddPlan PlanGroupedAdd(const OpContext& op, Check& check) {
  GroupedAddPlan plan;
  ReadOperands(check, op, plan);
  ReadGroupedScales(check, op, plan);
  plan.outputs = {op.in("y")};
  plan.TakeProduct(op, plan.k, false);  // no group has more than all of k
  return plan;
}

BlockScale ScaleOf(const Factors& factors, int64_t lines, int64_t group, int64_t begin) {
  return {.factors = factors,
          .first = (begin / (2 * kMxBlock) + group) * lines * 2,
          .depth = kMxBlock,
          .by_lines = 2,
          .by_pair = 2 * lines,
          .by_block = 1};
}

Status AddGroup(const GroupedAddPlan& plan, const KernelArgs& args, int64_t group, int64_t begin,
                int64_t end) {
  const int64_t m = plan.m, n = plan.n;
  const BlockScale left = ScaleOf(plan.left, m, group, begin);
  const BlockScale right = ScaleOf(plan.right, n, group, begin);
  const StoredMatrix x{plan.x1, args.in[0], begin * m, true, 0, plan.mx ? &left : nullptr};
  const StoredMatrix w{plan.x2, args.in[1], begin * n, false, 0, plan.mx ? &right : nullptr};
  Dequant dequant;
  if (!plan.mx) {
    dequant.scale = plan.right.Part(group, plan.rows.groups());
    dequant.row_scale = plan.left.Part(group, plan.rows.groups());
  }
  float *factors = plan.factors(args), *row = plan.results(args);
  const BlockedProduct product(end - begin, false);
  return product.Run(args, m, n, x, w, {}, [&](const SumSegment& segment) {
    dequant.Apply(args, segment, factors, row);
    float* y = static_cast<float*>(args.out[0]) + (group * m + segment.row) * n + segment.first;
    AddRow(y, row, segment.count, y);
  });
}

Status RunGroupedAdd(const GroupedAddPlan& plan, const KernelArgs& args) {
  const ThreadCount threads(plan.threads);
  const auto add = [&](int64_t group, int64_t begin, int64_t end) {
    return AddGroup(plan, args, group, begin, end);
  };
  return plan.rows.ForEach(args, add).status();
}

}  // namespace

void RegisterSummedMatmulOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanSum, RunSum>(
      "QuantMatmulReduceSum(x1, x2, dims, bias?, x1_scale?, x2_scale?, y_scale?, x1_offset?, "
      "x2_offset?, y_offset?, x2_table?; dtype:int, compute_type=-1, transpose_x1=false, "
      "transpose_x2=false, group_size=-1, keep_dims=false) -> y",
      {.value_inputs = {"dims"}}));
  registry.Add(Define<PlanGroupedAdd, RunGroupedAdd>(
      "QuantGroupedMatmulInplaceAdd(x1, x2, scale2, group_list, y, scale1?; group_list_type=0, "
      "group_size=0) -> y",
      {.in_place = {{0, 4}}}));
}

}  // namespace npumesh
