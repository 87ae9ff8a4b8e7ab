#include "graph/ops/fused_matmul.h"

#include "graph/ops/blocked_product.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/matmul.h"
#include "runtime/base/parse.h"

namespace npumesh {
namespace fused {

Result<Local> PlanLocal(const OpContext& op, const LocalForm& form) {
  const TensorType& x1 = op.in("x1");
  const TensorType& x2 = op.in("x2");
  Local plan;
  plan.transposed1 = op.attr_bool(form.transposed1);
  plan.transposed2 = op.attr_bool(form.transposed2);
  plan.dtype = x1.dtype;
  const int rank = x1.shape.rank();
  bool fits = rank >= 2 && rank <= 3 && x2.shape.rank() == 2 && !(plan.transposed1 && rank == 3);
  if (fits) {
    plan.front.assign(x1.shape.dims().begin(), x1.shape.dims().end() - 1);
    plan.m = ElementsBetween(x1.shape, 0, rank - 1);
    plan.k = x1.shape[rank - 1];
    if (plan.transposed1) std::swap(plan.m, plan.k);
    if (plan.transposed1) plan.front = {plan.m};
    plan.k *= form.joined;
    plan.n = x2.shape[plan.transposed2 ? 0 : 1];
    fits = plan.k == x2.shape[plan.transposed2 ? 1 : 0];
  }
  if (!fits) {
    return Error(Code::kInvalidArgument, "{}: x1 {}{}{} and x2 {}{} cannot be multiplied", op.Who(),
                 x1.ToString(), plan.transposed1 ? " transposed" : "",
                 form.joined == 1 ? "" : fmt::format(" of {} ranks", form.joined), x2.ToString(),
                 plan.transposed2 ? " transposed" : "");
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.bias, Factors::Of(op, "bias"));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.bias, "bias", plan.n));
  return plan;
}

Status ExpectFloats(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectSameDtype(op, op.slot("x1"), op.slot("x2")));
  if (!IsRowType(op.in("x1").dtype)) {
    return Error(Code::kUnsupported, "{}: x1 is {}, expected float16, bfloat16 or float32",
                 op.Who(), Name(op.in("x1").dtype));
  }
  if (!op.has("bias") || IsRowType(op.in("bias").dtype)) return Status();
  return Error(Code::kUnsupported, "{}: bias is {}, expected a float type", op.Who(),
               Name(op.in("bias").dtype));
}

Result<std::unique_ptr<Kernel>> MakeProduct(const OpContext& op, const Local& plan, int64_t m,
                                            DataType y_dtype) {
  Matmul matmul;
  matmul.who = op.Who();
  matmul.x1 = {op.slot("x1"), plan.dtype, {}, plan.transposed1};
  matmul.x2 = {op.slot("x2"), op.in("x2").dtype, {}, plan.transposed2};
  if (plan.bias.given()) matmul.bias = {plan.bias.slot(), plan.bias.dtype(), {}, false};
  matmul.y_dtype = y_dtype;
  matmul.m = m;
  matmul.n = plan.n;
  matmul.k = plan.k;
  matmul.x2_value = op.value(op.slot("x2"));
  matmul.packed = op.packed();
  matmul.threads = op.threads();
  return MakeFloatMatmul(matmul);
}

Status ExpectSum(const OpContext& op) {
  if (op.attr_string("reduce_op") == "sum") return Status();
  return Error(Code::kUnsupported, "{}: reduce_op \"{}\", expected sum", op.Who(),
               op.attr_string("reduce_op"));
}

Status RefuseInputs(const OpContext& op, std::initializer_list<std::string_view> ports) {
  for (const std::string_view port : ports) {
    if (SlotIfFed(op, port) < 0) continue;
    return Error(Code::kUnsupported, "{}: the input \"{}\" is not supported", op.Who(), port);
  }
  return Status();
}

Status RefuseModes(const OpContext& op, std::initializer_list<std::string_view> attributes) {
  for (const std::string_view name : attributes) {
    if (op.attr_int(name) == 0) continue;
    return Error(Code::kUnsupported, "{}: {} {} is not supported, expected 0", op.Who(), name,
                 op.attr_int(name));
  }
  return Status();
}

namespace {

// An int, or a string of digits.
Result<int64_t> SizeIn(const OpContext& op, std::string_view attribute) {
  const AttrValue* const value = op.node().FindAttr(attribute);
  const auto* text = value != nullptr ? value->get<std::string>() : nullptr;
  if (text == nullptr) return op.attr_int(attribute);
  return ParseInt(*text, 0, INT32_MAX, fmt::format("{}: {}", op.Who(), attribute));
}

}  // namespace

Result<Ring> RingOf(const OpContext& op, std::string_view size) {
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members, hcom::MembersOf(op));
  const Ring ring{static_cast<int64_t>(members.world_ranks.size()), members.rank};
  NPUMESH_ASSIGN_OR_RETURN(const int64_t told, SizeIn(op, size));
  if (told == 0 || told == ring.ranks) return ring;
  return Error(Code::kInvalidArgument, "{}: {} {}, but group \"{}\" has {} ranks", op.Who(), size,
               told, op.attr_string("group"), ring.ranks);
}

}  // namespace fused

void RegisterFusedMatmulOps(OpRegistry& registry) {
  fused::RegisterAllReduceMatmul(registry);
  fused::RegisterRowMatmuls(registry);
  fused::RegisterAllToAllMatmuls(registry);
  fused::RegisterExpertMatmuls(registry);
  fused::RegisterQuantReductions(registry);
}

}  // namespace npumesh
