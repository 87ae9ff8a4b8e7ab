// TransposeBatchMatMul and TransposeQuantBatchMatMul: a batch of products whose operands and result
// lie transposed.
//
//   y = permute_y(permute_1(x1) permute_2(x2) (scaled) + bias)
#include <algorithm>
#include <array>
#include <limits>

#include "graph/ops/matmul/family.h"
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
  std::vector<int64_t> sorted = list;
  std::sort(sorted.begin(), sorted.end());
  const bool fits = sorted == std::vector<int64_t>{0, 1, 2};
  check.That(fits || list.empty(), "{} is {}, expected a permutation of 0, 1, 2", attr,
             Shape(list));
  return fits ? Three{list[0], list[1], list[2]} : Three{0, 1, 2};
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
  Shape y;
  DataType y_dtype = DataType::kUndefined;
  Dequant dequant;    // of one matrix or of all
  Factors out_scale;  // of int8 results, one for each column of every matrix
  bool mx = false;
  Factors left_scale, right_scale;
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
  plan.y = {dims[0], dims[1], dims[2]};
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
  plan.y = parts == 1 ? Shape({m, 1, width}) : Shape({parts, m, width});
}

Result<TransposePlan> Finish(const OpContext& op, Check& check, TransposePlan plan) {
  plan.TakeProduct(op, plan.left.columns, false);
  plan.outputs = {{plan.y_dtype, plan.y}};
  return check.Done(std::move(plan));
}

Result<TransposePlan> PlanFloat(const OpContext& op) {
  Check check(op);
  TransposePlan plan;
  PlanSides(op, kFloats, check, plan);
  plan.out_scale = check.Take(Factors::Of(op, "scale"));
  PlanResult(op, plan.out_scale.given(), check, plan);
  check.Keep(ReadBias(op, "bias", plan.dequant));
  plan.y_dtype = plan.out_scale.given() ? DataType::kInt8 : plan.left.dtype;
  check.Supported(plan.right.dtype == plan.left.dtype && !plan.dequant.before.given(),
                  "x1 is {} and x2 {}, expected one float type, and a float type for the bias",
                  op.in("x1"), op.in("x2"));
  const int64_t n = plan.right.columns, all = plan.left.batch * n;
  const Factors& bias = plan.dequant.after;
  if (bias.count() != all) check.Keep(CheckFactors(op, bias, "bias", n));
  check.Keep(CheckFactors(op, plan.out_scale, "scale", all));
  return Finish(op, check, std::move(plan));
}

void CheckMx(const OpContext& op, const TransposePlan& plan, Check& check) {
  const int64_t m = plan.left.rows, n = plan.right.columns, k = plan.left.columns;
  const int64_t batch = plan.left.batch, pairs = k / (2 * kMxBlock);
  const Shape left({m, batch, pairs, 2});
  const Shape right =
      plan.right.transposed ? Shape({batch, n, pairs, 2}) : Shape({batch, pairs, n, 2});
  const std::vector<int64_t> perm = op.attr_ints("perm_x2");
  const bool stored =
      op.attr_ints("perm_x1") == std::vector<int64_t>{1, 0, 2} && (perm.empty() || perm[0] == 0);
  check.Supported(
      stored && k % (2 * kMxBlock) == 0 &&
          op.in("x1_scale") == TensorType{DataType::kFloat8E8M0, left} &&
          op.in("x2_scale") == TensorType{DataType::kFloat8E8M0, right},
      "x1_scale is {} and x2_scale {}, expected float8_e8m0 {} and {}, k in whole pairs of "
      "32, perm_x1 1,0,2 and the batch of x2 in front",
      op.in("x1_scale"), op.in("x2_scale"), left, right);
}

