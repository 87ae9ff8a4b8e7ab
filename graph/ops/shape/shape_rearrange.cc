// Operators that put the elements of x into another order: ReverseV2, Roll, RepeatInterleave,
// DepthToSpace and SpaceToDepth.
#include <algorithm>
#include <map>
#include <numeric>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/shape/shape_plan.h"

namespace npumesh {
namespace {

// A plan that leaves every position of x where it is; `more` entries are asked for besides. Objects
// (kOutOfMemory) when the host has no room for the lists; they are missing after an objection.
MappedPlan InPlaceOrder(const OpContext& op, Shape x, Check& check, int64_t more = 0) {
  check.Keep(ElementBytes(op, op.in("x").dtype).status());
  check.Keep(AskForLists(op, SumOfDims({SumOfDims(x), more}), MappedCopy::kListBytes));
  MappedPlan plan;
  if (!check.ok()) return plan;
  for (const int64_t extent : x.dims()) {
    std::vector<int64_t>& list = plan.sources.emplace_back(static_cast<size_t>(extent));
    std::iota(list.begin(), list.end(), 0);
  }
  plan.x = std::move(x);
  plan.outputs = {op.in("x")};
  return plan;
}

MappedPlan PlanReverse(const OpContext& op, Check& check) {
  const Shape& x = op.in("x").shape;
  const std::vector<int64_t> listed = check.Take(op.Ints("axis"));
  const std::vector<int> axes = DistinctAxes(op, listed, x.rank(), "axis", check);
  MappedPlan plan = InPlaceOrder(op, x, check);
  if (!check.ok()) return {};
  for (const int axis : axes) {
    std::vector<int64_t>& list = plan.sources[static_cast<size_t>(axis)];
    std::reverse(list.begin(), list.end());
  }
  return plan;
}

// Without dims, x is rolled as a vector.
MappedPlan PlanRoll(const OpContext& op, Check& check) {
  const std::vector<int64_t> shifts = op.attr_ints("shifts");
  std::vector<int64_t> dims = op.attr_ints("dims");
  Shape x = op.in("x").shape;
  if (dims.empty()) {
    x = Shape({x.elements()});
    dims = {0};
  }
  check.That(shifts.size() == dims.size(), "{} \"shifts\" for {} \"dims\"", shifts.size(),
             dims.size());
  MappedPlan plan = InPlaceOrder(op, x, check);
  if (!check.ok()) return {};
  for (size_t i = 0; i < dims.size(); ++i) {
    const int axis = check.Take(AxisOf(op, dims[i], x.rank(), "dims"));
    if (!check.ok()) return {};
    std::vector<int64_t>& list = plan.sources[static_cast<size_t>(axis)];
    if (list.empty()) continue;
    const auto extent = static_cast<int64_t>(list.size());
    const int64_t shift = (shifts[i] % extent + extent) % extent;
    std::rotate(list.begin(), list.end() - shift, list.end());
  }
  return plan;
}

// ---- RepeatInterleave ----

constexpr int64_t kFlattened = 1000;  // value of "axis" that makes x a vector first

MappedPlan PlanRepeat(const OpContext& op, Check& check) {
  int64_t listed = op.attr_int("axis");
  Shape x = op.in("x").shape;
  if (listed == kFlattened) {
    x = Shape({x.elements()});
    listed = 0;
  }
  const int axis = check.Take(AxisOf(op, listed, x.rank(), "axis"));
  const std::vector<int64_t> repeats = check.Take(op.Ints("repeats"));
  if (!check.ok()) return {};
  const int64_t extent = x[axis];
  const auto count = static_cast<int64_t>(repeats.size());
  const bool negative =
      std::any_of(repeats.begin(), repeats.end(), [](int64_t r) { return r < 0; });
  check.That((count == 1 || count == extent) && !negative,
             "\"repeats\" are {}; expected one number, or {} of them, none negative",
             Shape(repeats), extent);
  const auto times = [&](int64_t i) { return repeats[static_cast<size_t>(count == 1 ? 0 : i)]; };
  int64_t length = 0;
  for (int64_t i = 0; check.ok() && i < extent; ++i) {
    check.That(times(i) <= int64_t{INT32_MAX} - length, "{} repetitions are too many", times(i));
    if (check.ok()) length += times(i);
  }
  MappedPlan plan = InPlaceOrder(op, x, check, length);
  if (!check.ok()) return {};
  std::vector<int64_t>& list = plan.sources[static_cast<size_t>(axis)];
  list.clear();
  for (int64_t i = 0; i < extent; ++i) {
    list.insert(list.end(), static_cast<size_t>(times(i)), i);
  }
  x[axis] = length;
  plan.outputs = {{op.in("x").dtype, std::move(x)}};
  return plan;
}

// ---- DepthToSpace, SpaceToDepth ----

// Both sides hold six axes: the batch n, the blocks of the image (h, w), the positions in a block
// (r, c) and the channels d. In the depth a block's position stands before the channels (DCR) or
// after them (CRD).
struct BlockShape {
  int64_t batch, height, width, channels, block;  // height and width in blocks
  bool channels_last, block_first;

