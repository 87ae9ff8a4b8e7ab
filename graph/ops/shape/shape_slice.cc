// StridedSlice, StridedSliceV2 and Slice: a box of x, possibly with steps.
#include "graph/ops/shape/slice.h"

#include <algorithm>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/shape/shape_plan.h"

namespace npumesh {
namespace {

// What becomes of a dimension of x: it stays, or has one position and disappears; or what is new.
enum class CutKind : uint8_t { kStays, kShrinks, kNew };

// What is taken of one dimension of x: `length` positions from `begin` in steps of `step`.
struct Cut {
  int64_t begin = 0, length = 1, step = 1;
  CutKind kind = CutKind::kStays;
};

// Cuts for the dimensions of x in order, with new dimensions between them.
CopyPlan PlanBox(const OpContext& op, const std::vector<Cut>& cuts, Check& check) {
  CopyPlan plan = CopyOf(op, check);
  if (!check.ok()) return plan;
  const TensorType& x = op.in("x");
  const std::vector<int64_t> steps = ByteStrides(x.shape, 1);
  Shape y;
  size_t dim = 0;
  for (const Cut& cut : cuts) {
    if (cut.kind != CutKind::kShrinks) y.mutable_dims().push_back(cut.length);
    if (cut.kind == CutKind::kNew) continue;
    const int64_t step = cut.length > 1 ? cut.step : 0;  // one position: any step, even a huge one
    plan.loops.push_back({cut.length, steps[dim] * step});
    plan.first += cut.length > 0 ? steps[dim] * cut.begin : 0;
    ++dim;
  }
  plan.outputs = {{x.dtype, std::move(y)}};
  return plan;
}

// ---- StridedSlice, StridedSliceV2 ----

// The inputs and masks; entry i of each list belongs together with bit i of each mask.
struct SliceSpec {
  std::vector<int64_t> begin, end, steps;
  std::optional<std::vector<int64_t>> axes;
  int64_t begin_mask = 0, end_mask = 0, ellipsis_mask = 0, new_axis_mask = 0, shrink_mask = 0;

