#include "graph/ops/quant/quant_matmul.h"

#include <algorithm>
#include <type_traits>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/toolbox/product/int8_product.h"
#include "graph/ops/toolbox/product/int8_weight_product.h"
#include "graph/ops/toolbox/product/matmul.h"

namespace npumesh {
namespace {

// A bias may have a row for each matrix of the batch.
Dequant DequantOf(const QuantMatmul& plan, int64_t matrix) {
  Dequant dequant = plan.dequant;
  for (Factors* bias : {&dequant.before, &dequant.after}) {
    if (bias->count() > plan.right.columns) *bias = bias->Part(matrix, plan.batch.elements());
  }
  return dequant;
}

void Store(const QuantMatmul& plan, const KernelArgs& args, int64_t matrix,
           const SumSegment& segment) {
  const int64_t first =
      (matrix * plan.left.rows + segment.row) * plan.right.columns + segment.first;
  const Dequant dequant = DequantOf(plan, matrix);
  if (plan.y_dtype == DataType::kInt32 && !dequant.row_scale.given()) {
    dequant.AddIntegers(args, segment, static_cast<int32_t*>(args.out[0]) + first);
    return;
  }
  float *room = plan.factors(args), *row = plan.results(args);
  dequant.Apply(args, segment, room, row);
  ScaleColumns(args, plan.out_scale, plan.out_offset, segment.first, segment.count, room, row);
  if (plan.adds) AddRow(row, static_cast<const float*>(args.out[0]) + first, segment.count, row);
  StoreNumbers(plan.y_dtype, row, args.out[0], first, segment.count);
}

// A row of all columns, of a product of all rows of all batches.
template <typename Sum>
void StoreSums(const QuantMatmul& plan, const KernelArgs& args, int64_t row, const Sum* sums) {
  const int64_t n = plan.right.columns;
  for (int64_t first = 0; first < n; first += kBlockColumns) {
    SumSegment segment{row % plan.left.rows, first, std::min(kBlockColumns, n - first)};
    if constexpr (std::is_same_v<Sum, float>) {
      segment.floats = sums + first;
    } else {
      segment.integers = sums + first;
    }
    Store(plan, args, row / plan.left.rows, segment);
  }
}

Status RunMatrix(const QuantMatmul& plan, const KernelArgs& args, int64_t matrix) {
  BlockScale x_scale, w_scale;
  const StoredMatrix x = plan.left.Matrix(args, plan.batch, matrix, x_scale);
  const StoredMatrix w = plan.right.Matrix(args, plan.batch, matrix, w_scale);
  return plan.product.Run(args, plan.left.rows, plan.right.columns, x, w, plan.weight_scale,
                          [&](const SumSegment& segment) { Store(plan, args, matrix, segment); });
}

MatmulSide SideOf(Check& check, const OpContext& op, std::string_view port,
                  std::string_view transposed) {
  const auto& [dtype, shape] = op.in(port);
  const int rank = shape.rank();
  check.That(rank >= 2, "{} is {}, expected a matrix", port, op.in(port));
  if (!check.ok()) return {};
  const bool packed = dtype == DataType::kInt32;
  MatmulSide side = {.slot = op.slot(port),
                     .dtype = packed ? DataType::kInt4 : dtype,
                     .transposed = op.attr_bool(transposed),
                     .rows = shape[rank - 2],
                     .columns = shape[rank - 1] * (packed ? 8 : 1),
                     .batch = WithoutLast(WithoutLast(shape))};
  if (side.transposed) std::swap(side.rows, side.columns);
  return side;
}

std::string WhyNotIntegers(const QuantMatmul& plan) {
  if (plan.integers) return "";
  if (kQuantised.Contains(plan.left.dtype) && kQuantised.Contains(plan.right.dtype)) {
    return "int8 products need one scale for each column";
  }
  return fmt::format("{} and {} are multiplied as floats", Name(plan.left.dtype),
                     Name(plan.right.dtype));
}

// How sums are formed; weights may be packed, too.
constexpr std::string_view kPackedSums = "packed";
constexpr Candidate<const QuantMatmul> kSums[] = {{"integers", WhyNotIntegers}, {"float32"}};

// Why weights that are multiplied as floats are no int8 with a scale for each column.
std::string WhyNotScaledColumns(const QuantMatmul& plan) {
  const WeightScale& scale = plan.weight_scale;
  if (plan.left.scale.given() || plan.right.scale.given()) return "its scales are of blocks";
  if (!scale.scale.given() || !kFloats.Contains(plan.left.dtype))
    return "its weights have no scale";
  if (scale.offset.given()) return "its weights have offsets";
  return scale.rows > 0 ? "its scales are of groups" : "";
}

// Why there can be no product packed for all rows of all batches.
std::string WhyNotPacked(const OpContext& op, const QuantMatmul& plan) {
  const std::string_view x = op.schema().inputs[0].name, w = op.schema().inputs[1].name;
  const DataType left = plan.left.dtype, right = plan.right.dtype;
  if (op.value(1) == nullptr) return fmt::format("{} is no constant", w);
  if (plan.integers && left != DataType::kInt8) return fmt::format("{} is {}", x, Name(left));
  if (right != DataType::kInt8) return fmt::format("{} is {}", w, Name(right));
  if (plan.left.transposed) return fmt::format("{} is transposed", x);
  if (plan.right.batch.elements() != 1) return fmt::format("{} is a batch of matrices", w);
  const bool empty = plan.batch.elements() * plan.left.rows * plan.right.columns == 0;
  if (empty || plan.right.rows == 0) return "it has no elements";
  const bool repeats = plan.left.batch.elements() != plan.batch.elements();
  if (repeats) return fmt::format("{} is repeated for a batch", x);
  return plan.integers ? "" : WhyNotScaledColumns(plan);
}

// REQUIRES: WhyNotPacked does not object, as below.
Status PackIntegers(const OpContext& op, QuantMatmul& plan) {
  NPUMESH_ASSIGN_OR_RETURN(Int8Product::Made made,
                           Int8Product::Make({.who = op.Who(),
                                              .m = plan.left.rows * plan.left.batch.elements(),
                                              .n = plan.right.columns,
                                              .k = plan.right.rows,
                                              .weight = op.value(1),
                                              .transposed = plan.right.transposed,
                                              .threads = plan.threads,
                                              .packed = op.packed(),
                                              .tuning = op.tuning()}));
  if (made.product != nullptr) plan.choice.Decide(kPackedSums, "");
  plan.choice.Join(made.choice);
  plan.packed = std::move(made.product);
  return Status();
}

Status PackScaledColumns(const OpContext& op, QuantMatmul& plan) {
  NPUMESH_ASSIGN_OR_RETURN(
      plan.dequantised, Int8WeightProduct::Make({.who = op.Who(),
                                                 .m = plan.left.rows * plan.left.batch.elements(),
                                                 .n = plan.right.columns,
                                                 .k = plan.right.rows,
                                                 .x_dtype = plan.left.dtype,
                                                 .weight = op.value(1),
                                                 .transposed = plan.right.transposed,
                                                 .scale = plan.weight_scale.scale,
                                                 .threads = plan.threads,
                                                 .packed = op.packed()}));
  plan.choice.Decide(kPackedSums, "");
  return Status();
}

}  // namespace

StoredMatrix MatmulSide::Matrix(const KernelArgs& args, const Shape& all, int64_t index,
                                BlockScale& own) const {
  const int64_t matrix = MatrixOf(batch.dims(), all.dims(), index);
  own = scale;
  own.first += matrix * by_matrix;
  return {
      dtype, args.in[slot], matrix * rows * columns, transposed, 0, own.given() ? &own : nullptr};
}

void ReadSides(Check& check, const OpContext& op, const ProductTrait& product, QuantMatmul& plan) {
  plan.left = SideOf(check, op, product.left, product.left_transposed);
  plan.right = SideOf(check, op, product.right, product.right_transposed);
  const Result<Shape> batch = Broadcast(plan.left.batch, plan.right.batch);
  check.That(batch.ok() && plan.left.columns == plan.right.rows,
             "{}{} and {}{} cannot be multiplied", op.in(product.left),
             plan.left.transposed ? " transposed" : "", op.in(product.right),
             plan.right.transposed ? " transposed" : "");
  if (batch.ok()) plan.batch = *batch;
}

QuantMatmul Finished(const OpContext& op, QuantMatmul plan) {
  plan.outputs = {{plan.y_dtype, plan.y()}};
  plan.TakeProduct(op, plan.left.columns, plan.integers);
  return plan;
}

Status PackWeights(const OpContext& op, QuantMatmul* plan) {
  plan->choice = Choose(kSums, std::as_const(*plan));
  std::string why_not = WhyNotPacked(op, *plan);
  if (!why_not.empty()) {
    plan->choice.Decide(kPackedSums, std::move(why_not));
    return Status();
  }
  NPUMESH_RETURN_IF_ERROR(plan->integers ? PackIntegers(op, *plan) : PackScaledColumns(op, *plan));
  if (plan->packed == nullptr && plan->dequantised == nullptr) return Status();
  plan->taken = {1};
  plan->scratch = Scratch();
  plan->TakeRoom(
      op, plan->integers ? plan->packed->scratch_bytes() : plan->dequantised->scratch_bytes());
  return Status();
}

Status RunQuantMatmul(const QuantMatmul& plan, const KernelArgs& args) {
  const auto store = [&](int64_t row, const auto* sums) { StoreSums(plan, args, row, sums); };
  if (plan.packed != nullptr) return plan.packed->Run(args.in[0], args.scratch, store);
  if (plan.dequantised != nullptr) {
    plan.dequantised->Run(args, args.in[0], store);
    return Status();
  }
  const ThreadCount threads(plan.threads);
  for (int64_t matrix = 0; matrix < plan.batch.elements(); ++matrix) {
    NPUMESH_RETURN_IF_ERROR(RunMatrix(plan, args, matrix));
  }
  return Status();
}

}  // namespace npumesh
