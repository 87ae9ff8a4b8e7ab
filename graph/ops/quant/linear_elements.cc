// QLinearAdd and QLinearMul, of bytes that stand for scale * (byte - zero); ByteTable, of whatever
// hangs on one byte.
#include "graph/ops/core/op_registry.h"
#include "graph/ops/quant/byte_elements.h"
#include "graph/ops/toolbox/product/linear_bytes.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

struct LinearPlan : Planned {
  DataType dtype = DataType::kUndefined;
  int64_t count = 0;
  int parts = 1;
};

LinearPlan PlanLinear(const OpContext& op, Check& check) {
  LinearPlan plan;
  check.Type("x1", kLinearBytes);
  check.SameTensor("x2", "x1");
  for (const std::string_view port : {"x1_zero", "x2_zero", "y_zero"}) {
    check.SameType(port, "x1");
    check.Elements(port, {1});
  }
  for (const std::string_view port : {"x1_scale", "x2_scale", "y_scale"}) {
    check.Type(port, DataType::kFloat);
    check.Elements(port, {1});
  }
  if (!check.ok()) return plan;
  plan.dtype = op.in("x1").dtype;
  plan.count = op.in("x1").shape.elements();
  plan.parts = WorthThreads(kElementWork * static_cast<double>(plan.count), op.threads());
  plan.outputs = {op.in("x1")};
  return plan;
}

// Scale and zero are fed to `slot` and the one after it.
ByteScale ScaleAt(DataType dtype, const KernelArgs& args, int slot) {
  return {dtype, *static_cast<const float*>(args.in[slot]), ByteAt(dtype, args.in[slot + 1], 0)};
}

template <bool kProduct>
Status RunLinear(const LinearPlan& plan, const KernelArgs& args) {
  const ByteCombination by = {ScaleAt(plan.dtype, args, 1), ScaleAt(plan.dtype, args, 4),
                              ScaleAt(plan.dtype, args, 6), kProduct};
  const auto *x1 = static_cast<const std::byte*>(args.in[0]),
             *x2 = static_cast<const std::byte*>(args.in[3]);
  auto* const y = static_cast<std::byte*>(args.out[0]);
  RunRanges(plan.parts, plan.count, 64, [&](int, int64_t begin, int64_t end) {
    CombineBytes(by, x1 + begin, x2 + begin, end - begin, y + begin);
  });
  return Status();
}

LinearPlan PlanByteTable(const OpContext& op, Check& check) {
  LinearPlan plan;
  check.Type("x", kLinearBytes);
  check.TypeAndShape("table", kLinearBytes, {256});
  if (!check.ok()) return plan;
  plan.count = op.in("x").shape.elements();
  plan.parts = WorthThreads(static_cast<double>(plan.count), op.threads());
  plan.outputs = {{op.in("table").dtype, op.in("x").shape}};
  return plan;
}

Status RunByteTable(const LinearPlan& plan, const KernelArgs& args) {
  const auto *x = static_cast<const uint8_t*>(args.in[0]),
             *table = static_cast<const uint8_t*>(args.in[1]);
  auto* const y = static_cast<uint8_t*>(args.out[0]);
  RunRanges(plan.parts, plan.count, 64, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = table[x[i]];
  });
  return Status();
}

}  // namespace

void RegisterLinearElementsOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  const Axes alike = "x1[..], x2[..] -> y[..]";
  registry.Add(Define<PlanLinear, RunLinear<false>>(
      "QLinearAdd(x1, x1_scale, x1_zero, x2, x2_scale, x2_zero, y_scale, y_zero) -> y",
      {.axes = alike}));
  registry.Add(Define<PlanLinear, RunLinear<true>>(
      "QLinearMul(x1, x1_scale, x1_zero, x2, x2_scale, x2_zero, y_scale, y_zero) -> y",
      {.axes = alike}));
  registry.Add(
      Define<PlanByteTable, RunByteTable>("ByteTable(x, table) -> y", {.axes = "x[..] -> y[..]"}));
}

}  // namespace npumesh
