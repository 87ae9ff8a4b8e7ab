// FusedMatMul: a product and what follows it, rounded once; and FullyConnection.
#include <algorithm>

#include "graph/ops/core/infer_checks.h"
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

Result<Fusion> FusionOf(const OpContext& op) {
  Check check(op);
  check.OneOf("fused_op_type", {"", "16cast32", "add", "mul", "relu", "gelu_erf", "gelu_tanh"});
  if (!check.ok()) return check.status();
  const std::string type = op.attr_string("fused_op_type");
  const Fusion fusion = *std::find_if(std::begin(kFusions), std::end(kFusions),
                                      [&](const Fusion& row) { return row.name == type; });
  const bool two = fusion.follows == Follows::kAdd || fusion.follows == Follows::kMultiply;
  check.That(op.has("x3") == two, "\"x3\" is {} with fused_op_type \"{}\"", two ? "missing" : "fed",
             type);
  return check.Done(fusion);
}

Status InferFused(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Fusion fusion, FusionOf(op));
  NPUMESH_RETURN_IF_ERROR(InferMatmul(op));
  const TensorType y = op.out(0);
  Check check(op);
  check.Supported(kFloats.Contains(y.dtype), "x1 is {}, expected {}", op.in("x1"), kFloats);
  check.That(!op.has("x3") || op.in("x3") == y, "\"x3\" is {}, expected {} like the product",
             op.in("x3"), y);
  NPUMESH_RETURN_IF_ERROR(check.status());
  return fusion.follows == Follows::kCast ? SetOutput(op, 0, DataType::kFloat, y.shape) : Status();
}

// The product in float32, and the rest on its way to the output. A class, because the kernel of the
// product is part of it.
class FusedKernel final : public Kernel {
 public:
  FusedKernel(const OpContext& op, const Fusion& fusion, std::unique_ptr<Kernel> product)
      : fusion_(fusion),
        x3_(op.slot("x3")),
        dtype_(op.out(0).dtype),
        elements_(op.out(0).shape.elements()),
        formula_(FloatBlock(fusion.formula)),
        product_(std::move(product)),
        sums_(scratch_.Floats(elements_)),
        room_(scratch_.Take<std::byte>(static_cast<int64_t>(product_->scratch_bytes()))) {
    set_choice(product_->choice());
  }

  uint64_t scratch_bytes() const override { return scratch_.bytes(); }
  bool reads(int slot) const override { return slot == x3_ || product_->reads(slot); }

  Status Run(const KernelArgs& args) override {
    float* sums = sums_(args);
    void* out = sums;
    NPUMESH_RETURN_IF_ERROR(product_->Run({args.in, &out, room_(args)}));
    alignas(64) float other[kBlockElements];
    for (int64_t first = 0; first < elements_; first += kBlock) {
      const int64_t count = std::min(kBlock, elements_ - first);
      float* row = sums + first;
      if (fusion_.follows == Follows::kFormula) {
        const void* in[] = {row};
        formula_(in, row, static_cast<size_t>(count), {});
      } else {
        const float* x3 = LoadRow(dtype_, args.in[x3_], first, count, other);
        const bool adds = fusion_.follows == Follows::kAdd;
        for (int64_t i = 0; i < count; ++i) row[i] = adds ? row[i] + x3[i] : row[i] * x3[i];
      }
      StoreRow(dtype_, row, args.out[0], first, count);
    }
    return Status();
  }

 private:
  static constexpr auto kBlock = static_cast<int64_t>(kBlockElements);

  Fusion fusion_;
  int x3_;
  DataType dtype_;
  int64_t elements_;
  BlockFn formula_;
  std::unique_ptr<Kernel> product_;
  Scratch scratch_;
  Workspace<float> sums_;
  Workspace<std::byte> room_;  // of the product's kernel
};

Result<std::unique_ptr<Kernel>> MakeFused(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Fusion fusion, FusionOf(op));
  if (fusion.follows == Follows::kNothing || fusion.follows == Follows::kCast) {
    return MakeMatmulKernel(op, -1, op.out(0).dtype);
  }
  NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> product,
                           MakeMatmulKernel(op, -1, DataType::kFloat));
  return std::unique_ptr<Kernel>(std::make_unique<FusedKernel>(op, fusion, std::move(product)));
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
  registry.Add({.schema = Signature("FusedMatMul(x1, x2, bias?, x3?; transpose_x1=false, "
                                    "transpose_x2=false, enable_hf32=false, fused_op_type=\"\", "
                                    "inner_precise=1) -> y"),
                .infer = InferFused,
                .make_kernel = MakeFused});
  registry.Add({.schema = Signature("FullyConnection(x, w, b?, offset_w?; num_output:int, "
                                    "transpose=false, axis=1, offset_x=0) -> y"),
                .infer = InferConnection,
                .make_kernel = MakeConnection});
}

}  // namespace npumesh
