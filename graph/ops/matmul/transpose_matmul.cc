// TransposeBatchMatMul and TransposeQuantBatchMatMul: a batch of products whose operands and result
// lie transposed.
//
//   y = permute_y(permute_1(x1) permute_2(x2) (scaled) + bias)
#include <algorithm>
#include <array>
#include <limits>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/product/product_plan.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

using Three = std::array<int64_t, 3>;

// The three values in the order of a permutation.
Three Permuted(const Three& values, const Three& perm) {
  const auto at = [&](size_t i) { return values[static_cast<size_t>(perm[i])]; };
  return {at(0), at(1), at(2)};
}

// A permutation of three dimensions; an empty list keeps them.
Three PermutationOf(const OpContext& op, std::string_view attr, Check& check) {
  const std::vector<int64_t> list = op.attr_ints(attr);
  const Three kept = {0, 1, 2};
  const bool fits = std::is_permutation(list.begin(), list.end(), kept.begin(), kept.end());
  check.That(fits || list.empty(), "{} is {}, expected a permutation of 0, 1, 2", attr,
             Shape(list));
  return fits ? Three{list[0], list[1], list[2]} : kept;
}

// A batch of matrices in memory after its permutation.
struct PermutedSide {
  int64_t batch = 0, rows = 0, columns = 0;
  int64_t by_batch = 0;  // elements from matrix to matrix
  int64_t by_line = 0;   // from line to line, as stored
  bool transposed = false;
  DataType dtype = DataType::kUndefined;
};

PermutedSide SideOf(const OpContext& op, std::string_view port, std::string_view attr,
                    TypeSet types, Check& check) {
  const Three perm = PermutationOf(op, attr, check);
  const TensorType& type = op.in(port);
  check.Supported(types.Contains(type.dtype), "{} is {}, expected {}", port, type, types);
  check.Rank(port, types, 3);
  check.Supported(perm[0] != 2,
                  "{} makes the last dimension of \"{}\" the batch, which is not supported", attr,
                  port);
  if (!check.ok()) return {};
  const Shape& shape = type.shape;
  const Three dims = Permuted({shape[0], shape[1], shape[2]}, perm);
  const Three strides = Permuted({shape[1] * shape[2], shape[2], 1}, perm);
  const bool transposed = perm[1] == 2;
  return {dims[0],    dims[1],   dims[2], strides[0], strides[transposed ? 2 : 1],
          transposed, type.dtype};
}

// Where the elements of the result go.
struct ResultPlace {
  int64_t by_batch = 0, by_row = 0, by_column = 0;
  int64_t split = std::numeric_limits<int64_t>::max();  // matrices of one part of the batch
  int64_t by_split = 0;                                 // elements of a part

  int64_t Element(int64_t b, int64_t row, int64_t column) const {
    return b / split * by_split + b % split * by_batch + row * by_row + column * by_column;
  }
};

struct TransposePlan : ProductPlan {
  PermutedSide left, right;
  ResultPlace place;
  TensorType y;
  Dequant dequant;    // of one matrix or of all
  Factors out_scale;  // of int8 results, one for each column of every matrix
  // MX scales of the first matrix, and their distances to those of the next.
  BlockScale left_scale, right_scale;
  int64_t left_scale_step = 0, right_scale_step = 0;
};

void PlanSides(const OpContext& op, TypeSet types, Check& check, TransposePlan& plan) {
  plan.left = SideOf(op, "x1", "perm_x1", types, check);
  plan.right = SideOf(op, "x2", "perm_x2", types, check);
  check.That(plan.left.batch == plan.right.batch && plan.left.columns == plan.right.rows,
             "x1 {} and x2 {} cannot be multiplied: {} of {} x {} and {} of {} x {}", op.in("x1"),
             op.in("x2"), plan.left.batch, plan.left.rows, plan.left.columns, plan.right.batch,
             plan.right.rows, plan.right.columns);
}