  size_t entries() const { return begin.size(); }
};

bool Bit(int64_t mask, size_t entry) {
  return ((static_cast<uint64_t>(mask) >> entry) & 1u) != 0;
}

// An optional input that is not fed, or fed with no elements, does not count.
std::optional<std::vector<int64_t>> OptionalInts(const OpContext& op, std::string_view port,
                                                 Check& check) {
  if (!op.has(port) || op.in(port).shape.elements() == 0) return std::nullopt;
  return check.Take(op.Ints(port));
}

SliceSpec ReadSpec(const OpContext& op, bool has_axes, Check& check) {
  SliceSpec spec;
  spec.begin = check.Take(op.Ints("begin"));
  spec.end = check.Take(op.Ints("end"));
  if (has_axes) spec.axes = OptionalInts(op, "axes", check);
  const size_t n = spec.entries();
  spec.steps = OptionalInts(op, "strides", check).value_or(std::vector<int64_t>(n, 1));
  spec.begin_mask = op.attr_int("begin_mask");
  spec.end_mask = op.attr_int("end_mask");
  spec.ellipsis_mask = op.attr_int("ellipsis_mask");
  spec.new_axis_mask = op.attr_int("new_axis_mask");
  spec.shrink_mask = op.attr_int("shrink_axis_mask");
  const size_t axes = spec.axes ? spec.axes->size() : n;
  check.That(n <= 63 && spec.end.size() == n && spec.steps.size() == n && axes == n,
             "\"begin\", \"end\", \"axes\" and \"strides\" have {}, {}, {} and {} entries; "
             "expected equal numbers, 63 at most",
             n, spec.end.size(), axes, spec.steps.size());
  check.That(std::count(spec.steps.begin(), spec.steps.end(), 0) == 0, "\"strides\" has a 0");
  check.That(!spec.axes || (spec.ellipsis_mask == 0 && spec.new_axis_mask == 0),
             "ellipsis_mask and new_axis_mask have no meaning beside the input \"axes\"");
  return spec;
}

// Position in [low, high], counted from the end when negative.
int64_t Clamped(int64_t position, int64_t extent, int64_t low, int64_t high) {
  return std::clamp(position < 0 ? position + extent : position, low, high);
}

// Entry `i` of the spec applied to a dimension of `extent`, by TensorFlow's rules.
Cut CutOf(const SliceSpec& spec, size_t i, int64_t extent, Check& check) {
  const int64_t step = spec.steps[i];
  if (Bit(spec.shrink_mask, i)) {
    const int64_t index = spec.begin[i] < 0 ? spec.begin[i] + extent : spec.begin[i];
    check.That(index >= 0 && index < extent, "index {} is outside a dimension of {}", spec.begin[i],
               extent);
    return {index, 1, 1, CutKind::kShrinks};
  }
  const bool forward = step > 0;
  const int64_t low = forward ? 0 : -1;
  const int64_t high = forward ? extent : extent - 1;
  const int64_t begin =
      Bit(spec.begin_mask, i) ? (forward ? low : high) : Clamped(spec.begin[i], extent, low, high);
  const int64_t end =
      Bit(spec.end_mask, i) ? (forward ? high : low) : Clamped(spec.end[i], extent, low, high);
  const int64_t span = forward ? end - begin : begin - end;
  const uint64_t pace =
      forward ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  const int64_t length =
      span > 0 ? static_cast<int64_t>(static_cast<uint64_t>(span - 1) / pace) + 1 : 0;
  return {begin, length, step};
}

std::vector<Cut> CutsByAxes(const OpContext& op, const SliceSpec& spec, Check& check) {
  const Shape& x = op.in("x").shape;
  std::vector<Cut> cuts;
  for (const int64_t dim : x.dims()) cuts.push_back({0, dim});
  const std::vector<int> axes = DistinctAxes(op, *spec.axes, x.rank(), "axes", check);
  for (size_t i = 0; i < axes.size(); ++i) {
    cuts[static_cast<size_t>(axes[i])] = CutOf(spec, i, x[axes[i]], check);
  }
  return cuts;
}

// Entries apply to dimensions 0, 1, ...; an ellipsis stands for as many as are left over.
std::vector<Cut> CutsByPosition(const OpContext& op, const SliceSpec& spec, Check& check) {
  const Shape& x = op.in("x").shape;
  const size_t n = spec.entries();
  int64_t consumed = 0;
  int ellipses = 0;
  for (size_t i = 0; i < n; ++i) {
    const bool ellipsis = Bit(spec.ellipsis_mask, i);
    ellipses += ellipsis ? 1 : 0;
    consumed += ellipsis || Bit(spec.new_axis_mask, i) ? 0 : 1;
  }
  check.That(consumed <= x.rank() && ellipses <= 1,
             "{} entries with {} ellipses do not fit x, which is {}", n, ellipses, x);
  if (!check.ok()) return {};
  std::vector<Cut> cuts;
  int dim = 0;
  for (size_t i = 0; i < n; ++i) {
    if (Bit(spec.ellipsis_mask, i)) {
      for (int64_t left = x.rank() - consumed; left > 0; --left) cuts.push_back({0, x[dim++]});
    } else if (Bit(spec.new_axis_mask, i)) {
      cuts.push_back({.kind = CutKind::kNew});
    } else {
      cuts.push_back(CutOf(spec, i, x[dim++], check));
    }
  }
  while (dim < x.rank()) cuts.push_back({0, x[dim++]});
  return cuts;
}

template <bool kHasAxes>
CopyPlan PlanStridedSlice(const OpContext& op, Check& check) {
  const SliceSpec spec = ReadSpec(op, kHasAxes, check);
  if (!check.ok()) return {};
  return PlanBox(op, spec.axes ? CutsByAxes(op, spec, check) : CutsByPosition(op, spec, check),
                 check);
}

// ---- Slice ----

CopyPlan PlanSlice(const OpContext& op, Check& check) {
  const Shape& x = op.in("x").shape;
  const std::vector<int64_t> offsets = check.Take(op.Ints("offsets"));
  const std::vector<int64_t> sizes = check.Take(op.Ints("size"));
  const auto rank = static_cast<size_t>(x.rank());
  bool fits = offsets.size() == rank && sizes.size() == rank;
  std::vector<Cut> cuts;
  for (size_t i = 0; fits && i < rank; ++i) {
    const int64_t extent = x.dims()[i];
    fits = offsets[i] >= 0 && offsets[i] <= extent;
    const int64_t size = sizes[i] == -1 ? extent - offsets[i] : sizes[i];
    fits = fits && size >= 0 && size <= extent - offsets[i];
    cuts.push_back({offsets[i], size});
  }
  check.That(fits, "offsets {} and sizes {} do not lie inside x, which is {}", Shape(offsets),
             Shape(sizes), x);
  return PlanBox(op, cuts, check);
}

using SlicePlanFn = CopyPlan (*)(const OpContext& op, Check& check);

// Null: no slice.
SlicePlanFn PlanOfSlice(std::string_view type) {
  if (type == "Slice" || type == "SliceD") return PlanSlice;
  if (type == "StridedSlice") return PlanStridedSlice<false>;
  return type == "StridedSliceV2" ? PlanStridedSlice<true> : nullptr;
}

}  // namespace

std::optional<int64_t> FirstOfSlice(const OpContext& op) {
  const SlicePlanFn plan_slice = PlanOfSlice(op.schema().type);
  if (plan_slice == nullptr) return std::nullopt;
  Check check(op);
  const CopyPlan plan = plan_slice(op, check);
  if (!check.ok()) return std::nullopt;
  const std::vector<int64_t> steps = ByteStrides(op.in("x").shape, 1);
  for (size_t i = 0; i < plan.loops.size(); ++i) {
    if (plan.loops[i].extent > 1 && plan.loops[i].step != steps[i]) return std::nullopt;
  }
  return plan.first;
}

void RegisterSliceOps(OpRegistry& registry) {
  registry.Add(DefineCopy<PlanStridedSlice<true>>(
      "StridedSliceV2(x, begin, end, axes?, strides?; begin_mask=0, end_mask=0, "
      "ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0) -> y",
      {"begin", "end", "axes", "strides"}, "x[..~] -> y[..]; strides > 0"));
  registry.Add(DefineCopy<PlanStridedSlice<false>>(
      "StridedSlice(x, begin, end, strides; begin_mask=0, end_mask=0, ellipsis_mask=0, "
      "new_axis_mask=0, shrink_axis_mask=0) -> y",
      {"begin", "end", "strides"}, "x[..~] -> y[..]; strides > 0"));
  registry.Add(DefineCopy<PlanSlice>("Slice(x, offsets, size) -> y", {"offsets", "size"},
                                     "x[..~], size[#y] -> y[..]"));
}

}  // namespace npumesh
