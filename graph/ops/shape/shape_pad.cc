// Pad, PadV3 and MirrorPad: x with elements before and after each dimension; PadV3Grad, which adds
// the gradient of every element to where it came from.
#include <algorithm>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/shape/shape_plan.h"
#include "graph/ops/toolbox/rows/double_kernel.h"

namespace npumesh {
namespace {

enum class PadMode { kConstant, kReflect, kSymmetric, kEdge };

PadMode PadModeOf(Check& check) {
  return check.Meaning<PadMode>("mode", {{"constant", PadMode::kConstant},
                                         {"reflect", PadMode::kReflect},
                                         {"symmetric", PadMode::kSymmetric},
                                         {"edge", PadMode::kEdge}});
}

// Elements added before and after a dimension; negative ones are cut off.
struct Padding {
  int64_t before = 0, behind = 0;
};

// One for each dimension of x, listed as pairs, or those before all dimensions first; none after
// an objection.
std::vector<Padding> PaddingsOf(const OpContext& op, bool pairs, Check& check) {
  const Shape& x = op.in("x").shape;
  const std::vector<int64_t> list = check.Take(op.Ints("paddings"));
  const size_t rank = x.dims().size();
  check.That(list.size() == 2 * rank, "\"paddings\" has {} entries, x {} needs {}", list.size(), x,
             2 * rank);
  if (!check.ok()) return {};
  std::vector<Padding> paddings;
  for (size_t d = 0; d < rank; ++d) {
    paddings.push_back(pairs ? Padding{list[2 * d], list[2 * d + 1]}
                             : Padding{list[d], list[rank + d]});
  }
  return paddings;
}

// Where position `at` of a padded dimension of x comes from; `at` may lie outside.
int64_t SourceOf(int64_t at, int64_t extent, PadMode mode) {
  if (at >= 0 && at < extent) return at;
  switch (mode) {
    case PadMode::kConstant:
      return kFilled;
    case PadMode::kReflect:
      return at < 0 ? -at : 2 * extent - 2 - at;
    case PadMode::kSymmetric:
      return at < 0 ? -at - 1 : 2 * extent - 1 - at;
    case PadMode::kEdge:
      return at < 0 ? 0 : extent - 1;
  }
  return kFilled;
}

// Most elements that can be added on one side.
int64_t MostAdded(int64_t extent, PadMode mode) {
  if (mode == PadMode::kReflect) return std::max<int64_t>(extent - 1, 0);
  if (mode == PadMode::kSymmetric) return extent;
  return mode == PadMode::kEdge && extent == 0 ? 0 : INT32_MAX;
}

// Objects unless every dimension of x can be padded.
Shape PaddedShape(const Shape& x, PadMode mode, const std::vector<Padding>& paddings,
                  Check& check) {
  Shape y = x;
  for (int d = 0; check.ok() && d < x.rank(); ++d) {
    const Padding& padding = paddings[static_cast<size_t>(d)];
    const int64_t most = MostAdded(x[d], mode);
    const bool fits = padding.before <= most && padding.behind <= most && padding.before >= -x[d] &&
                      padding.behind >= -x[d] && x[d] <= INT64_MAX / 4 &&
                      x[d] + padding.before + padding.behind >= 0;
    check.That(fits, "dimension {} of x {} cannot be padded by {} before and {} behind", d, x,
               padding.before, padding.behind);
    if (fits) y[d] = x[d] + padding.before + padding.behind;
  }
  return y;
}

MappedPlan PlanPadding(const OpContext& op, PadMode mode, bool pairs, Check& check) {
  MappedPlan plan;
  plan.x = op.in("x").shape;
  check.Keep(ElementBytes(op, op.in("x").dtype).status());
  const std::vector<Padding> paddings = PaddingsOf(op, pairs, check);
  Shape y = PaddedShape(plan.x, mode, paddings, check);
  if (check.ok()) check.Keep(AskForLists(op, SumOfDims(y), MappedCopy::kListBytes));
  if (!check.ok()) return plan;
  for (size_t d = 0; d < paddings.size(); ++d) {
    std::vector<int64_t>& list = plan.sources.emplace_back();
    for (int64_t i = 0; i < y.dims()[d]; ++i) {
      list.push_back(SourceOf(i - paddings[d].before, plan.x.dims()[d], mode));
    }
  }
  plan.outputs = {{op.in("x").dtype, std::move(y)}};
  return plan;
}

MappedPlan PlanPad(const OpContext& op, Check& check) {
  return PlanPadding(op, PadMode::kConstant, true, check);
}

MappedPlan PlanMirrorPad(const OpContext& op, Check& check) {
  const auto mode = check.Meaning<PadMode>(
      "mode", {{"REFLECT", PadMode::kReflect}, {"SYMMETRIC", PadMode::kSymmetric}});
  return PlanPadding(op, mode, true, check);
}

MappedPlan PlanPadV3(const OpContext& op, Check& check) {
  const PadMode mode = PadModeOf(check);
  MappedPlan plan = PlanPadding(op, mode, op.attr_bool("paddings_contiguous"), check);
  if (!op.has("constant_values") || mode != PadMode::kConstant) return plan;
  plan.fill = op.slot("constant_values");
  const TensorType &value = op.in(*plan.fill), &x = op.in("x");
  check.That(value.dtype == x.dtype && value.shape.elements() == 1,
             "\"constant_values\" is {}, expected one element of type {}", value, Name(x.dtype));
  return plan;
}

// ---- PadV3Grad ----

// What is padded to x.
Shape UnpaddedShape(const Shape& x, PadMode mode, const std::vector<Padding>& paddings,
                    Check& check) {
  Shape y = x;
  for (int d = 0; check.ok() && d < x.rank(); ++d) {
    const auto [before, behind] = paddings[static_cast<size_t>(d)];
    const bool bounded =
        std::max(before, behind) <= INT32_MAX && std::min(before, behind) >= -INT32_MAX;
    if (bounded) y[d] = x[d] - before - behind;
    const int64_t most = MostAdded(y[d], mode);
    const bool fits = bounded && y[d] >= 0 && before <= most && behind <= most && -before <= y[d] &&
                      -behind <= y[d];
    check.That(fits, "dimension {} of x {} is not what padding {} before and {} behind makes", d, x,
               before, behind);
  }
  return y;
}

// Adds the elements of the padded tensor, from `*next` on, to their origins below `base`. An origin
// is the position in the unpadded tensor times the elements below it, or kFilled.
void AddToOrigins(const Sources& origins, size_t dim, int64_t base, const double** next,
                  std::vector<double>* y) {
  if (dim == origins.size()) {
    if (base >= 0) (*y)[static_cast<size_t>(base)] += **next;
    ++*next;
    return;
  }
  for (const int64_t origin : origins[dim]) {
    const int64_t below = base < 0 || origin == kFilled ? kFilled : base + origin;
    AddToOrigins(origins, dim + 1, below, next, y);
  }
}

struct PadGradPlan : Planned {
  Sources origins;
};

PadGradPlan PlanPadGrad(const OpContext& op, Check& check) {
  const auto& [dtype, x] = op.in("x");
  check.Keep(ExpectReal(op, "x"));
  const PadMode mode = PadModeOf(check);
  const std::vector<Padding> paddings = PaddingsOf(op, op.attr_bool("paddings_contiguous"), check);
  Shape y = UnpaddedShape(x, mode, paddings, check);
  check.Keep(y.Check().WithContext(op.Who()));
  check.Keep(AskForLists(op, SumOfDims(x), MappedCopy::kListBytes));
  if (!check.ok()) return {};
  PadGradPlan plan;
  for (size_t d = 0; d < paddings.size(); ++d) {
    const int64_t below = ElementsBetween(y, static_cast<int>(d) + 1, y.rank());
    std::vector<int64_t>& list = plan.origins.emplace_back();
    for (int64_t i = 0; i < x.dims()[d]; ++i) {
      const int64_t source = SourceOf(i - paddings[d].before, y.dims()[d], mode);
      list.push_back(source == kFilled ? kFilled : source * below);
    }
  }
  plan.outputs = {{dtype, std::move(y)}};
  return plan;
}

Status PadGrad(const PadGradPlan& plan, RealTensors& t) {
  const double* next = t.in[0].data();
  AddToOrigins(plan.origins, 0, 0, &next, &t.out[0]);
  return Status();
}

}  // namespace

void RegisterPadOps(OpRegistry& registry) {
  registry.Add(DefineMapped<PlanPad>("Pad(x, paddings) -> y", {"paddings"}));
  registry.Add(
      DefineMapped<PlanPadV3>("PadV3(x, paddings, constant_values?; mode=\"constant\", "
                              "paddings_contiguous=true) -> y",
                              {"paddings"}));
  registry.Add(DefineReal<PlanPadGrad, PadGrad>(
      "PadV3Grad(x, paddings; mode=\"reflect\", paddings_contiguous=true) -> y",
      {.value_inputs = {"paddings"}}));
  registry.Add(
      DefineMapped<PlanMirrorPad>("MirrorPad(x, paddings; mode:string) -> y", {"paddings"}));
}

}  // namespace npumesh
