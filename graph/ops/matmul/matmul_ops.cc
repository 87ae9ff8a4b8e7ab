// The matrix multiplication family: its operators, their inference and the choice of a kernel.
#include "graph/ops/matmul/matmul_ops.h"

#include <algorithm>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/core/signature.h"
#include "graph/ops/matmul/family.h"
#include "graph/ops/toolbox/product/matmul.h"

namespace npumesh {
namespace {

// The matrix and batch dimensions of an operand as stored. A vector is a row on the left and a
// column on the right, whatever the transpose flag says.
struct Side {
  Shape batch;
  int64_t rows = 1, columns = 1;
  bool vector = false;
};

Side SideOf(const OpContext& op, std::string_view port, bool left, Check& check) {
  const Shape& shape = op.in(port).shape;
  const int rank = shape.rank();
  check.That(rank > 0, "\"{}\" is a scalar, expected a matrix or vector", port);
  Side side;
  side.vector = rank == 1;
  if (rank == 1) (left ? side.columns : side.rows) = shape[0];
  if (rank < 2) return side;
  side.rows = shape[rank - 2];
  side.columns = shape[rank - 1];
  side.batch = Shape(std::vector<int64_t>(shape.dims().begin(), shape.dims().end() - 2));
  return side;
}

// `batch` with 1s in front up to `rank`.
std::vector<int64_t> PaddedBatch(std::vector<int64_t> batch, size_t rank) {
  batch.insert(batch.begin(), rank - batch.size(), 1);
  return batch;
}

// The bias of BatchMatMul does not exist, that of the others may be absent.
bool HasBias(const OpContext& op) {
  return op.schema().inputs.size() > 2 && op.has("bias");
}

// [n], or [.., 1, n] with the batch or 1s in front.
void AddBias(const OpContext& op, Check& check, Matmul& matmul) {
  if (!HasBias(op)) return;
  const TensorType& bias = op.in("bias");
  const bool integers = matmul.y_dtype == DataType::kInt32;
  check.That(bias.dtype == matmul.y_dtype || (!integers && bias.dtype == DataType::kFloat),
             "\"bias\" is {}, but the product is {}", Name(bias.dtype), Name(matmul.y_dtype));
  const Shape& shape = bias.shape;
  const int rank = shape.rank();
  bool fits = rank >= 1 && shape[rank - 1] == matmul.n && (rank < 2 || shape[rank - 2] == 1);
  std::vector<int64_t> batch(shape.dims().begin(), shape.dims().end() - std::min(rank, 2));
  while (batch.size() > matmul.batch.size() && batch.front() == 1) batch.erase(batch.begin());
  fits = fits && batch.size() <= matmul.batch.size();
  if (fits) batch = PaddedBatch(std::move(batch), matmul.batch.size());
  fits = fits && std::equal(batch.begin(), batch.end(), matmul.batch.begin(),
                            [](int64_t own, int64_t all) { return own == 1 || own == all; });
  check.That(fits, "\"bias\" is {}, expected [{}] or one row for each batch of {}", shape, matmul.n,
             Shape(matmul.batch));
  matmul.bias = {op.slot("bias"), bias.dtype, std::move(batch), false};
}

struct MatmulPlan {
  Matmul matmul;
  Shape y;
};

MatmulPlan PlanMatmul(const OpContext& op, Check& check) {
  const Side left = SideOf(op, "x1", true, check), right = SideOf(op, "x2", false, check);
  const auto flag = [&](size_t i) { return op.attr_bool(op.schema().attrs[i].name); };
  const bool transpose1 = !left.vector && flag(0), transpose2 = !right.vector && flag(1);
  const int64_t k = transpose1 ? left.rows : left.columns;
  const int64_t k2 = transpose2 ? right.columns : right.rows;
  const Result<Shape> batch = Broadcast(left.batch, right.batch);
  check.That(k == k2 && batch.ok(), "x1 {}{} and x2 {}{} cannot be multiplied", op.in("x1").shape,
             transpose1 ? " transposed" : "", op.in("x2").shape, transpose2 ? " transposed" : "");
  check.SameType("x1", "x2");
  MatmulPlan plan;
  if (!check.ok()) return plan;
  Matmul& matmul = plan.matmul;
  const DataType dtype = op.in("x1").dtype;
  matmul.who = op.Who();
  matmul.y_dtype = dtype == DataType::kInt8 ? DataType::kInt32 : dtype;
  matmul.batch = batch->dims();
  const size_t rank = matmul.batch.size();
  matmul.x1 = {op.slot("x1"), dtype, PaddedBatch(left.batch.dims(), rank), transpose1};
  matmul.x2 = {op.slot("x2"), dtype, PaddedBatch(right.batch.dims(), rank), transpose2};
  matmul.m = transpose1 ? left.columns : left.rows;
  matmul.n = transpose2 ? right.rows : right.columns;
  matmul.k = k;
  matmul.x2_value = op.value(op.slot("x2"));
  matmul.packed = op.packed();
  matmul.tuning = op.tuning();
  matmul.threads = op.threads();
  AddBias(op, check, matmul);
  plan.y = *batch;
  if (!left.vector) plan.y.mutable_dims().push_back(matmul.m);
  if (!right.vector) plan.y.mutable_dims().push_back(matmul.n);
  return plan;
}

// A product and its tail. A class, because both are kernels and the second has other slots.
class TailKernel final : public Kernel {
 public:
  TailKernel(std::unique_ptr<Kernel> product, std::unique_ptr<Kernel> tail, int slots)
      : product_(std::move(product)), tail_(std::move(tail)), slots_(slots) {
    set_choice(product_->choice());
  }