Result<TransposePlan> PlanQuant(const OpContext& op) {
  Check check(op);
  TransposePlan plan;
  PlanSides(op, kEightBitFloats, check, plan);
  PlanResult(op, false, check, plan);
  plan.y_dtype = check.Take(op.attr_dtype("dtype"));
  check.Supported(kFloats.Contains(plan.y_dtype), "dtype is {}, expected {}", Name(plan.y_dtype),
                  kFloats);
  const int left = SlotIfFed(op, "x1_scale"), right = SlotIfFed(op, "x2_scale");
  check.Supported(SlotIfFed(op, "bias") < 0 && left >= 0 && right >= 0,
                  "expected x1_scale and x2_scale, and no bias");
  if (!check.ok()) return check.status();
  plan.left_scale = check.Take(Factors::OfSlot(op, left));
  plan.right_scale = check.Take(Factors::OfSlot(op, right));
  plan.mx = op.in(left).dtype == DataType::kFloat8E8M0;
  const int64_t group = op.attr_int("group_size");
  check.Supported(group <= 0 || (plan.mx && (group & 0xffff) == kMxBlock),
                  "group_size is {}, expected 0{}", group, plan.mx ? " or 32" : "");
  if (plan.mx) {
    CheckMx(op, plan, check);
    return Finish(op, check, std::move(plan));
  }
  check.Supported(op.in(left).dtype == DataType::kFloat && op.in(right).dtype == DataType::kFloat,
                  "x1_scale is {} and x2_scale {}, expected float32 or float8_e8m0 for both",
                  op.in(left), op.in(right));
  plan.dequant.row_scale = plan.left_scale;
  plan.dequant.scale = plan.right_scale;
  check.Keep(CheckFactors(op, plan.left_scale, "x1_scale", plan.left.rows));
  check.Keep(CheckFactors(op, plan.right_scale, "x2_scale", plan.right.columns));
  return Finish(op, check, std::move(plan));
}

// x1_scale is [m, batch, pairs, 2].
BlockScale LeftScale(const TransposePlan& plan, int64_t b) {
  const int64_t pairs = plan.left.columns / (2 * kMxBlock);
  return {plan.left_scale, b * pairs * 2, kMxBlock, 1, plan.left.batch * pairs * 2, 2, 1};
}

// x2_scale is [batch, pairs, n, 2], or [batch, n, pairs, 2] where x2 is transposed.
BlockScale RightScale(const TransposePlan& plan, int64_t b) {
  const int64_t pairs = plan.left.columns / (2 * kMxBlock), n = plan.right.columns;
  const bool turned = plan.right.transposed;
  return {plan.right_scale,       b * pairs * n * 2,  kMxBlock, 1,
          turned ? pairs * 2 : 2, turned ? 2 : n * 2, 1};
}

void Store(const TransposePlan& plan, const KernelArgs& args, int64_t b,
           const SumSegment& segment) {
  const int64_t n = plan.right.columns;
  float* row = plan.results(args);
  Dequant dequant = plan.dequant;
  if (dequant.after.count() > n) dequant.after = dequant.after.Part(b, plan.left.batch);
  dequant.Apply(args, segment, plan.factors(args), row);
  for (int64_t i = 0; plan.out_scale.given() && i < segment.count; ++i) {
    const bool shared = plan.out_scale.count() == 1;
    row[i] *= plan.out_scale.At(args, shared ? 0 : b * n + segment.first + i);
  }
  const ResultPlace& place = plan.place;
  const int64_t first = place.Element(b, segment.row, segment.first);
  if (place.by_column == 1) {
    StoreNumbers(plan.y_dtype, row, args.out[0], first, segment.count);
    return;
  }
  for (int64_t i = 0; i < segment.count; ++i) {
    StoreNumbers(plan.y_dtype, row + i, args.out[0], first + i * place.by_column, 1);
  }
}

Status RunTranspose(const TransposePlan& plan, const KernelArgs& args) {
  const ThreadCount threads(plan.threads);
  const PermutedSide &left = plan.left, &right = plan.right;
  for (int64_t b = 0; b < left.batch; ++b) {
    const BlockScale left_scale = LeftScale(plan, b), right_scale = RightScale(plan, b);
    const StoredMatrix x{left.dtype,      args.in[0],   b * left.by_batch,
                         left.transposed, left.by_line, plan.mx ? &left_scale : nullptr};
    const StoredMatrix w{right.dtype,      args.in[1],    b * right.by_batch,
                         right.transposed, right.by_line, plan.mx ? &right_scale : nullptr};
    const auto take = [&](const SumSegment& segment) { Store(plan, args, b, segment); };
    NPUMESH_RETURN_IF_ERROR(plan.product.Run(args, left.rows, right.columns, x, w, {}, take));
  }
  return Status();
}

}  // namespace

void RegisterTransposeMatmulOps(OpRegistry& registry) {
  registry.Add(Define<PlanFloat, RunTranspose>(
      "TransposeBatchMatMul(x1, x2, bias?, scale?; perm_x1=[], perm_x2=[], perm_y=[], "
      "enable_hf32=false, batch_split_factor=1) -> y"));
  registry.Add(Define<PlanQuant, RunTranspose>(
      "TransposeQuantBatchMatMul(x1, x2, bias?, x1_scale?, x2_scale?; dtype:int, group_size=0, "
      "perm_x1=[1,0,2], perm_x2=[0,1,2], perm_y=[1,0,2], batch_split_factor=1) -> y"));
}

}  // namespace npumesh
