// Pad, PadV3 and MirrorPad: x with elements before and after each dimension; PadV3Grad, which adds
// the gradient of every element to where it came from.
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <span>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/shape/family.h"
#include "graph/ops/shape/shape_plan.h"
#include "graph/ops/toolbox/rows/double_kernel.h"

namespace npumesh {
namespace {

enum class PadMode { kConstant, kReflect, kSymmetric, kEdge };

// A mode and the word for it.
struct ModeWord {
  std::string_view word;
  PadMode mode;
};

constexpr ModeWord kPadModes[] = {{"constant", PadMode::kConstant},
                                  {"reflect", PadMode::kReflect},
                                  {"symmetric", PadMode::kSymmetric},
                                  {"edge", PadMode::kEdge}};
constexpr ModeWord kMirrorModes[] = {{"REFLECT", PadMode::kReflect},
                                     {"SYMMETRIC", PadMode::kSymmetric}};

Result<PadMode> ModeOf(const OpContext& op, std::span<const ModeWord> words) {
  const std::string mode = op.attr_string("mode");
  std::vector<std::string_view> known;
  for (const ModeWord& entry : words) {
    if (mode == entry.word) return entry.mode;
    known.push_back(entry.word);
  }
  return Error(Code::kInvalidArgument, "{}: attribute \"mode\" is \"{}\"; expected {}", op.Who(),
               mode, fmt::join(known, ", "));
}

// Elements added before and after a dimension; negative ones are cut off.
struct Padding {
  int64_t before = 0, behind = 0;
};

// Listed as pairs, or those before all dimensions first.
Result<std::vector<Padding>> PaddingsOf(const OpContext& op, bool pairs) {
  const Shape& x = op.in("x").shape;
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> list, op.Ints("paddings"));
  const auto rank = static_cast<size_t>(x.rank());
  if (list.size() != 2 * rank) {
    return Error(Code::kInvalidArgument, "{}: \"paddings\" has {} entries, x {} needs {}", op.Who(),
                 list.size(), x.ToString(), 2 * rank);
  }
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

// Error unless every dimension of x can be padded.
Result<Shape> PaddedShape(const OpContext& op, PadMode mode, const std::vector<Padding>& paddings) {
  const Shape& x = op.in("x").shape;
  Shape y = x;
  for (int d = 0; d < x.rank(); ++d) {
    const Padding& padding = paddings[static_cast<size_t>(d)];
    const int64_t most = MostAdded(x[d], mode);
    const bool fits = padding.before <= most && padding.behind <= most && padding.before >= -x[d] &&
                      padding.behind >= -x[d] && x[d] <= INT64_MAX / 4 &&
                      x[d] + padding.before + padding.behind >= 0;
    if (!fits) {
      return Error(Code::kInvalidArgument,
                   "{}: dimension {} of x {} cannot be padded by {} before and {} behind", op.Who(),
                   d, x.ToString(), padding.before, padding.behind);
    }
    y[d] = x[d] + padding.before + padding.behind;
  }
  return y;
}

Result<MappedPlan> PlanPadding(const OpContext& op, PadMode mode, bool pairs) {
  MappedPlan plan;
  plan.x = op.in("x").shape;
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, op.in("x").dtype).status());
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Padding> paddings, PaddingsOf(op, pairs));
  NPUMESH_ASSIGN_OR_RETURN(Shape y, PaddedShape(op, mode, paddings));
  NPUMESH_RETURN_IF_ERROR(AskForLists(op, SumOfDims(y)));
  for (size_t d = 0; d < paddings.size(); ++d) {
    std::vector<int64_t>& list = plan.sources.emplace_back();
    for (int64_t i = 0; i < y.dims()[d]; ++i) {
      list.push_back(SourceOf(i - paddings[d].before, plan.x.dims()[d], mode));
    }
  }
  plan.outputs = {{op.in("x").dtype, std::move(y)}};
  return plan;
}

Result<MappedPlan> PlanPad(const OpContext& op) {
  return PlanPadding(op, PadMode::kConstant, true);
}

Result<MappedPlan> PlanMirrorPad(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const PadMode mode, ModeOf(op, kMirrorModes));
  return PlanPadding(op, mode, true);
}

Result<MappedPlan> PlanPadV3(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const PadMode mode, ModeOf(op, kPadModes));
  NPUMESH_ASSIGN_OR_RETURN(MappedPlan plan,
                           PlanPadding(op, mode, op.attr_bool("paddings_contiguous")));
  if (!op.has("constant_values")) return plan;
  plan.fill = op.slot("constant_values");
  const TensorType &value = op.in(plan.fill), &x = op.in("x");
  if (value.dtype == x.dtype && value.shape.elements() == 1) return plan;
  return Error(Code::kInvalidArgument,
               "{}: \"constant_values\" is {}, expected one element of type {}", op.Who(),
               value.ToString(), Name(x.dtype));
}

// ---- PadV3Grad ----

// What is padded to x.
Result<Shape> UnpaddedShape(const OpContext& op, PadMode mode,
                            const std::vector<Padding>& paddings) {
  const Shape& x = op.in("x").shape;
  Shape y = x;
  for (int d = 0; d < x.rank(); ++d) {
    const auto [before, behind] = paddings[static_cast<size_t>(d)];
    const bool bounded = std::abs(before) <= INT32_MAX && std::abs(behind) <= INT32_MAX;
    if (bounded) y[d] = x[d] - before - behind;
    const int64_t most = MostAdded(y[d], mode);
    if (!bounded || y[d] < 0 || before > most || behind > most || -before > y[d] ||
        -behind > y[d]) {
      return Error(Code::kInvalidArgument,
                   "{}: dimension {} of x {} is not what padding {} before and {} behind makes",
                   op.Who(), d, x.ToString(), before, behind);
    }
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

Result<PadGradPlan> PlanPadGrad(const OpContext& op) {
  const auto& [dtype, x] = op.in("x");
  NPUMESH_RETURN_IF_ERROR(ExpectReal(op, "x"));
  NPUMESH_ASSIGN_OR_RETURN(const PadMode mode, ModeOf(op, kPadModes));
  NPUMESH_ASSIGN_OR_RETURN(const auto paddings,
                           PaddingsOf(op, op.attr_bool("paddings_contiguous")));
  NPUMESH_ASSIGN_OR_RETURN(Shape y, UnpaddedShape(op, mode, paddings));
  NPUMESH_RETURN_IF_ERROR(y.Check().WithContext(op.Who()));
  NPUMESH_RETURN_IF_ERROR(AskForLists(op, SumOfDims(x)));
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