// The result is [batch, rows, columns] permuted; parts of the batch, or what is quantised, join
// batch and columns.
void PlanResult(const OpContext& op, bool joined, Check& check, TransposePlan& plan) {
  const Three perm = PermutationOf(op, "perm_y", check);
  const int64_t parts = op.attr_int("batch_split_factor");
  const int64_t batch = plan.left.batch, m = plan.left.rows, n = plan.right.columns;
  const Three dims = Permuted({batch, m, n}, perm);
  Three strides;
  int64_t stride = 1;
  for (size_t i = 3; i-- > 0;) {
    strides[static_cast<size_t>(perm[i])] = stride;
    stride *= dims[i];
  }
  plan.place = {strides[0], strides[1], strides[2]};
  plan.y.shape = {dims[0], dims[1], dims[2]};
  if (parts == 1 && !joined) return;
  const bool fits =
      parts >= 1 && batch % parts == 0 && perm == Three{1, 0, 2} && (!joined || parts == 1);
  check.Supported(
      fits,
      "batch_split_factor {} for {} matrices with perm_y {}{}; expected a divisor and perm_y "
      "1,0,2",
      parts, batch, Shape(op.attr_ints("perm_y")), joined ? " and a scale" : "");
  if (!fits) return;
  const int64_t width = batch / parts * n;
  plan.place = {n, width, 1, std::max<int64_t>(batch / parts, 1), m * width};
  plan.y.shape = parts == 1 ? Shape({m, 1, width}) : Shape({parts, m, width});
}

TransposePlan PlanFloat(const OpContext& op, Check& check) {
  TransposePlan plan;
  PlanSides(op, kFloats, check, plan);
  plan.out_scale = check.Take(Factors::Of(op, "scale"));
  PlanResult(op, plan.out_scale.given(), check, plan);
  ReadBias(check, op, plan.dequant);
  plan.y.dtype = plan.out_scale.given() ? DataType::kInt8 : plan.left.dtype;
  check.Supported(plan.right.dtype == plan.left.dtype && !plan.dequant.before.given(),
                  "x1 is {} and x2 {}, expected one float type, and a float type for the bias",
                  op.in("x1"), op.in("x2"));
  const int64_t n = plan.right.columns, all = plan.left.batch * n;
  const Factors& bias = plan.dequant.after;
  if (bias.count() != all) check.Keep(CheckFactors(op, bias, "bias", n));
  check.Keep(CheckFactors(op, plan.out_scale, "scale", all));
  plan.TakeProduct(op, plan.left.columns, false);
  plan.outputs = {plan.y};
  return plan;
}

// x1_scale is [m, batch, pairs, 2], x2_scale [batch, pairs, n, 2], or [batch, n, pairs, 2] where x2
// is transposed.
void PlanMx(const OpContext& op, const Factors& left, const Factors& right, Check& check,
            TransposePlan& plan) {
  const int64_t m = plan.left.rows, n = plan.right.columns, k = plan.left.columns;
  const int64_t batch = plan.left.batch, pairs = k / (2 * kMxBlock);
  const bool turned = plan.right.transposed;
  const Shape left_shape({m, batch, pairs, 2});
  const Shape right_shape = turned ? Shape({batch, n, pairs, 2}) : Shape({batch, pairs, n, 2});
  const std::vector<int64_t> perm = op.attr_ints("perm_x2");
  const bool stored =
      op.attr_ints("perm_x1") == std::vector<int64_t>{1, 0, 2} && (perm.empty() || perm[0] == 0);
  check.Supported(
      stored && k % (2 * kMxBlock) == 0 &&
          op.in("x1_scale") == TensorType{DataType::kFloat8E8M0, left_shape} &&
          op.in("x2_scale") == TensorType{DataType::kFloat8E8M0, right_shape},
      "x1_scale is {} and x2_scale {}, expected float8_e8m0 {} and {}, k in whole pairs of "
      "32, perm_x1 1,0,2 and the batch of x2 in front",
      op.in("x1_scale"), op.in("x2_scale"), left_shape, right_shape);
  if (!check.ok()) return;
  plan.left_scale_step = pairs * 2;
  plan.right_scale_step = pairs * n * 2;
  plan.left_scale = {left, 0, kMxBlock, 1, batch * pairs * 2, 2, 1};
  plan.right_scale = {right, 0, kMxBlock, 1, turned ? pairs * 2 : 2, turned ? 2 : n * 2, 1};
}

