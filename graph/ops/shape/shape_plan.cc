#include "graph/ops/shape/shape_plan.h"

#include <array>

#include "graph/ops/core/infer_checks.h"

namespace npumesh {

CopyPlan CopyOf(const OpContext& op, Check& check) {
  check.Keep(ElementBytes(op, op.in(0).dtype).status());
  return {};
}

Status PrepareCopy(const OpContext& op, CopyPlan* plan) {
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, op.in(0).dtype));
  const auto bytes = static_cast<int64_t>(element);
  std::vector<CopyAxis> axes(plan->loops.size());
  int64_t to = bytes;
  for (size_t i = axes.size(); i-- > 0;) {
    const Loop& loop = plan->loops[i];
    // One position has no neighbour: its step may be a huge one.
    axes[i] = {loop.extent, loop.extent > 1 ? loop.step * bytes : 0, to};
    to *= loop.extent;
  }
  plan->offset = to == 0 ? 0 : plan->first * bytes;
  plan->copy = StridedCopy(axes, element);
  return Status();
}

Status RunCopy(const CopyPlan& plan, const KernelArgs& args) {
  plan.copy.Run(static_cast<const std::byte*>(args.in[0]) + plan.offset, args.out[0]);
  return Status();
}

Status PrepareMapped(const OpContext& op, MappedPlan* plan) {
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, op.in(0).dtype));
  plan->copy = MappedCopy(plan->x, std::move(plan->sources), element);
  return Status();
}

Status RunMapped(const MappedPlan& plan, const KernelArgs& args) {
  static constexpr std::array<std::byte, 16> kZeros{};
  plan.copy.Run(args.in[0], plan.fill ? args.in[*plan.fill] : kZeros.data(), args.out[0]);
  return Status();
}

std::string_view AxesName(const OpContext& op) {
  const OpSchema& schema = op.schema();
  return schema.inputs.size() > 1 ? schema.inputs[1].name : schema.attrs[0].name;
}

std::vector<int> DistinctAxes(const OpContext& op, const std::vector<int64_t>& listed, int rank,
                              std::string_view what, Check& check) {
  std::vector<int> axes;
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (const int64_t entry : listed) {
    const int axis = check.Take(AxisOf(op, entry, rank, what));
    if (!check.ok()) return {};
    check.That(!seen[static_cast<size_t>(axis)], "\"{}\" names axis {} twice", what, axis);
    seen[static_cast<size_t>(axis)] = true;
    axes.push_back(axis);
  }
  return axes;
}

}  // namespace npumesh
