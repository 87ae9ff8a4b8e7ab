// Operators that put the elements of x into another order: ReverseV2, Roll, RepeatInterleave,
// DepthToSpace and SpaceToDepth.
#include <algorithm>
#include <numeric>

#include "graph/ops/core/check.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/shape/family.h"
#include "graph/ops/shape/shape_plan.h"

namespace npumesh {
namespace {

// A plan that leaves every position of x where it is; `more` entries are asked for besides. Objects
// (kOutOfMemory) when the host has no room for the lists; they are missing after an objection.
MappedPlan InPlaceOrder(const OpContext& op, Shape x, Check& check, int64_t more = 0) {
  check.Keep(ElementBytes(op, op.in("x").dtype).status());
  check.Keep(AskForLists(op, SumOfDims({SumOfDims(x), more})));
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

// The image on the side of space, and where the block's position stands in the depth: before the
// channels (DCR) or after them (CRD).
struct BlockShape {
  int64_t batch, height, width, channels, block;  // height and width in blocks
  bool channels_last, block_first;
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

// Distances of neighbours along batch, height, width, row and column in a block, and channel.
struct BlockStrides {
  int64_t batch, height, width, row, column, channel;
};

BlockStrides SpaceStrides(const BlockShape& s) {
  const int64_t rows = s.height * s.block, columns = s.width * s.block;
  const int64_t pixel = s.channels_last ? s.channels : 1;
  const int64_t line = columns * pixel;
  return {rows * columns * s.channels,         s.block * line, s.block * pixel, line, pixel,
          s.channels_last ? 1 : rows * columns};
}

BlockStrides DepthStrides(const BlockShape& s) {
  const int64_t depth = s.channels * s.block * s.block;
  const int64_t step = s.channels_last ? 1 : s.height * s.width;  // between depths
  const int64_t pixel = s.channels_last ? depth : 1;
  const int64_t position = s.block_first ? s.channels * step : step;  // between block columns
  return {
      s.height * s.width * depth, s.width * pixel, pixel,
      s.block * position,         position,        s.block_first ? step : s.block * s.block * step};
}

Shape ShapeOf(const BlockShape& s, bool space) {
  const int64_t height = s.height * (space ? s.block : 1), width = s.width * (space ? s.block : 1);
  const int64_t depth = s.channels * (space ? 1 : s.block * s.block);
  return s.channels_last ? Shape({s.batch, height, width, depth})
                         : Shape({s.batch, depth, height, width});
}

template <bool kToSpace>
CopyPlan PlanBlocks(const OpContext& op, Check& check) {
  CopyPlan plan = CopyOf(op, "x", check);
  const BlockShape s = BlockOf<kToSpace>(op, check);
  if (!check.ok()) return {};
  Shape y = ShapeOf(s, kToSpace);
  check.Keep(y.Check().WithContext(op.Who()));
  if (!check.ok()) return {};
  const BlockStrides from = kToSpace ? DepthStrides(s) : SpaceStrides(s);
  const BlockStrides to = kToSpace ? SpaceStrides(s) : DepthStrides(s);
  struct Axis {
    Loop loop;
    int64_t to;
  };
  std::vector<Axis> axes = {
      {{s.batch, from.batch}, to.batch},   {{s.height, from.height}, to.height},
      {{s.width, from.width}, to.width},   {{s.block, from.row}, to.row},
      {{s.block, from.column}, to.column}, {{s.channels, from.channel}, to.channel}};
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return a.to > b.to; });
  for (const Axis& axis : axes) plan.loops.push_back(axis.loop);
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
