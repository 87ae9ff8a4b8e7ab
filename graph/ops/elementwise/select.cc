// Select and MaskedScatter: elements chosen by a mask.
#include <cstring>
#include <optional>

#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/copy/broadcast.h"
#include "graph/ops/toolbox/values/copy_element.h"

namespace npumesh {
namespace {

// ---- Select: no broadcasting between x1 and x2; a mask of lower rank chooses whole blocks ----

struct SelectPlan : Planned {
  size_t blocks = 0;
  size_t block = 0;  // bytes
};

SelectPlan PlanSelect(const OpContext& op, Check& check) {
  const TensorType &x1 = op.in("x1"), &x2 = op.in("x2");
  const Shape &x = x1.shape, &condition = op.in("condition").shape;
  check.Type("condition", DataType::kBool);
  bool fits = x1 == x2 && condition.rank() <= x.rank();
  for (int d = 0; fits && d < condition.rank(); ++d) fits = condition[d] == x[d];
  check.That(fits, "x1 {} and x2 {} must be alike and begin with the dimensions of condition {}",
             x1, x2, condition);
  const size_t element = check.Take(ElementBytes(op, x1.dtype));
  if (!check.ok()) return {};
  SelectPlan plan;
  plan.blocks = static_cast<size_t>(condition.elements());
  plan.block = element * static_cast<size_t>(ElementsBetween(x, condition.rank(), x.rank()));
  plan.outputs = {x1};
  return plan;
}

Status RunSelect(const SelectPlan& plan, const KernelArgs& args) {
  const auto* mask = static_cast<const uint8_t*>(args.in[0]);
  auto* y = static_cast<std::byte*>(args.out[0]);
  for (size_t i = 0; i < plan.blocks && plan.block > 0; ++i) {
    const auto* from = static_cast<const std::byte*>(args.in[mask[i] != 0 ? 1 : 2]);
    std::memcpy(y + i * plan.block, from + i * plan.block, plan.block);
  }
  return Status();
}

// ---- MaskedScatter ----

struct MaskedPlan : Planned {
  size_t element = 0, count = 0;
  size_t given = 0;  // updates
  std::optional<BroadcastPlan> broadcast;
  Workspace<uint8_t> mask;
};

MaskedPlan PlanMasked(const OpContext& op, Check& check) {
  const TensorType& x = op.in("x");
  const Shape& mask = op.in("mask").shape;
  check.Type("mask", DataType::kBool);
  check.SameType("updates", "x");
  const Result<Shape> wider = Broadcast(x.shape, mask);
  check.That(wider.ok() && *wider == x.shape && x.shape.rank() <= BroadcastPlan::kMaxRank,
             "mask {} does not broadcast to x {}", mask, x);
  MaskedPlan plan;
  plan.element = check.Take(ElementBytes(op, x.dtype));
  if (!check.ok()) return plan;
  plan.count = static_cast<size_t>(x.shape.elements());
  plan.given = static_cast<size_t>(op.in("updates").shape.elements());
  plan.broadcast.emplace(mask, x.shape, 1);
  plan.mask = plan.scratch.Take<uint8_t>(x.shape.elements());
  plan.outputs = {x};
  return plan;
}

Status RunMasked(const MaskedPlan& plan, const KernelArgs& args) {
  if (plan.count == 0) return Status();
  uint8_t* mask = plan.mask(args);
  plan.broadcast->Gather(args.in[1], 0, plan.count, mask);
  const auto* from = static_cast<const std::byte*>(args.in[0]);
  const auto* updates = static_cast<const std::byte*>(args.in[2]);
  auto* y = static_cast<std::byte*>(args.out[0]);
  size_t used = 0;
  for (size_t i = 0; i < plan.count; ++i) {
    const bool masked = mask[i] != 0;
    if (masked && used == plan.given) {
      return Error(Code::kInvalidArgument,
                   "{}: \"updates\" has {} elements, the mask asks for more", plan.who, plan.given);
    }
    const std::byte* source = masked ? updates + used++ * plan.element : from + i * plan.element;
    CopyElement(source, plan.element, y + i * plan.element);
  }
  return Status();
}

}  // namespace

void RegisterSelectOps(OpRegistry& registry) {
  registry.Add(Define<PlanSelect, RunSelect>("Select(condition, x1, x2) -> y"));
  registry.Add(Define<PlanMasked, RunMasked>("MaskedScatter(x, mask, updates) -> y"));
}

}  // namespace npumesh
