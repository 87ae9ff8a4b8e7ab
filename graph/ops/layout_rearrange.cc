// Operators that put the elements of x into another order: ReverseV2, Roll, RepeatInterleave,
// DepthToSpace and SpaceToDepth. Ops reference 5.9.
#include <algorithm>
#include <numeric>

#include "graph/ops/infer_checks.h"
#include "graph/ops/mapped_copy.h"
#include "graph/ops/op_families.h"
#include "graph/ops/strided_copy.h"

namespace npumesh {
namespace {

using Sources = std::vector<std::vector<int64_t>>;

// Every position of every dimension where it is.
Sources InPlaceOrder(const Shape& x) {
  Sources sources(x.dims().size());
  for (size_t d = 0; d < sources.size(); ++d) {
    sources[d].resize(static_cast<size_t>(x.dims()[d]));
    std::iota(sources[d].begin(), sources[d].end(), 0);
  }
  return sources;
}

Result<std::unique_ptr<Kernel>> CopyKernel(const OpContext& op, const Shape& x, Sources sources) {
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, op.in("x").dtype));
  return MakeKernel([copy = MappedCopy(x, std::move(sources), element),
                     slot = op.slot("x")](const KernelArgs& args) {
    copy.Run(args.in[slot], nullptr, args.out[0]);
    return Status();
  });
}

// ---- ReverseV2 ----

Result<Sources> ReversedOrder(const OpContext& op) {
  const Shape& x = op.in("x").shape;
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, op.Ints("axis"));
  NPUMESH_RETURN_IF_ERROR(AskForLists(op, SumOfDims(x)));
  Sources sources = InPlaceOrder(x);
  std::vector<bool> turned(sources.size(), false);
  for (const int64_t listed : axes) {
    NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, listed, x.rank(), "axis"));
    const auto d = static_cast<size_t>(axis);
    if (turned[d]) {
      return Error(Code::kInvalidArgument, "{}: \"axis\" names axis {} twice", op.Who(), axis);
    }
    turned[d] = true;
    std::reverse(sources[d].begin(), sources[d].end());
  }
  return sources;
}

Status InferReverse(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, op.in("x").dtype).status());
  NPUMESH_RETURN_IF_ERROR(ReversedOrder(op).status());
  return SetOutput(op, 0, op.in("x").dtype, op.in("x").shape);
}

Result<std::unique_ptr<Kernel>> MakeReverse(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Sources sources, ReversedOrder(op));
  return CopyKernel(op, op.in("x").shape, std::move(sources));
}

// ---- Roll ----

// The shape that is rolled: without dims, x as a vector.
Shape RolledShape(const OpContext& op) {
  const Shape& x = op.in("x").shape;
  return op.attr_ints("dims").empty() ? Shape({x.elements()}) : x;
}

Result<Sources> RolledOrder(const OpContext& op) {
  const std::vector<int64_t> shifts = op.attr_ints("shifts");
  std::vector<int64_t> dims = op.attr_ints("dims");
  const Shape shape = RolledShape(op);
  if (dims.empty()) dims = {0};
  if (shifts.size() != dims.size()) {
    return Error(Code::kInvalidArgument, "{}: {} \"shifts\" for {} \"dims\"", op.Who(),
                 shifts.size(), dims.size());
  }
  NPUMESH_RETURN_IF_ERROR(AskForLists(op, SumOfDims(shape)));
  Sources sources = InPlaceOrder(shape);
  for (size_t i = 0; i < dims.size(); ++i) {
    NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, dims[i], shape.rank(), "dims"));
    std::vector<int64_t>& list = sources[static_cast<size_t>(axis)];
    if (list.empty()) continue;
    const auto extent = static_cast<int64_t>(list.size());
    const int64_t shift = (shifts[i] % extent + extent) % extent;
    std::rotate(list.begin(), list.end() - shift, list.end());
  }
  return sources;
}

Status InferRoll(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, op.in("x").dtype).status());
  NPUMESH_RETURN_IF_ERROR(RolledOrder(op).status());
  return SetOutput(op, 0, op.in("x").dtype, op.in("x").shape);
}

Result<std::unique_ptr<Kernel>> MakeRoll(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Sources sources, RolledOrder(op));
  return CopyKernel(op, RolledShape(op), std::move(sources));
}

// ---- RepeatInterleave ----

constexpr int64_t kFlattened = 1000;  // value of "axis" that makes x a vector first

struct Repetition {
  Shape x;
  Sources sources;
};

Result<Repetition> RepetitionOf(const OpContext& op) {
  Repetition repetition;
  int64_t listed = op.attr_int("axis");
  repetition.x = op.in("x").shape;
  if (listed == kFlattened) {
    repetition.x = Shape({repetition.x.elements()});
    listed = 0;
  }
  NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, listed, repetition.x.rank(), "axis"));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, op.Ints("repeats"));
  const int64_t extent = repetition.x[axis];
  const auto count = static_cast<int64_t>(repeats.size());
  const bool negative =
      std::any_of(repeats.begin(), repeats.end(), [](int64_t r) { return r < 0; });
  if ((count != 1 && count != extent) || negative) {
    return Error(Code::kInvalidArgument,
                 "{}: \"repeats\" are {}; expected one number, or {} of them, none negative",
                 op.Who(), Shape(repeats).ToString(), extent);
  }
  const auto times = [&](int64_t i) { return repeats[static_cast<size_t>(count == 1 ? 0 : i)]; };
  int64_t length = 0;
  for (int64_t i = 0; i < extent; ++i) {
    if (times(i) > int64_t{INT32_MAX} - length) {
      return Error(Code::kInvalidArgument, "{}: {} repetitions are too many", op.Who(), times(i));
    }
    length += times(i);
  }
  NPUMESH_RETURN_IF_ERROR(AskForLists(op, SumOfDims(repetition.x) + length));
  repetition.sources = InPlaceOrder(repetition.x);
  std::vector<int64_t>& list = repetition.sources[static_cast<size_t>(axis)];
  list.clear();
  for (int64_t i = 0; i < extent; ++i) {
    list.insert(list.end(), static_cast<size_t>(times(i)), i);
  }
  return repetition;
}

