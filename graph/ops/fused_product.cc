// FusedMatMul: a product and what follows it, rounded once; and FullyConnection. Ops reference 5.6.
#include <algorithm>

#include "graph/ops/elementwise.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/fused_families.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/matmul.h"

namespace npumesh {
namespace {

// ---- FusedMatMul ----

enum class Follows : uint8_t { kNothing, kAdd, kMultiply, kFormula };

struct FusedPlan {
  Follows follows = Follows::kNothing;
  Formula formula = Formula::kRelu;
  bool widens = false;  // the result is float32
};

Result<FusedPlan> PlanFused(const OpContext& op) {
  const std::string type = op.attr_string("fused_op_type");
  FusedPlan plan;
  plan.widens = type == "16cast32";
  if (type == "add" || type == "mul") {
    plan.follows = type == "add" ? Follows::kAdd : Follows::kMultiply;
  } else if (type == "relu" || type == "gelu_erf" || type == "gelu_tanh") {
    plan.follows = Follows::kFormula;
    plan.formula = type == "relu"       ? Formula::kRelu
                   : type == "gelu_erf" ? Formula::kGeluErf
                                        : Formula::kGeluTanh;
  } else if (!type.empty() && !plan.widens) {
    return Error(Code::kInvalidArgument,
                 "{}: fused_op_type \"{}\", expected \"\", relu, add, mul, gelu_erf, gelu_tanh or "
                 "16cast32",
                 op.Who(), type);
  }
  const bool two = plan.follows == Follows::kAdd || plan.follows == Follows::kMultiply;
  if (op.has("x3") != two) {
    return Error(Code::kInvalidArgument, "{}: \"x3\" is {} with fused_op_type \"{}\"", op.Who(),
                 two ? "missing" : "fed", type);
  }
  return plan;
}

Status InferFused(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const FusedPlan plan, PlanFused(op));
  NPUMESH_RETURN_IF_ERROR(InferMatmul(op));
  const TensorType y = op.out(0);
  if (!IsRowType(y.dtype)) {
    return Error(Code::kUnsupported, "{}: x1 is {}, expected float16, bfloat16 or float32",
                 op.Who(), op.in("x1").ToString());
  }
  if (op.has("x3") && op.in("x3") != y) {
    return Error(Code::kInvalidArgument, "{}: \"x3\" is {}, expected {} like the product", op.Who(),
                 op.in("x3").ToString(), y.ToString());
  }
  return plan.widens ? SetOutput(op, 0, DataType::kFloat, y.shape) : Status();
}

// The product in float32, and the rest on its way to the output.
class FusedKernel final : public Kernel {
 public:
  FusedKernel(const OpContext& op, const FusedPlan& plan, std::unique_ptr<Kernel> product)
      : plan_(plan),
        x3_(op.slot("x3")),
        dtype_(op.out(0).dtype),
        elements_(op.out(0).shape.elements()),
        formula_(FloatBlock(plan.formula)),
        product_(std::move(product)) {}

  // The product, then its kernel's.
  uint64_t scratch_bytes() const override { return ProductBytes() + product_->scratch_bytes(); }

  bool reads(int slot) const override { return slot == x3_ || product_->reads(slot); }

  Status Run(const KernelArgs& args) override {
    auto* sums = static_cast<float*>(args.scratch);
    void* out = sums;
    NPUMESH_RETURN_IF_ERROR(
        product_->Run({args.in, &out, static_cast<std::byte*>(args.scratch) + ProductBytes()}));
    alignas(64) float other[kBlockElements];
    for (int64_t first = 0; first < elements_; first += kBlock) {
      const int64_t count = std::min(kBlock, elements_ - first);
      float* row = sums + first;
      if (plan_.follows == Follows::kFormula) {
        const void* in[] = {row};
        formula_(in, row, static_cast<size_t>(count), {});
      } else {
        const float* x3 = LoadRow(dtype_, args.in[x3_], first, count, other);
        const bool adds = plan_.follows == Follows::kAdd;
        for (int64_t i = 0; i < count; ++i) row[i] = adds ? row[i] + x3[i] : row[i] * x3[i];
      }
      StoreRow(dtype_, row, args.out[0], first, count);
    }
    return Status();
  }

 private:
  static constexpr auto kBlock = static_cast<int64_t>(kBlockElements);

  uint64_t ProductBytes() const {
    return (static_cast<uint64_t>(elements_) * sizeof(float) + 63) / 64 * 64;
  }

