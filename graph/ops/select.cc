// Select and MaskedScatter: elements chosen by a mask. Ops reference 5.4.
#include <cstring>

#include "graph/ops/broadcast.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

Status CheckMask(const OpContext& op, std::string_view port) {
  if (op.in(port).dtype == DataType::kBool) return Status();
  return Error(Code::kInvalidArgument, "{}: input \"{}\" is {}; expected bool", op.Who(), port,
               op.in(port).ToString());
}

// ---- Select: no broadcasting between x1 and x2; a mask of lower rank chooses whole blocks ----

Status InferSelect(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(CheckMask(op, "condition"));
  const TensorType& x1 = op.in("x1");
  const Shape& condition = op.in("condition").shape;
  bool fits = x1 == op.in("x2") && condition.rank() <= x1.shape.rank();
  for (int d = 0; fits && d < condition.rank(); ++d) fits = condition[d] == x1.shape[d];
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: x1 {} and x2 {} must be alike and begin with the dimensions of condition {}",
                 op.Who(), x1.ToString(), op.in("x2").ToString(), condition.ToString());
  }
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, x1.dtype).status());
  return SetOutput(op, 0, x1.dtype, x1.shape);
}

Result<std::unique_ptr<Kernel>> MakeSelect(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, op.in("x1").dtype));
  const Shape& condition = op.in("condition").shape;
  const Shape& x = op.in("x1").shape;
  const auto blocks = static_cast<size_t>(condition.elements());
  const size_t block =
      element * static_cast<size_t>(ElementsBetween(x, condition.rank(), x.rank()));
  return MakeKernel([blocks, block](const KernelArgs& args) {
    const auto* mask = static_cast<const uint8_t*>(args.in[0]);
    auto* y = static_cast<std::byte*>(args.out[0]);
    for (size_t i = 0; i < blocks && block > 0; ++i) {
      const auto* from = static_cast<const std::byte*>(args.in[mask[i] != 0 ? 1 : 2]);
      std::memcpy(y + i * block, from + i * block, block);
    }
    return Status();
  });
}

// ---- MaskedScatter ----

Status InferMaskedScatter(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(CheckMask(op, "mask"));
  NPUMESH_RETURN_IF_ERROR(ExpectSameDtype(op, op.slot("x"), op.slot("updates")));
  const TensorType& x = op.in("x");
  const Result<Shape> wider = Broadcast(x.shape, op.in("mask").shape);
  if (!wider.ok() || *wider != x.shape || x.shape.rank() > BroadcastPlan::kMaxRank) {
    return Error(Code::kInvalidArgument, "{}: mask {} does not broadcast to x {}", op.Who(),
                 op.in("mask").ToString(), x.ToString());
  }
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, x.dtype).status());
  return SetOutput(op, 0, x.dtype, x.shape);
}

Result<std::unique_ptr<Kernel>> MakeMaskedScatter(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, op.in("x").dtype));
  const Shape& x = op.in("x").shape;
  const auto count = static_cast<size_t>(x.elements());
  const auto given = static_cast<size_t>(op.in("updates").shape.elements());
  return MakeKernel([=, plan = BroadcastPlan(op.in("mask").shape, x, 1), who = op.Who(),
                     mask = std::vector<uint8_t>(count)](const KernelArgs& args) mutable -> Status {
    if (count == 0) return Status();
    plan.Gather(args.in[1], 0, count, mask.data());
    const auto* from = static_cast<const std::byte*>(args.in[0]);
    const auto* updates = static_cast<const std::byte*>(args.in[2]);
    auto* y = static_cast<std::byte*>(args.out[0]);
    size_t used = 0;
    for (size_t i = 0; i < count; ++i) {
      const bool masked = mask[i] != 0;
      if (masked && used == given) {
        return Error(Code::kInvalidArgument,
                     "{}: \"updates\" has {} elements, the mask asks for more", who, given);
      }
      std::memcpy(y + i * element, masked ? updates + used++ * element : from + i * element,
                  element);
    }
    return Status();
  });
}

}  // namespace

void RegisterSelectOps(OpRegistry& registry) {
  registry.Add({.schema = {"Select", {{"condition"}, {"x1"}, {"x2"}}, {{"y"}}, {}},
                .infer = InferSelect,
                .make_kernel = MakeSelect});
  registry.Add({.schema = {"MaskedScatter", {{"x"}, {"mask"}, {"updates"}}, {{"y"}}, {}},
                .infer = InferMaskedScatter,
                .make_kernel = MakeMaskedScatter});
}

}  // namespace npumesh
