// QLinearMatMul: the product of matrices of bytes that stand for scale * (byte - zero), in exact
// int32 sums.
//
//   sum = (x1 - x1_zero) (x2 - x2_zero) + bias
//   y = saturate(round(sum * scale) + y_zero), or sum * scale as float32, or the sum itself
//
// Zeros are taken out of the sums afterwards:
//
//   sum (x - p) (w - q) = sum x w - q sum x - p sum (w - q)
//
// Where x2, or x1 beside an x2 that is no constant, has no sign, it is multiplied less 128.
#include <numeric>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/product/blocked_product.h"
#include "graph/ops/toolbox/product/int8_product.h"
#include "graph/ops/toolbox/product/linear_bytes.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

struct LinearMatmulPlan : Planned {
  DataType left = DataType::kUndefined, right = DataType::kUndefined;
  LinearEnd end;
  int64_t batch = 1, m = 0, n = 0, k = 0;  // x1 [batch, m, k], x2 [batch, k, n] or [k, n]
  bool transposed = false;                 // x2 is stored [n, k]
  bool many_right = false;                 // x2 has a batch
  int x1_zero = -1, x2_zero = -1;          // slots; -1: absent
  bool one_x2_zero = true;
  const Tensor* right_value = nullptr;
  PackedWeights* packed = nullptr;
  int threads = 1;
  // Set when the kernel is made.
  std::shared_ptr<Int8Product> product;  // null: in blocks
  BlockedProduct blocks;
  Workspace<std::byte> room;
  Workspace<int8_t> left_bytes, right_bytes;
  Workspace<int32_t> added, row_sums, column_sums, zeros, row;
  Workspace<float> scales;
  std::vector<int32_t> kept_sums;

  // What bytes of x1 and x2 have less when they are multiplied.
  int32_t left_moved() const { return left == DataType::kUint8 && product == nullptr ? 128 : 0; }
  int32_t right_moved() const { return right == DataType::kUint8 ? 128 : 0; }
  // A zero of x2, as it is multiplied, may not be 0.
  bool has_zeros() const { return x2_zero >= 0 || right_moved() != 0; }
  int64_t matrices() const { return many_right ? batch : 1; }
  int64_t rows() const { return many_right ? m : batch * m; }  // of a matrix
};

LinearMatmulPlan PlanLinearMatmul(const OpContext& op, Check& check) {
  LinearMatmulPlan plan;
  check.RankAtLeast("x1", kLinearBytes, 2);
  check.RankAtLeast("x2", kLinearBytes, 2);
  if (!check.ok()) return plan;
  const TensorType &left = op.in("x1"), &right = op.in("x2");
  plan.left = left.dtype;
  plan.right = right.dtype;
  plan.transposed = op.attr_bool("transpose_x2");
  const int rank = left.shape.rank(), wide = right.shape.rank();
  plan.m = left.shape[rank - 2];
  plan.k = left.shape[rank - 1];
  plan.n = right.shape[plan.transposed ? wide - 2 : wide - 1];
  const int64_t k = right.shape[plan.transposed ? wide - 1 : wide - 2];
  check.That(plan.k == k, "x1 {} and x2 {}{} cannot be multiplied", left, right,
             plan.transposed ? " transposed" : "");
  plan.many_right = wide > 2;
  const auto batch = [](const Shape& shape) {
    return std::vector<int64_t>(shape.dims().begin(), shape.dims().end() - 2);
  };
  check.That(!plan.many_right || batch(left.shape) == batch(right.shape),
             "x1 {} and x2 {} have other batches", left, right);
  for (const int64_t dim : batch(left.shape)) plan.batch *= dim;
  plan.x1_zero = OptionalSlot(op, check, "x1_zero", plan.left, {1});
  plan.x2_zero = OptionalSlot(op, check, "x2_zero", plan.right, {1, plan.n});
  plan.end = LinearEnd::Of(op, check, plan.n);
  if (!check.ok()) return plan;
  if (plan.x2_zero >= 0) plan.one_x2_zero = op.in(plan.x2_zero).shape.elements() == 1;
  plan.right_value = op.value(op.slot("x2"));
  plan.packed = op.packed();
  plan.threads = op.threads();
  plan.outputs = {{plan.end.y, WithLast(left.shape, plan.n)}};
  return plan;
}