  FusedPlan plan_;
  int x3_;
  DataType dtype_;
  int64_t elements_;
  BlockFn formula_;
  std::unique_ptr<Kernel> product_;
};

Result<std::unique_ptr<Kernel>> MakeFused(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const FusedPlan plan, PlanFused(op));
  if (plan.follows == Follows::kNothing) return MakeMatmulKernel(op, -1, op.out(0).dtype);
  NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> product,
                           MakeMatmulKernel(op, -1, DataType::kFloat));
  return std::unique_ptr<Kernel>(std::make_unique<FusedKernel>(op, plan, std::move(product)));
}

// ---- FullyConnection ----

Result<Matmul> PlanConnection(const OpContext& op) {
  const TensorType &x = op.in("x"), &w = op.in("w");
  if (op.attr_int("axis") != 1 || op.has("offset_w")) {
    return Error(Code::kUnsupported, "{}: axis is {}{}, expected 1 and no offset_w", op.Who(),
                 op.attr_int("axis"), op.has("offset_w") ? " and offset_w is fed" : "");
  }
  const bool transposed = op.attr_bool("transpose");
  Matmul matmul;
  matmul.who = op.Who();
  matmul.n = op.attr_int("num_output");
  const int xr = x.shape.rank(), wr = w.shape.rank();
  bool fits = xr >= 2 && wr >= 2 && x.dtype == w.dtype;
  if (fits) {
    matmul.m = x.shape[0];
    matmul.k = ElementsBetween(x.shape, 1, xr);
    // [n, ...] or [..., n], the rest in the order of x
    fits =
        w.shape[transposed ? wr - 1 : 0] == matmul.n && w.shape.elements() == matmul.n * matmul.k;
  }
  if (!fits) {
    return Error(Code::kInvalidArgument, "{}: x is {} and w {}, which do not give {} outputs{}",
                 op.Who(), x.ToString(), w.ToString(), matmul.n,
                 transposed ? " with w transposed" : "");
  }
  const bool integers = x.dtype == DataType::kInt8;
  if (!integers && !IsRowType(x.dtype)) {
    return Error(Code::kUnsupported, "{}: products of {} are not available", op.Who(),
                 Name(x.dtype));
  }
  matmul.y_dtype = integers ? DataType::kInt32 : x.dtype;
  if (integers) matmul.offset = op.attr_int("offset_x");
  matmul.x1 = {op.slot("x"), x.dtype, {}, false};
  matmul.x2 = {op.slot("w"), w.dtype, {}, !transposed};
  matmul.x2_value = op.value(op.slot("w"));
  matmul.packed = op.packed();
  matmul.threads = op.threads();
  if (!op.has("b")) return matmul;
  const TensorType& b = op.in("b");
  const bool typed =
      integers ? b.dtype == DataType::kInt32 : b.dtype == DataType::kFloat || b.dtype == x.dtype;
  if (!typed || b.shape.elements() != matmul.n) {
    return Error(Code::kInvalidArgument, "{}: \"b\" is {}, expected {} elements of {}", op.Who(),
                 b.ToString(), matmul.n, Name(matmul.y_dtype));
  }
  matmul.bias = {op.slot("b"), b.dtype, {}, false};
  return matmul;
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
  return matmul.y_dtype == DataType::kInt32 ? MakeIntegerMatmul(matmul) : MakeFloatMatmul(matmul);
}

}  // namespace

void RegisterFusedProductOps(OpRegistry& registry) {
  const AttrValue no = AttrValue::Bool(false);
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  // enable_hf32 and inner_precise let a device compute with fewer bits; nothing does here.
  registry.Add({.schema = {"FusedMatMul",
                           {{"x1"}, {"x2"}, optional("bias"), optional("x3")},
                           {{"y"}},
                           {{"transpose_x1", no},
                            {"transpose_x2", no},
                            {"enable_hf32", no},
                            {"fused_op_type", AttrValue::String("")},
                            {"inner_precise", AttrValue::Int(1)}}},
                .infer = InferFused,
                .make_kernel = MakeFused});
  registry.Add({.schema = {"FullyConnection",
                           {{"x"}, {"w"}, optional("b"), optional("offset_w")},
                           {{"y"}},
                           {{"num_output", Required::kInt},
                            {"transpose", no},
                            {"axis", AttrValue::Int(1)},
                            {"offset_x", AttrValue::Int(0)}}},
                .infer = InferConnection,
                .make_kernel = MakeConnection});
}

}  // namespace npumesh
