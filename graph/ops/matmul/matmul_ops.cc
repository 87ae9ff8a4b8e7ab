// The matrix multiplication family: MatMul and its forms; FusedMatMul, a product and what follows
// it, rounded once; and FullyConnection.
#include "graph/ops/matmul/matmul_ops.h"

#include <algorithm>
#include <string>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/copy/block_operand.h"
#include "graph/ops/toolbox/lanes/lane_table.h"
#include "graph/ops/toolbox/product/matmul.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/row_io.h"

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

// [n], or [.., 1, n] with the batch or 1s in front. BatchMatMul has no port for it.
void AddBias(const OpContext& op, Check& check, Matmul& matmul) {
  if (op.schema().inputs.size() <= 2 || !op.has("bias")) return;
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

// `eight_bits`: the operator multiplies int8 too.
TensorType MatmulType(const OpContext& op, bool eight_bits, Check& check) {
  MatmulPlan plan = PlanMatmul(op, check);
  const DataType dtype = op.in("x1").dtype;
  const bool known = (kFloats | DataType::kInt32).Contains(dtype);
  check.Supported(known || (eight_bits && dtype == DataType::kInt8),
                  "products of {} are not available", Name(dtype));
  return {plan.matmul.y_dtype, std::move(plan.y)};
}

// The kernel of a node whose output types are inferred. `sums` as for MakeProductAndTail.
// `y_dtype`: float32 where the product shall have another type than its operands.
Result<std::unique_ptr<Kernel>> MakeMatmulKernel(const OpContext& op, const ProductSums& sums = {},
                                                 DataType y_dtype = DataType::kUndefined) {
  Check check(op);
  MatmulPlan plan = PlanMatmul(op, check);
  NPUMESH_RETURN_IF_ERROR(check.status());
  if (y_dtype != DataType::kUndefined) plan.matmul.y_dtype = y_dtype;
  if (op.out(0).shape.elements() == 0) {
    return MakeKernel([](const KernelArgs&) { return Status(); });
  }
  Matmul& matmul = plan.matmul;
  matmul.residual = sums.residual;
  if (sums.bias >= 0) {
    matmul.bias = {sums.bias, DataType::kFloat, std::vector<int64_t>(matmul.batch.size(), 1),
                   false};
  }
  matmul.Simplify();
  if (op.in("x1").dtype == DataType::kInt8) matmul.offset = op.attr_int("offset_x");
  return MakeMatmul(matmul);
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

// ---- FusedMatMul ----

enum class Follows : uint8_t { kNothing, kCast, kAdd, kMultiply, kFormula };

struct Fusion {
  std::string_view name;  // fused_op_type
  Follows follows = Follows::kNothing;
  LoopOp formula = LoopOp::kRelu;
};
constexpr Fusion kFusions[] = {{"", Follows::kNothing},
                               {"16cast32", Follows::kCast},
                               {"add", Follows::kAdd},
                               {"mul", Follows::kMultiply},
                               {"relu", Follows::kFormula, LoopOp::kRelu},
                               {"gelu_erf", Follows::kFormula, LoopOp::kGeluErf},
                               {"gelu_tanh", Follows::kFormula, LoopOp::kGeluTanh}};

Fusion FusionOf(const OpContext& op, Check& check) {
  check.OneOf("fused_op_type", {"", "16cast32", "add", "mul", "relu", "gelu_erf", "gelu_tanh"});
  if (!check.ok()) return {};
  const std::string type = op.attr_string("fused_op_type");
  const Fusion fusion = *std::find_if(std::begin(kFusions), std::end(kFusions),
                                      [&](const Fusion& row) { return row.name == type; });
  const bool two = fusion.follows == Follows::kAdd || fusion.follows == Follows::kMultiply;
  check.That(op.has("x3") == two, "\"x3\" is {} with fused_op_type \"{}\"", two ? "missing" : "fed",
             type);
  return fusion;
}

struct FusedPlan : Planned {
  Fusion fusion;
  int x3 = -1;  // slot
  DataType dtype = DataType::kUndefined;
  LaneFn formula = nullptr;
  std::unique_ptr<Kernel> product;  // from Prepare
  Workspace<float> sums;            // the product in float32, where more than a cast follows
  Workspace<std::byte> room;        // of the product's kernel

  bool computes() const { return fusion.follows > Follows::kCast; }
};

FusedPlan PlanFused(const OpContext& op, Check& check) {
  FusedPlan plan;
  plan.fusion = FusionOf(op, check);
  const TensorType y = MatmulType(op, false, check);
  check.Supported(kFloats.Contains(y.dtype), "x1 is {}, expected {}", op.in("x1"), kFloats);
  check.That(!op.has("x3") || op.in("x3") == y, "\"x3\" is {}, expected {} like the product",
             op.in("x3"), y);
  plan.x3 = op.slot("x3");
  plan.formula = FindLanes(plan.fusion.formula, LoopType::kFloat);
  plan.dtype = plan.fusion.follows == Follows::kCast ? DataType::kFloat : y.dtype;
  plan.outputs = {{plan.dtype, y.shape}};
  return plan;
}

Status PrepareFused(const OpContext& op, FusedPlan* plan) {
  const bool computes = plan->computes();
  NPUMESH_ASSIGN_OR_RETURN(plan->product,
                           MakeMatmulKernel(op, {}, computes ? DataType::kFloat : plan->dtype));
  plan->choice = plan->product->choice();
  if (computes) plan->sums = plan->scratch.Floats(op.out(0).shape.elements());
  plan->room = plan->scratch.Take<std::byte>(static_cast<int64_t>(plan->product->scratch_bytes()));
  for (int slot = 0; slot < op.slots(); ++slot) {
    if (!plan->product->reads(slot)) plan->taken.push_back(slot);
  }
  return Status();
}

Status RunFused(const FusedPlan& plan, const KernelArgs& args) {
  constexpr auto kBlock = static_cast<int64_t>(kBlockElements);
  float* sums = plan.sums(args);
  void* out = plan.computes() ? sums : args.out[0];
  NPUMESH_RETURN_IF_ERROR(plan.product->Run({args.in, &out, plan.room(args)}));
  if (!plan.computes()) return Status();
  const int64_t elements = plan.outputs[0].shape.elements();
  const Follows follows = plan.fusion.follows;
  alignas(64) float other[kBlockElements];
  for (int64_t first = 0; first < elements; first += kBlock) {
    const int64_t count = std::min(kBlock, elements - first);
    float* row = sums + first;
    if (follows == Follows::kFormula) {
      const void* in[] = {row};
      plan.formula(in, row, static_cast<size_t>(count), {});
    } else {
      const float* x3 = LoadRow(plan.dtype, args.in[plan.x3], first, count, other);
      const bool adds = follows == Follows::kAdd;
      for (int64_t i = 0; i < count; ++i) row[i] = adds ? row[i] + x3[i] : row[i] * x3[i];
    }
    StoreRow(plan.dtype, row, args.out[0], first, count);
  }
  return Status();
}

// ---- FullyConnection ----

// x is [m, ...], w [n, ...] or, transposed, [..., n], the rest in the order of x.
Result<Matmul> PlanConnection(const OpContext& op) {
  Check check(op);
  const TensorType &x = op.in("x"), &w = op.in("w");
  check.Supported(op.attr_int("axis") == 1 && !op.has("offset_w"),
                  "axis is {}{}, expected 1 and no offset_w", op.attr_int("axis"),
                  op.has("offset_w") ? " and offset_w is fed" : "");
  const bool transposed = op.attr_bool("transpose"), integers = x.dtype == DataType::kInt8;
  const int xr = x.shape.rank(), wr = w.shape.rank();
  Matmul matmul;
  matmul.who = op.Who();
  matmul.n = op.attr_int("num_output");
  bool fits = xr >= 2 && wr >= 2 && x.dtype == w.dtype;
  if (fits) {
    matmul.m = x.shape[0];
    matmul.k = ElementsBetween(x.shape, 1, xr);
    fits =
        w.shape[transposed ? wr - 1 : 0] == matmul.n && w.shape.elements() == matmul.n * matmul.k;
  }
  check.That(fits, "x is {} and w {}, which do not give {} outputs{}", x, w, matmul.n,
             transposed ? " with w transposed" : "");
  check.Supported(integers || kFloats.Contains(x.dtype), "products of {} are not available",
                  Name(x.dtype));
  matmul.y_dtype = integers ? DataType::kInt32 : x.dtype;
  if (integers) matmul.offset = op.attr_int("offset_x");
  matmul.x1 = {op.slot("x"), x.dtype, {}, false};
  matmul.x2 = {op.slot("w"), w.dtype, {}, !transposed};
  matmul.x2_value = op.value(op.slot("w"));
  matmul.packed = op.packed();
  matmul.tuning = op.tuning();
  matmul.threads = op.threads();
  if (SlotIfFed(op, "b") < 0) return check.Done(std::move(matmul));
  check.Type("b", integers ? TypeSet(DataType::kInt32) : TypeSet({DataType::kFloat, x.dtype}));
  check.Elements("b", {matmul.n});
  matmul.bias = {op.slot("b"), op.in("b").dtype, {}, false};
  return check.Done(std::move(matmul));
}

Status InferConnection(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Matmul matmul, PlanConnection(op));
  return SetOutput(op, 0, matmul.y_dtype, {matmul.m, matmul.n});
}

Result<std::unique_ptr<Kernel>> MakeConnection(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Matmul matmul, PlanConnection(op));
  if (op.out(0).shape.elements() == 0) {
    return MakeKernel([](const KernelArgs&) { return Status(); });
  }
  return MakeMatmul(matmul);
}

}  // namespace