  uint64_t scratch_bytes() const override {
    return std::max(product_->scratch_bytes(), tail_->scratch_bytes());
  }

  bool reads(int slot) const override { return slot >= slots_ || product_->reads(slot); }

  Status Run(const KernelArgs& args) override {
    NPUMESH_RETURN_IF_ERROR(product_->Run(args));
    return tail_->Run({args.in + slots_, args.out, args.scratch});
  }

 private:
  std::unique_ptr<Kernel> product_, tail_;
  int slots_;  // of the product
};

}  // namespace

TensorType MatmulType(const OpContext& op, bool eight_bits, Check& check) {
  MatmulPlan plan = PlanMatmul(op, check);
  const DataType dtype = op.in("x1").dtype;
  const bool known = (kFloats | DataType::kInt32).Contains(dtype);
  check.Supported(known || (eight_bits && dtype == DataType::kInt8),
                  "products of {} are not available", Name(dtype));
  return {plan.matmul.y_dtype, std::move(plan.y)};
}

Result<std::unique_ptr<Kernel>> MakeMatmulKernel(const OpContext& op, int bias_slot,
                                                 DataType y_dtype) {
  Check check(op);
  MatmulPlan plan = PlanMatmul(op, check);
  NPUMESH_RETURN_IF_ERROR(check.status());
  if (y_dtype != DataType::kUndefined) plan.matmul.y_dtype = y_dtype;
  if (op.out(0).shape.elements() == 0) {
    return MakeKernel([](const KernelArgs&) { return Status(); });
  }
  Matmul& matmul = plan.matmul;
  if (bias_slot >= 0) {
    matmul.bias = {bias_slot, DataType::kFloat, std::vector<int64_t>(matmul.batch.size(), 1),
                   false};
  }
  matmul.Simplify();
  if (op.in("x1").dtype == DataType::kInt8) matmul.offset = op.attr_int("offset_x");
  return MakeMatmul(matmul);
}

Result<std::unique_ptr<Kernel>> MakeProductAndTail(const OpContext& op, int bias_slot,
                                                   const std::vector<ChainLink>& links,
                                                   const std::vector<TensorType>& types) {
  NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> product, MakeMatmulKernel(op, bias_slot));
  if (links.empty()) return product;
  return std::unique_ptr<Kernel>(std::make_unique<TailKernel>(
      std::move(product), MakeChainKernel(links, types, op.out(0), true), op.slots()));
}

// opImplMode and enable_hf32 let a device compute with fewer bits; nothing does here.
void RegisterMatmulOps(OpRegistry& registry) {
  const auto add = [&](std::string_view signature, bool eight_bits = false) {
    OpSchema schema = Signature(signature);
    ProductTrait product;
    product.left_transposed = schema.attrs[0].name;
    product.right_transposed = schema.attrs[1].name;
    if (schema.inputs.size() > 2) product.bias = "bias";
    registry.Add({.schema = std::move(schema),
                  .infer =
                      [=](OpContext& op) {
                        Check check(op);
                        const TensorType y = MatmulType(op, eight_bits, check);
                        NPUMESH_RETURN_IF_ERROR(check.status());
                        return SetOutput(op, 0, y.dtype, y.shape);
                      },
                  .make_kernel = [](const OpContext& op) { return MakeMatmulKernel(op); },
                  .product = product,
                  .weight = WeightTrait{.port = product.right}});
  };
  add("MatMul(x1, x2, bias?; transpose_x1=false, transpose_x2=false) -> y");
  add("MatMulV2(x1, x2, bias?, offset_w?; transpose_x1=false, transpose_x2=false, offset_x=0) -> y",
      true);
  add("MatMulV3(x1, x2, bias?, offset_w?; transpose_x1=false, transpose_x2=false, offset_x=0, "
      "opImplMode=1) -> y");
  add("BatchMatMul(x1, x2; adj_x1=false, adj_x2=false) -> y");
  add("BatchMatMulV2(x1, x2, bias?, offset_w?; adj_x1=false, adj_x2=false, offset_x=0) -> y", true);
  add("BatchMatMulV3(x1, x2, bias?, offset_w?; adj_x1=false, adj_x2=false, offset_x=0, "
      "enable_hf32=false) -> y");
}

}  // namespace npumesh