Status InferRepeat(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, op.in("x").dtype).status());
  NPUMESH_ASSIGN_OR_RETURN(const Repetition repetition, RepetitionOf(op));
  std::vector<int64_t> dims;
  for (const std::vector<int64_t>& list : repetition.sources) {
    dims.push_back(static_cast<int64_t>(list.size()));
  }
  return SetOutput(op, 0, op.in("x").dtype, Shape(std::move(dims)));
}

Result<std::unique_ptr<Kernel>> MakeRepeat(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Repetition repetition, RepetitionOf(op));
  return CopyKernel(op, repetition.x, std::move(repetition.sources));
}

// ---- DepthToSpace, SpaceToDepth ----

// The image on the side of space, and where the block's position stands in the depth: before the
// channels (DCR) or behind them (CRD).
struct BlockShape {
  int64_t batch, height, width, channels, block;  // height and width in blocks
  bool channels_last;
  bool block_first;
};

Result<BlockShape> BlockOf(const OpContext& op, bool to_space) {
  const Shape& x = op.in("x").shape;
  const std::string format = op.attr_string("data_format");
  const int64_t block = op.attr_int("block_size");
  const bool last = format == "NHWC";
  bool fits = x.rank() == 4 && block >= 1 && block < (1 << 20) && (last || format == "NCHW");
  BlockShape shape{};
  if (fits) {
    const int64_t depth = x[last ? 3 : 1];
    const int64_t height = x[last ? 1 : 2], width = x[last ? 2 : 3];
    const std::string mode = to_space ? op.attr_string("mode") : "DCR";
    shape = {x[0], height, width, depth, block, last, mode == "DCR"};
    if (to_space) {
      fits = depth % (block * block) == 0 && (mode == "DCR" || mode == "CRD");
      shape.channels = depth / (block * block);
    } else {
      fits = height % block == 0 && width % block == 0;
      shape.height = height / block;
      shape.width = width / block;
    }
  }
  if (fits) return shape;
  return Error(Code::kInvalidArgument,
               "{}: x {} with block_size {} and data_format {} cannot be cut into blocks", op.Who(),
               x.ToString(), block, format);
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

Status InferBlocks(OpContext& op, bool to_space) {
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, op.in("x").dtype).status());
  NPUMESH_ASSIGN_OR_RETURN(const BlockShape shape, BlockOf(op, to_space));
  return SetOutput(op, 0, op.in("x").dtype, ShapeOf(shape, to_space));
}

Result<std::unique_ptr<Kernel>> MakeBlocks(const OpContext& op, bool to_space) {
  NPUMESH_ASSIGN_OR_RETURN(const size_t bytes, ElementBytes(op, op.in("x").dtype));
  NPUMESH_ASSIGN_OR_RETURN(const BlockShape s, BlockOf(op, to_space));
  const BlockStrides from = to_space ? DepthStrides(s) : SpaceStrides(s);
  const BlockStrides to = to_space ? SpaceStrides(s) : DepthStrides(s);
  std::vector<CopyAxis> axes = {
      {s.batch, from.batch, to.batch},   {s.height, from.height, to.height},
      {s.width, from.width, to.width},   {s.block, from.row, to.row},
      {s.block, from.column, to.column}, {s.channels, from.channel, to.channel}};
  for (CopyAxis& axis : axes) {
    axis.from *= static_cast<int64_t>(bytes);
    axis.to *= static_cast<int64_t>(bytes);
  }
  return MakeKernel([copy = StridedCopy(axes, bytes)](const KernelArgs& args) {
    copy.Run(args.in[0], args.out[0]);
    return Status();
  });
}

}  // namespace

void RegisterRearrangeOps(OpRegistry& registry) {
  registry.Add({.schema = {"ReverseV2", {{"x"}, {"axis"}}, {{"y"}}, {}},
                .infer = InferReverse,
                .make_kernel = MakeReverse,
                .value_inputs = {"axis"}});
  registry.Add({.schema = {"Roll",
                           {{"x"}},
                           {{"y"}},
                           {{"shifts", Required::kInts}, {"dims", AttrValue::Ints({})}}},
                .infer = InferRoll,
                .make_kernel = MakeRoll});
  registry.Add({.schema = {"RepeatInterleave",
                           {{"x"}, {"repeats"}},
                           {{"y"}},
                           {{"axis", AttrValue::Int(kFlattened)}}},
                .infer = InferRepeat,
                .make_kernel = MakeRepeat,
                .value_inputs = {"repeats"}});
  registry.Add({.schema = {"DepthToSpace",
                           {{"x"}},
                           {{"y"}},
                           {{"block_size", Required::kInt},
                            {"mode", AttrValue::String("DCR")},
                            {"data_format", AttrValue::String("NHWC")}}},
                .infer = [](OpContext& op) { return InferBlocks(op, true); },
                .make_kernel = [](const OpContext& op) { return MakeBlocks(op, true); }});
  registry.Add(
      {.schema = {"SpaceToDepth",
                  {{"x"}},
                  {{"y"}},
                  {{"block_size", Required::kInt}, {"data_format", AttrValue::String("NHWC")}}},
       .infer = [](OpContext& op) { return InferBlocks(op, false); },
       .make_kernel = [](const OpContext& op) { return MakeBlocks(op, false); }});
}

}  // namespace npumesh