Result<std::unique_ptr<Kernel>> MakeProductAndTail(const OpContext& op, const ProductSums& sums,
                                                   const std::optional<BlockProgram>& tail) {
  NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> product, MakeMatmulKernel(op, sums));
  if (!tail) return product;
  return std::unique_ptr<Kernel>(std::make_unique<TailKernel>(
      std::move(product),
      MakeBlockMachine(*tail, {.threads = op.threads(), .first_in_output = true}), op.slots()));
}

// opImplMode, enable_hf32 and inner_precise let a device compute with fewer bits; nothing does
// here.
void RegisterMatmulOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kWhite);
  const Axes matrices =
      "x1[.. m? k+ | transpose_x1], x2[.. k n? | transpose_x2], bias[.. 1? n] -> y[.. m? n?]";
  const Axes batches = "x1[.. m? k+ | adj_x1], x2[.. k n? | adj_x2], bias[.. 1? n] -> y[.. m? n?]";
  const auto add = [&](std::string_view signature, const Axes& axes, bool eight_bits = false) {
    registry.Add({.schema = Signature(signature),
                  .infer =
                      [=](OpContext& op) {
                        Check check(op);
                        const TensorType y = MatmulType(op, eight_bits, check);
                        NPUMESH_RETURN_IF_ERROR(check.status());
                        return SetOutput(op, 0, y.dtype, y.shape);
                      },
                  .make_kernel = [](const OpContext& op) { return MakeMatmulKernel(op); },
                  .weight = WeightTrait{.port = "x2"},
                  .axes = axes});
  };
  add("MatMul(x1, x2, bias?; transpose_x1=false, transpose_x2=false) -> y", matrices);
  add("MatMulV2(x1, x2, bias?, offset_w?; transpose_x1=false, transpose_x2=false, offset_x=0) -> y",
      matrices, true);
  add("MatMulV3(x1, x2, bias?, offset_w?; transpose_x1=false, transpose_x2=false, offset_x=0, "
      "opImplMode=1) -> y",
      matrices);
  add("BatchMatMul(x1, x2; adj_x1=false, adj_x2=false) -> y",
      "x1[.. m? k+ | adj_x1], x2[.. k n? | adj_x2] -> y[.. m? n?]");
  add("BatchMatMulV2(x1, x2, bias?, offset_w?; adj_x1=false, adj_x2=false, offset_x=0) -> y",
      batches, true);
  add("BatchMatMulV3(x1, x2, bias?, offset_w?; adj_x1=false, adj_x2=false, offset_x=0, "
      "enable_hf32=false) -> y",
      batches);
  registry.Add(Define<PlanFused, RunFused, PrepareFused>(
      "FusedMatMul(x1, x2, bias?, x3?; transpose_x1=false, transpose_x2=false, enable_hf32=false, "
      "fused_op_type=\"\", inner_precise=1) -> y"));
  registry.Add({.schema = Signature("FullyConnection(x, w, b?, offset_w?; num_output:int, "
                                    "transpose=false, axis=1, offset_x=0) -> y"),
                .infer = InferConnection,
                .make_kernel = MakeConnection});
}

}  // namespace npumesh