  // The axes in the order of each side.
  std::string_view Space() const { return channels_last ? "nhrwcd" : "ndhrwc"; }
  std::string_view Depth() const {
    if (channels_last) return block_first ? "nhwrcd" : "nhwdrc";
    return block_first ? "nrcdhw" : "ndrchw";
  }
};

template <bool kToSpace>
BlockShape BlockOf(const OpContext& op, Check& check) {
  const Shape& x = op.in("x").shape;
  const std::string format = op.attr_string("data_format");
  const std::string mode = kToSpace ? op.attr_string("mode") : "DCR";
  const int64_t block = op.attr_int("block_size");
  const bool last = format == "NHWC";
  bool fits = x.rank() == 4 && block >= 1 && block < (1 << 20) && (last || format == "NCHW") &&
              (mode == "DCR" || mode == "CRD");
  BlockShape shape{};
  if (fits) {
    const int64_t depth = x[last ? 3 : 1], height = x[last ? 1 : 2], width = x[last ? 2 : 3];
    const int64_t area = block * block;
    shape = {x[0], height, width, depth, block, last, mode == "DCR"};
    if (kToSpace) {
      fits = depth % area == 0 && std::max(height, width) <= INT64_MAX / block;
      shape.channels = depth / area;
    } else {
      fits = height % block == 0 && width % block == 0 && depth <= INT64_MAX / area;
      shape.height = height / block;
      shape.width = width / block;
    }
  }
  check.That(fits, "x {} with block_size {} and data_format {} cannot be cut into blocks", x, block,
             format);
  return shape;
}

Shape ShapeOf(const BlockShape& s, bool space) {
  const int64_t height = s.height * (space ? s.block : 1), width = s.width * (space ? s.block : 1);
  const int64_t depth = s.channels * (space ? 1 : s.block * s.block);
  return s.channels_last ? Shape({s.batch, height, width, depth})
                         : Shape({s.batch, depth, height, width});
}

template <bool kToSpace>
CopyPlan PlanBlocks(const OpContext& op, Check& check) {
  CopyPlan plan = CopyOf(op, check);
  const BlockShape s = BlockOf<kToSpace>(op, check);
  if (!check.ok()) return {};
  Shape y = ShapeOf(s, kToSpace);
  check.Keep(y.Check().WithContext(op.Who()));
  if (!check.ok()) return {};
  std::map<char, Loop> axes = {{'n', {s.batch}}, {'h', {s.height}}, {'w', {s.width}},
                               {'r', {s.block}}, {'c', {s.block}},  {'d', {s.channels}}};
  const std::string_view from = kToSpace ? s.Depth() : s.Space();
  int64_t step = 1;
  for (size_t i = from.size(); i-- > 0;) {
    Loop& loop = axes[from[i]];
    loop.step = step;
    step *= loop.extent;
  }
  for (const char axis : kToSpace ? s.Space() : s.Depth()) plan.loops.push_back(axes[axis]);
  plan.outputs = {{op.in("x").dtype, std::move(y)}};
  return plan;
}

}  // namespace

void RegisterRearrangeOps(OpRegistry& registry) {
  registry.Add(DefineMapped<PlanReverse>("ReverseV2(x, axis) -> y", {"axis"}));
  registry.Add(DefineMapped<PlanRoll>("Roll(x; shifts:ints, dims=[]) -> y"));
  registry.Add(
      DefineMapped<PlanRepeat>("RepeatInterleave(x, repeats; axis=1000) -> y", {"repeats"}));
  registry.Add(DefineCopy<PlanBlocks<true>>(
      "DepthToSpace(x; block_size:int, mode=\"DCR\", data_format=\"NHWC\") -> y"));
  registry.Add(
      DefineCopy<PlanBlocks<false>>("SpaceToDepth(x; block_size:int, data_format=\"NHWC\") -> y"));
}

}  // namespace npumesh
