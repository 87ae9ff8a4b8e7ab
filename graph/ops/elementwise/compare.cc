// Comparison, logic and selection.
#include "graph/ops/core/check.h"
#include "graph/ops/core/loop_program.h"
#include "graph/ops/core/signature.h"
#include "graph/ops/elementwise/family.h"
#include "graph/ops/toolbox/copy/broadcast.h"
#include "graph/ops/toolbox/formula/formula.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

// Element i of the operand in slot kThen where slot kMask is true, else of the one in slot kElse.
// Moves bits: a NaN that is not selected leaves no trace.
template <typename Element, int kMask, int kThen, int kElse>
void Select(const void* const* in, void* out, size_t count, const FormulaParams& /*params*/) {
  const uint8_t* mask = static_cast<const uint8_t*>(in[kMask]);
  const Element* chosen = static_cast<const Element*>(in[kThen]);
  const Element* other = static_cast<const Element*>(in[kElse]);
  Element* y = static_cast<Element*>(out);
  for (size_t i = 0; i < count; ++i) y[i] = mask[i] != 0 ? chosen[i] : other[i];
}

// Null for elements that are not 1, 2, 4 or 8 bytes wide.
template <int kMask, int kThen, int kElse>
BlockFn SelectOf(DataType dtype) {
  switch (BitsOf(dtype)) {
    case 8:
      return Select<uint8_t, kMask, kThen, kElse>;
    case 16:
      return Select<uint16_t, kMask, kThen, kElse>;
    case 32:
      return Select<uint32_t, kMask, kThen, kElse>;
    case 64:
      return Select<uint64_t, kMask, kThen, kElse>;
    default:
      return nullptr;
  }
}

// ---- SelectV2: condition ? then : else ----

Status InferSelect(OpContext& context) {
  Check check(context);
  check.Type("condition", DataType::kBool);
  const TensorType branches[] = {context.in("then"), context.in("else")};
  const DataType dtype = Promote(branches);
  check.Supported(SelectOf<0, 1, 2>(dtype) != nullptr, "cannot select between then {} and else {}",
                  branches[0], branches[1]);
  if (!check.ok()) return check.status();
  NPUMESH_ASSIGN_OR_RETURN(Shape shape, BroadcastSlots(context, 3));
  context.set_out(0, {dtype, std::move(shape)});
  return Status();
}

// ---- MaskedFill: x, with one value where mask is true ----

Status InferMaskedFill(OpContext& context) {
  const TensorType &x = context.in("x"), &value = context.in("value");
  Check check(context);
  check.Type("mask", DataType::kBool);
  check.That(value.shape.elements() == 1, "input \"value\" is {}; expected one element", value);
  const bool castable = value.dtype == x.dtype || FindConvert(value.dtype, x.dtype) != nullptr;
  check.Supported(SelectOf<1, 2, 0>(x.dtype) != nullptr && castable,
                  "cannot fill x {} with value {}", x, value);
  if (!check.ok()) return check.status();
  NPUMESH_ASSIGN_OR_RETURN(Shape shape, BroadcastSlots(context, 2));
  context.set_out(0, {x.dtype, std::move(shape)});
  return Status();
}

// The operands in slot order: the one at kMask is bool, the others have the type of the result.
template <int kMask, int kThen, int kElse>
Result<std::unique_ptr<Kernel>> MakeSelect(const OpContext& context) {
  BlockPlan plan;
  plan.result = context.out(0).dtype;
  plan.block = SelectOf<kMask, kThen, kElse>(plan.result);
  plan.operands = {plan.result, plan.result, plan.result};
  plan.operands[kMask] = DataType::kBool;
  return MakeBlockKernel(context, std::move(plan));
}

// The same as a loop: the value of MaskedFill may have another type than x. Bools are bytes that
// would lose all but whether they are 0.
template <int kMask, int kThen, int kElse>
void LoopSelect(const OpContext& op, LoopBuilder& loop) {
  const DataType dtype = op.out(0).dtype;
  if (dtype == DataType::kBool) return;
  const auto branch = [&](int slot) { return loop.To(dtype, loop.In(slot)); };
  const LoopValue mask = loop.As(LoopType::kBool, loop.In(kMask));
  loop.Give(loop.Emit(LoopOp::kSelect, {mask, branch(kThen), branch(kElse)}));
}

}  // namespace

void RegisterCompareOps(OpRegistry& registry) {
  const ElementwiseSpec specs[] = {
      {"Equal(x1, x2) -> y", Formula::kEqual, ResultRule::kCompare},
      {"NotEqual(x1, x2) -> y", Formula::kNotEqual, ResultRule::kCompare},
      {"Less(x1, x2) -> y", Formula::kLess, ResultRule::kCompare},
      {"LessEqual(x1, x2) -> y", Formula::kLessEqual, ResultRule::kCompare},
      {"Greater(x1, x2) -> y", Formula::kGreater, ResultRule::kCompare},
      {"GreaterEqual(x1, x2) -> y", Formula::kGreaterEqual, ResultRule::kCompare},
      {"LogicalAnd(x1, x2) -> y", Formula::kAnd, ResultRule::kLogical},
      {"LogicalOr(x1, x2) -> y", Formula::kOr, ResultRule::kLogical},
      {"LogicalNot(x) -> y", Formula::kNot, ResultRule::kLogical},
  };
  RegisterElementwise(registry, specs);

  registry.Add({.schema = Signature("SelectV2(condition, then, else) -> result"),
                .infer = InferSelect,
                .make_kernel = MakeSelect<0, 1, 2>,
                .elementwise = true,
                .loop = LoopSelect<0, 1, 2>});
  registry.Add({.schema = Signature("MaskedFill(x, mask, value) -> y"),
                .infer = InferMaskedFill,
                .make_kernel = MakeSelect<1, 2, 0>,
                .elementwise = true,
                .loop = LoopSelect<1, 2, 0>});
}

}  // namespace npumesh