Status PrepareLinearMatmul(const OpContext& op, LinearMatmulPlan* plan) {
  const int64_t products = plan->rows() * plan->n * plan->k;
  if (products == 0) return Status();
  const bool packs = plan->right_value != nullptr && !plan->many_right;
  uint64_t bytes = 0;
  if (packs) {
    Tensor weight = *plan->right_value;
    if (plan->right == DataType::kUint8) {
      std::vector<int8_t> moved(static_cast<size_t>(weight.elements()));
      FlipSigns(weight.data(), weight.elements(), moved.data());
      weight = Tensor::FromVector({DataType::kInt8, weight.shape()}, moved);
    }
    plan->kept_sums.resize(static_cast<size_t>(plan->n));
    SumColumns(reinterpret_cast<const int8_t*>(weight.data()), plan->k, plan->n, plan->transposed,
               plan->kept_sums.data());
    const Int8Form form = {.who = plan->who,
                           .m = plan->rows(),
                           .n = plan->n,
                           .k = plan->k,
                           .weight = &weight,
                           .transposed = plan->transposed,
                           .x_unsigned = plan->left == DataType::kUint8,
                           .threads = plan->threads,
                           .packed = plan->right == DataType::kInt8 ? plan->packed : nullptr};
    NPUMESH_ASSIGN_OR_RETURN(Int8Product::Made made, Int8Product::Make(form));
    plan->product = std::move(made.product);
    plan->choice = std::move(made.choice);
    plan->taken.push_back(op.slot("x2"));
    bytes = plan->product->scratch_bytes();
  } else {
    plan->blocks = BlockedProduct(plan->k, true);
    plan->choice.Decide("packed", "x2 is no constant matrix");
    plan->choice.Decide("in blocks", "");
    bytes = plan->blocks.scratch_bytes();
  }
  // Products work at the beginning of the scratch memory.
  plan->room = plan->scratch.Take<std::byte>(static_cast<int64_t>(bytes));
  if (plan->left_moved() != 0) {
    plan->left_bytes = plan->scratch.Take<int8_t>(plan->rows() * plan->k);
  }
  if (!packs && plan->right == DataType::kUint8) {
    plan->right_bytes = plan->scratch.Take<int8_t>(plan->k * plan->n);
  }
  plan->row_sums = plan->scratch.Take<int32_t>(plan->rows());
  plan->scratch.Take<int32_t>(plan->n,
                              {&plan->added, &plan->column_sums, &plan->zeros, &plan->row});
  plan->scales = plan->scratch.Floats(plan->n);
  return Status();
}

// Sums of columns [first, first + count) of a row of y become its elements.
void StoreLinear(const LinearMatmulPlan& plan, const KernelArgs& args, const ByteRounding& rounding,
                 int64_t row, int64_t row_in_matrix, int64_t first, int64_t count,
                 const int32_t* sums) {
  if (plan.has_zeros()) {
    const int32_t of_row = plan.row_sums(args)[row_in_matrix];
    const int32_t* zeros = plan.zeros(args) + first;
    int32_t* room = plan.row(args);
    for (int64_t c = 0; c < count; ++c) room[c] = LessTimes(sums[c], zeros[c], of_row);
    sums = room;
  }
  ByteRounding part = rounding;
  part.added += first;
  part.scale += first;
  auto* const y = static_cast<std::byte*>(args.out[0]);
  RoundSums(part, sums, 1, count, y + (row * plan.n + first) * BitsOf(plan.end.y) / 8);
}

