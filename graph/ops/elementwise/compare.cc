// Comparison, logic and selection.
#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/core/loop_program.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/copy/broadcast.h"
#include "graph/ops/toolbox/machine/block_machine.h"
#include "graph/ops/toolbox/machine/elementwise.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

// Element i of the operand in slot kThen where slot kMask is true, else of the one in slot kElse.
// Moves bits: a NaN that is not selected leaves no trace.
template <typename Element, int kMask, int kThen, int kElse>
void Select(const void* const* in, void* out, size_t count, const LaneParams& /*params*/) {
  const uint8_t* mask = static_cast<const uint8_t*>(in[kMask]);
  const Element* chosen = static_cast<const Element*>(in[kThen]);
  const Element* other = static_cast<const Element*>(in[kElse]);
  Element* y = static_cast<Element*>(out);
  for (size_t i = 0; i < count; ++i) y[i] = mask[i] != 0 ? chosen[i] : other[i];
}

// Null for elements that are not 1, 2, 4 or 8 bytes wide.
template <int kMask, int kThen, int kElse>
LaneFn SelectOf(DataType dtype) {
  if (BitsOf(dtype) < 8 || BitsOf(dtype) > 64) return nullptr;
  return ByWidth(WidthOf(dtype), [](auto element) -> LaneFn {
    return Select<decltype(element), kMask, kThen, kElse>;
  });
}

// ---- SelectV2: condition ? then : else ----

Planned PlanSelectV2(const OpContext& op, Check& check) {
  check.Type("condition", DataType::kBool);
  const TensorType branches[] = {op.in("then"), op.in("else")};
  const DataType dtype = Promote(branches);
  check.Supported(SelectOf<0, 1, 2>(dtype) != nullptr, "cannot select between then {} and else {}",
                  branches[0], branches[1]);
  Planned plan;
  plan.outputs = {{dtype, check.Take(BroadcastSlots(op, 3))}};
  return plan;
}

// ---- MaskedFill: x, with one value where mask is true ----

Planned PlanMaskedFill(const OpContext& op, Check& check) {
  const TensorType &x = op.in("x"), &value = op.in("value");
  check.Type("mask", DataType::kBool);
  check.That(value.shape.elements() == 1, "input \"value\" is {}; expected one element", value);
  const bool castable = value.dtype == x.dtype || FindConvert(value.dtype, x.dtype) != nullptr;
  check.Supported(SelectOf<1, 2, 0>(x.dtype) != nullptr && castable,
                  "cannot fill x {} with value {}", x, value);
  Planned plan;
  plan.outputs = {{x.dtype, check.Take(BroadcastSlots(op, 2))}};
  return plan;
}

// The operands in slot order: the one at kMask is bool, the others have the type of the result.
template <int kMask, int kThen, int kElse>
Result<std::unique_ptr<Kernel>> MakeSelect(const OpContext& context) {
  const TensorType& out = context.out(0);
  BlockLine line{.lanes = SelectOf<kMask, kThen, kElse>(out.dtype),
                 .from = {0, 1, 2},
                 .reads = {out.dtype, out.dtype, out.dtype},
                 .writes = out.dtype,
                 .gives = out.dtype};
  line.reads[kMask] = DataType::kBool;
  const BlockProgram program = {{line}, {context.in(0), context.in(1), context.in(2)}, out};
  return MakeBlockMachine(program, {.threads = context.threads(), .who = context.Who()});
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

template <auto PlanFn, int kMask, int kThen, int kElse>
Operator DefineSelect(std::string_view signature) {
  return {.schema = Signature(signature),
          .infer = define::Infer<PlanFn>,
          .make_kernel = MakeSelect<kMask, kThen, kElse>,
          .loop = LoopSelect<kMask, kThen, kElse>,
          .axes = "[..]"};
}

}  // namespace

void RegisterCompareOps(OpRegistry& registry) {
  const ElementwiseSpec specs[] = {
      {"Equal(x1, x2) -> y", LoopOp::kEqual, ResultRule::kCompare},
      {"NotEqual(x1, x2) -> y", LoopOp::kNotEqual, ResultRule::kCompare},
      {"Less(x1, x2) -> y", LoopOp::kLess, ResultRule::kCompare},
      {"LessEqual(x1, x2) -> y", LoopOp::kLessEqual, ResultRule::kCompare},
      {"Greater(x1, x2) -> y", LoopOp::kGreater, ResultRule::kCompare},
      {"GreaterEqual(x1, x2) -> y", LoopOp::kGreaterEqual, ResultRule::kCompare},
      {"LogicalAnd(x1, x2) -> y", LoopOp::kAnd, ResultRule::kLogical},
      {"LogicalOr(x1, x2) -> y", LoopOp::kOr, ResultRule::kLogical},
      {"LogicalNot(x) -> y", LoopOp::kNot, ResultRule::kLogical},
  };
  RegisterElementwise(registry, specs);

  registry.Add(DefineSelect<PlanSelectV2, 0, 1, 2>("SelectV2(condition, then, else) -> result"));
  registry.Add(DefineSelect<PlanMaskedFill, 1, 2, 0>("MaskedFill(x, mask, value) -> y"));
}

}  // namespace npumesh
