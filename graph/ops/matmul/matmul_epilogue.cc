// FusedMatMul: a product and what follows it, rounded once; and FullyConnection.
#include <algorithm>
#include <memory>
#include <string>

#include "graph/ops/matmul/family.h"
#include "graph/ops/matmul/matmul_ops.h"
#include "graph/ops/toolbox/formula/formula.h"
#include "graph/ops/toolbox/product/matmul.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

// ---- FusedMatMul ----

enum class Follows : uint8_t { kNothing, kCast, kAdd, kMultiply, kFormula };

struct Fusion {
  std::string_view name;  // fused_op_type
  Follows follows = Follows::kNothing;
  Formula formula = Formula::kRelu;
};
constexpr Fusion kFusions[] = {{"", Follows::kNothing},
                               {"16cast32", Follows::kCast},
                               {"add", Follows::kAdd},
                               {"mul", Follows::kMultiply},
                               {"relu", Follows::kFormula, Formula::kRelu},
                               {"gelu_erf", Follows::kFormula, Formula::kGeluErf},
                               {"gelu_tanh", Follows::kFormula, Formula::kGeluTanh}};

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
  plan.dtype = plan.fusion.follows == Follows::kCast ? DataType::kFloat : y.dtype;
  plan.outputs = {{plan.dtype, y.shape}};
  return plan;
}

Status PrepareFused(const OpContext& op, FusedPlan* plan) {
  const bool computes = plan->computes();
  NPUMESH_ASSIGN_OR_RETURN(plan->product,
                           MakeMatmulKernel(op, -1, computes ? DataType::kFloat : plan->dtype));
  plan->choice = plan->product->choice();
  if (computes) plan->sums = plan->scratch.Floats(op.out(0).shape.elements());
  plan->room = plan->scratch.Take<std::byte>(static_cast<int64_t>(plan->product->scratch_bytes()));
  for (int slot = 0; slot < op.slots(); ++slot) {
    if (slot != plan->x3 && !plan->product->reads(slot)) plan->taken.push_back(slot);
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
  const BlockFn formula = FloatBlock(plan.fusion.formula);
  alignas(64) float other[kBlockElements];
  for (int64_t first = 0; first < elements; first += kBlock) {
    const int64_t count = std::min(kBlock, elements - first);
    float* row = sums + first;
    if (follows == Follows::kFormula) {
      const void* in[] = {row};
      formula(in, row, static_cast<size_t>(count), {});
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

// enable_hf32 and inner_precise let a device compute with fewer bits; nothing does here.
void RegisterFusedProductOps(OpRegistry& registry) {
  registry.Add(Define<PlanFused, RunFused, PrepareFused>(
      "FusedMatMul(x1, x2, bias?, x3?; transpose_x1=false, transpose_x2=false, enable_hf32=false, "
      "fused_op_type=\"\", inner_precise=1) -> y"));
  registry.Add({.schema = Signature("FullyConnection(x, w, b?, offset_w?; num_output:int, "
                                    "transpose=false, axis=1, offset_x=0) -> y"),
                .infer = InferConnection,
                .make_kernel = MakeConnection});
}

}  // namespace npumesh
