// Activations of one operand, and SwiGlu.
#include <algorithm>

#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/core/loop_program.h"
#include "graph/ops/elementwise/family.h"
#include "graph/ops/elementwise/gated_activations.h"
#include "graph/ops/toolbox/formula/formula.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

Result<Formula> ChooseGelu(const OpContext& context) {
  const std::string approximate = context.attr_string("approximate");
  if (approximate == "none") return Formula::kGeluErf;
  if (approximate == "tanh") return Formula::kGeluTanh;
  return Error(Code::kInvalidArgument,
               "{}: attribute \"approximate\" is \"{}\"; expected \"none\" or \"tanh\"",
               context.Who(), approximate);
}

struct SwiGluPlan : Planned {
  Halves halves;
  size_t width = 0;  // bytes of an element
  ConvertFn widen = nullptr, narrow = nullptr;
  BlockFn formula = nullptr;
};

Result<SwiGluPlan> PlanSwiGlu(const OpContext& op) {
  Check check(op);
  const DataType dtype = op.in("x").dtype;
  check.Keep(ExpectType(op, "x", kFloats));
  SwiGluPlan plan;
  plan.halves = HalvesOf(op, check);
  plan.width = static_cast<size_t>(BitsOf(dtype)) / 8;
  plan.widen = FindConvert(dtype, DataType::kFloat);
  plan.narrow = FindConvert(DataType::kFloat, dtype);
  plan.formula = FloatBlock(Formula::kSwiGlu);
  plan.outputs = {{dtype, plan.halves.half}};
  return check.Done(std::move(plan));
}

void RunBlock(const SwiGluPlan& plan, const std::byte* a, const std::byte* b, std::byte* y,
              size_t count) {
  alignas(64) float gate[kBlockElements];
  alignas(64) float value[kBlockElements];
  plan.widen(a, gate, count);
  plan.widen(b, value, count);
  const void* in[] = {gate, value};
  plan.formula(in, gate, count, {});
  plan.narrow(gate, y, count);
}

Status RunSwiGlu(const SwiGluPlan& plan, const KernelArgs& args) {
  const auto* x = static_cast<const std::byte*>(args.in[0]);
  auto* y = static_cast<std::byte*>(args.out[0]);
  const auto run = static_cast<size_t>(plan.halves.run);
  for (int64_t outer = 0; outer < plan.halves.outer; ++outer) {
    for (size_t begin = 0; begin < run; begin += kBlockElements) {
      const size_t count = std::min(kBlockElements, run - begin);
      RunBlock(plan, x + begin * plan.width, x + (run + begin) * plan.width, y + begin * plan.width,
               count);
    }
    x += 2 * run * plan.width;
    y += run * plan.width;
  }
  return Status();
}

void LoopSwiGlu(const OpContext& op, LoopBuilder& loop) {
  const Shape& x = op.in("x").shape;
  if (x.rank() == 0 || x.dims().back() != 2 * loop.columns() ||
      x.rank() != op.out(0).shape.rank() || op.out(0).shape.dims().back() != loop.columns()) {
    return;
  }
  const LoopValue gate = loop.ColumnsOf(op.slot("x"), 0, x.dims().back());
  const LoopValue value = loop.ColumnsOf(op.slot("x"), loop.columns(), x.dims().back());
  loop.Give(loop.Emit(LoopOp::kSwiGlu, {gate, value}));
}

}  // namespace

void RegisterActivationOps(OpRegistry& registry) {
  const ElementwiseSpec specs[] = {
      {"Relu(x) -> y", Formula::kRelu},
      {"Sigmoid(x) -> y", Formula::kSigmoid},
      {"Tanh(x) -> y", Formula::kTanh},
      {"Gelu(x) -> y", Formula::kGeluTanh},
      {"GeluV2(x; approximate=\"none\") -> y", Formula::kGeluErf, ResultRule::kSame, ChooseGelu},
      {"FastGelu(x) -> y", Formula::kFastGelu},
      {"Swish(x; scale=1.0) -> y", Formula::kSwish},
  };
  RegisterElementwise(registry, specs);
  registry.Add(Define<PlanSwiGlu, RunSwiGlu>("SwiGlu(x; dim=-1) -> y", {.loop = LoopSwiGlu}));
}

}  // namespace npumesh