TransposePlan PlanQuant(const OpContext& op, Check& check) {
  TransposePlan plan;
  PlanSides(op, kEightBitFloats, check, plan);
  PlanResult(op, false, check, plan);
  plan.y.dtype = check.Take(op.attr_dtype("dtype"));
  check.Supported(kFloats.Contains(plan.y.dtype), "dtype is {}, expected {}", Name(plan.y.dtype),
                  kFloats);
  const bool scaled = SlotIfFed(op, "x1_scale") >= 0 && SlotIfFed(op, "x2_scale") >= 0;
  check.Supported(SlotIfFed(op, "bias") < 0 && scaled,
                  "expected x1_scale and x2_scale, and no bias");
  if (!check.ok()) return plan;
  const Factors left = check.Take(Factors::Of(op, "x1_scale"));
  const Factors right = check.Take(Factors::Of(op, "x2_scale"));
  const bool mx = left.dtype() == DataType::kFloat8E8M0;
  const int64_t group = op.attr_int("group_size");
  check.Supported(group <= 0 || (mx && (group & 0xffff) == kMxBlock),
                  "group_size is {}, expected 0{}", group, mx ? " or 32" : "");
  if (mx) {
    PlanMx(op, left, right, check, plan);
  } else {
    check.Supported(left.dtype() == DataType::kFloat && right.dtype() == DataType::kFloat,
                    "x1_scale is {} and x2_scale {}, expected float32 or float8_e8m0 for both",
                    op.in("x1_scale"), op.in("x2_scale"));
    plan.dequant.row_scale = left;
    plan.dequant.scale = right;
    check.Keep(CheckFactors(op, left, "x1_scale", plan.left.rows));
    check.Keep(CheckFactors(op, right, "x2_scale", plan.right.columns));
  }
  plan.TakeProduct(op, plan.left.columns, false);
  plan.outputs = {plan.y};
  return plan;
}

void Store(const TransposePlan& plan, const KernelArgs& args, int64_t b,
           const SumSegment& segment) {
  const int64_t n = plan.right.columns;
  float* row = plan.results(args);
  Dequant dequant = plan.dequant;
  if (dequant.after.count() > n) dequant.after = dequant.after.Part(b, plan.left.batch);
  dequant.Apply(args, segment, plan.factors(args), row);
  for (int64_t i = 0; plan.out_scale.given() && i < segment.count; ++i) {
    row[i] *= plan.out_scale.For(args, b * n + segment.first + i, 1.0f);
  }
  const ResultPlace& place = plan.place;
  const int64_t first = place.Element(b, segment.row, segment.first);
  if (place.by_column == 1) {
    StoreNumbers(plan.y.dtype, row, args.out[0], first, segment.count);
    return;
  }
  for (int64_t i = 0; i < segment.count; ++i) {
    StoreNumbers(plan.y.dtype, row + i, args.out[0], first + i * place.by_column, 1);
  }
}

Status RunTranspose(const TransposePlan& plan, const KernelArgs& args) {
  const ThreadCount threads(plan.threads);
  const PermutedSide &left = plan.left, &right = plan.right;
  BlockScale left_scale = plan.left_scale, right_scale = plan.right_scale;
  const bool mx = left_scale.given();
  for (int64_t b = 0; b < left.batch; ++b) {
    left_scale.first = b * plan.left_scale_step;
    right_scale.first = b * plan.right_scale_step;
    const StoredMatrix x{left.dtype,      args.in[0],   b * left.by_batch,
                         left.transposed, left.by_line, mx ? &left_scale : nullptr};
    const StoredMatrix w{right.dtype,      args.in[1],    b * right.by_batch,
                         right.transposed, right.by_line, mx ? &right_scale : nullptr};
    const auto take = [&](const SumSegment& segment) { Store(plan, args, b, segment); };
    NPUMESH_RETURN_IF_ERROR(plan.product.Run(args, left.rows, right.columns, x, w, {}, take));
  }
  return Status();
}

}  // namespace

void RegisterTransposeMatmulOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kWhite);
  registry.Add(Define<PlanFloat, RunTranspose>(
      "TransposeBatchMatMul(x1, x2, bias?, scale?; perm_x1=[], perm_x2=[], perm_y=[], "
      "enable_hf32=false, batch_split_factor=1) -> y"));
  registry.Add(Define<PlanQuant, RunTranspose>(
      "TransposeQuantBatchMatMul(x1, x2, bias?, x1_scale?, x2_scale?; dtype:int, group_size=0, "
      "perm_x1=[1,0,2], perm_x2=[0,1,2], perm_y=[1,0,2], batch_split_factor=1) -> y",
      {.precision = PrecisionClass::kKept}));
}

}  // namespace npumesh