Status RunLinearMatrix(const LinearMatmulPlan& plan, const KernelArgs& args, int64_t matrix) {
  const int64_t rows = plan.rows(), k = plan.k, n = plan.n;
  const auto* x = static_cast<const int8_t*>(args.in[0]) + matrix * rows * k;
  if (plan.left_moved() != 0) {
    FlipSigns(x, rows * k, plan.left_bytes(args));
    x = plan.left_bytes(args);
  }
  const int8_t* w = nullptr;
  const int32_t* column_sums = plan.kept_sums.data();
  if (plan.product == nullptr) {
    w = static_cast<const int8_t*>(args.in[1]) + (plan.many_right ? matrix : 0) * k * n;
    if (plan.right == DataType::kUint8) {
      FlipSigns(w, k * n, plan.right_bytes(args));
      w = plan.right_bytes(args);
    }
    SumColumns(w, k, n, plan.transposed, plan.column_sums(args));
    column_sums = plan.column_sums(args);
  }
  const int32_t left_zero =
      (plan.x1_zero < 0 ? 0 : ByteAt(plan.left, args.in[plan.x1_zero], 0)) - plan.left_moved();
  const ByteRounding rounding = plan.end.Load(args, plan.added(args), plan.scales(args));
  for (int64_t c = 0; c < n; ++c) {
    const int64_t place = plan.one_x2_zero ? 0 : c;
    const int32_t zero = (plan.x2_zero < 0 ? 0 : ByteAt(plan.right, args.in[plan.x2_zero], place)) -
                         plan.right_moved();
    plan.zeros(args)[c] = zero;
    const int32_t sum = LessTimes(column_sums[c], zero, static_cast<int32_t>(k));
    plan.added(args)[c] = LessTimes(plan.added(args)[c], left_zero, sum);
  }
  if (plan.has_zeros()) {
    const auto sum = [k](const auto* row) { return std::accumulate(row, row + k, int32_t{0}); };
    const bool bare = plan.left == DataType::kUint8 && plan.left_moved() == 0;
    for (int64_t r = 0; r < rows; ++r) {
      plan.row_sums(args)[r] =
          bare ? sum(reinterpret_cast<const uint8_t*>(x) + r * k) : sum(x + r * k);
    }
  }
  if (plan.product != nullptr) {
    return plan.product->Run(x, plan.room(args), [&](int64_t row, const int32_t* sums) {
      StoreLinear(plan, args, rounding, row, row, 0, n, sums);
    });
  }
  const StoredMatrix left = {.dtype = DataType::kInt8, .data = x};
  const StoredMatrix right = {.dtype = DataType::kInt8, .data = w, .transposed = plan.transposed};
  return plan.blocks.Run(args, rows, n, left, right, {}, [&](const SumSegment& segment) {
    StoreLinear(plan, args, rounding, matrix * rows + segment.row, segment.row, segment.first,
                segment.count, segment.integers);
  });
}

// Of sums without products.
void StoreBias(const LinearMatmulPlan& plan, const KernelArgs& args) {
  std::vector<int32_t> added(static_cast<size_t>(plan.n), 0), none(added);
  std::vector<float> scales(static_cast<size_t>(plan.n), 0);
  const ByteRounding rounding = plan.end.Load(args, added.data(), scales.data());
  auto* const y = static_cast<std::byte*>(args.out[0]);
  for (int64_t row = 0; row < plan.batch * plan.m; ++row) {
    RoundSums(rounding, none.data(), 1, plan.n, y + row * plan.n * BitsOf(plan.end.y) / 8);
  }
}

Status RunLinearMatmul(const LinearMatmulPlan& plan, const KernelArgs& args) {
  const ThreadCount threads(plan.threads);
  if (plan.batch * plan.m * plan.n == 0) return Status();
  if (plan.k == 0) {
    StoreBias(plan, args);
    return Status();
  }
  for (int64_t matrix = 0; matrix < plan.matrices(); ++matrix) {
    NPUMESH_RETURN_IF_ERROR(RunLinearMatrix(plan, args, matrix));
  }
  return Status();
}

}  // namespace

void RegisterLinearMatmulOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanLinearMatmul, RunLinearMatmul, PrepareLinearMatmul>(
      "QLinearMatMul(x1, x2, x1_zero?, x2_zero?, bias?, scale?, y_zero?; dtype:int, "
      "transpose_x2=false) -> y"));
}

}  // namespace npumesh
