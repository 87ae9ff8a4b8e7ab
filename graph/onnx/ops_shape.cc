// Values stay, shapes change: views, cuts, copies; what follows from shapes alone.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/onnx/op_table.h"
#include "graph/onnx/rewrites.h"
#include "runtime/base/type_numbers.h"

namespace npumesh {
namespace {

Shape OpenShape(int rank) {
  return Shape(std::vector<int64_t>(static_cast<size_t>(std::max(rank, 0)), kUnknownDim));
}

// ---- views ----

// Whether a 0 may be among the sizes, also when only a run knows them.
bool MayHoldZero(Lowering& at, Value shape) {
  const std::optional<std::vector<int64_t>> sizes = at.KnownInts(shape);
  return !sizes || std::find(sizes->begin(), sizes->end(), 0) != sizes->end();
}

// What a shape says in which a 0 is a size (allowzero).
void CheckLiteral(Lowering& at, Value x, Value shape) {
  const std::optional<std::vector<int64_t>> sizes = at.KnownInts(shape);
  if (!sizes || std::find(sizes->begin(), sizes->end(), 0) == sizes->end()) return;
  if (std::find(sizes->begin(), sizes->end(), -1) != sizes->end()) {
    at.Fail(Code::kCorrupt, "a shape with 0 and -1 beside allowzero says no size");
  } else if (at.shape(x).is_static() && at.shape(x).elements() != 0) {
    at.Fail(Code::kCorrupt, "{} elements do not fit a shape with a 0 (allowzero)",
            at.shape(x).elements());
  }
}

void LowerReshape(Lowering& at) {
  const Value x = at.in(0);
  if (at.version() < 5) return at.Out(0, at.Reshape(x, at.IntList("shape")));
  const Value shape = at.in(1);
  const bool literal = at.Int("allowzero", 0) != 0;
  if (literal) CheckLiteral(at, x, shape);
  Lowering::Attrs attrs;
  if (MayHoldZero(at, shape)) attrs.emplace_back("allowzero", literal ? 1 : 0);
  const Value y = at.Node("Reshape", {x, shape}, std::move(attrs));
  const int64_t rank = at.shape(shape).rank() == 1 ? at.KnownSize(shape, 0) : -1;
  if (rank >= 0) at.emitter().Hint(y, {at.dtype(x), OpenShape(static_cast<int>(rank))});
  at.Out(0, y);
}

void LowerFlatten(Lowering& at) {
  at.Out(0, at.Node("Flatten", {at.in(0)}, {{"axis", at.Int("axis", 1)}}));
}

// Axes by attribute, or by an input that may be known only when it runs.
void LowerSqueeze(Lowering& at) {
  const Value x = at.in(0);
  if (at.has_attr("axes")) return at.Out(0, at.Squeeze(x, at.IntList("axes")));
  if (!at.has(1)) return at.Out(0, at.Node("SqueezeV3", {x}));
  const Value axes = at.in(1);
  const Value y = at.Node("SqueezeV3", {x, axes});
  if (at.shape(x).has_rank() && at.shape(axes).is_static()) {
    const auto rank = at.shape(x).rank() - static_cast<int>(at.shape(axes).elements());
    at.emitter().Hint(y, {at.dtype(x), OpenShape(rank)});
  }
  at.Out(0, y);
}

void LowerUnsqueeze(Lowering& at) {
  const Value x = at.in(0);
  if (at.has_attr("axes")) return at.Out(0, at.Unsqueeze(x, at.IntList("axes")));
  const Value axes = at.in(1);
  const Value y = at.Node("UnsqueezeV3", {x, axes});
  if (at.shape(x).has_rank() && at.shape(axes).is_static()) {
    const auto rank = at.shape(x).rank() + static_cast<int>(at.shape(axes).elements());
    at.emitter().Hint(y, {at.dtype(x), OpenShape(rank)});
  }
  at.Out(0, y);
}

void LowerTranspose(Lowering& at) {
  const Value x = at.in(0);
  std::vector<int64_t> perm = at.IntList("perm");
  if (!at.has_attr("perm")) {
    perm.resize(static_cast<size_t>(at.Rank(x)));
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  at.Out(0, at.Node("TransposeD", {x}, {{"perm", perm}}));
}

// ---- cuts and joins ----

void LowerConcat(Lowering& at) {
  Lowering::Inputs inputs;
  for (int i = 0; i < at.inputs(); ++i) inputs.emplace_back(at.in(i));
  at.Out(0, at.Node("ConcatD", std::move(inputs),
                    {{"N", at.inputs()}, {"concat_dim", at.Int("axis", 1)}}));
}

// As StridedSliceV2; positions past the ends are cut off by both.
void LowerSlice1(Lowering& at) {
  const std::vector<int64_t> begin = at.IntList("starts");
  std::vector<int64_t> axes = at.IntList("axes");
  if (!at.has_attr("axes")) {
    axes.resize(begin.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  at.Out(0, at.Node("StridedSliceV2",
                    {at.in(0), at.Ints(begin), at.Ints(at.IntList("ends")), at.Ints(axes)}));
}

// The begins of a slice. Backwards, one that lies before the first element begins there, where ours
// takes nothing; so it is limited to minus the size.
Value BeginsOf(Lowering& at, Value x) {
  const Value begin = at.in(1);
  const auto negative = [&](Value list) {  // one of it may be below 0
    const std::optional<std::vector<int64_t>> known = at.KnownInts(list);
    return !known || std::any_of(known->begin(), known->end(), [](int64_t n) { return n < 0; });
  };
  if (!at.has(4) || !negative(at.in(4)) || !negative(begin)) return begin;
  Value sizes = at.Cast(at.ShapeOf(x), at.dtype(begin));
  if (at.has(3)) sizes = at.Gather(sizes, at.in(3), 0);
  const Value limited = at.Max(begin, at.Unary("Neg", sizes));
  at.emitter().Hint(limited, {at.dtype(begin), at.shape(begin)});
  return limited;
}

void LowerSlice10(Lowering& at) {
  const Value x = at.in(0);
  const Value y =
      at.Node("StridedSliceV2", {x, BeginsOf(at, x), at.in(2), at.Given(3), at.Given(4)});
  if (at.shape(x).has_rank()) at.emitter().Hint(y, {at.dtype(x), OpenShape(at.shape(x).rank())});
  at.Out(0, y);
}

// The sizes of equal parts of an open dimension, the last ones smaller or empty when they do not
// fit (version 18).
Value EqualParts(Lowering& at, Value x, int axis, int parts) {
  const Value whole = at.DimOf(x, axis);
  const Value each = at.Div(at.Add(whole, at.Ints({parts - 1})), at.Ints({parts}));
  std::vector<int64_t> numbers(static_cast<size_t>(parts));
  std::iota(numbers.begin(), numbers.end(), 0);
  const Value left = at.Sub(whole, at.Mul(each, at.Ints(numbers)));
  return at.Min(at.Max(left, at.Ints({0})), each);
}

// The same where the dimension is known.
std::vector<int64_t> EqualSizes(int64_t whole, int parts) {
  const int64_t each = (whole + parts - 1) / parts;
  std::vector<int64_t> sizes;
  for (int64_t left = whole, i = 0; i < parts; ++i, left -= each) {
    sizes.push_back(std::clamp<int64_t>(left, 0, each));
  }
  return sizes;
}

// Into equal parts, or sizes by attribute or input.
void LowerSplit(Lowering& at) {
  const Value x = at.in(0);
  const int parts = at.outputs();
  const int axis = at.Axis(at.Int("axis", 0), at.Rank(x));
  const bool counted = at.has_attr("num_outputs");
  if (at.version() >= 18 && at.has(1) == counted) {
    at.Fail(Code::kCorrupt, "has {}; expected one of the two",
            counted ? "num_outputs and sizes" : "neither num_outputs nor sizes");
  } else if (counted && at.Int("num_outputs", 0) != parts) {
    at.Fail(Code::kCorrupt, "num_outputs is {} and the node has {}", at.Int("num_outputs", 0),
            parts);
  }
  if (!at.ok() || parts == 0) return;
  std::vector<int64_t> sizes = at.IntList("split");
  const int64_t whole = at.KnownSize(x, axis);
  if (!at.has(1) && sizes.empty() && whole >= 0 && at.version() < 18 && whole % parts != 0) {
    return at.Fail(Code::kCorrupt, "{} elements along axis {} in {} equal parts", whole, axis,
                   parts);
  }
  if (!at.has(1) && sizes.empty() && whole >= 0) sizes = EqualSizes(whole, parts);
  Value y;
  if (at.has(1) || sizes.empty()) {
    const Value splits = at.has(1) ? at.in(1) : EqualParts(at, x, axis, parts);
    y = at.Node("SplitV", {x, splits, at.IntScalar(axis)}, {{"num_split", parts}}, parts);
  } else {
    y = at.Node("SplitVD", {x}, {{"num_split", parts}, {"size_splits", sizes}, {"split_dim", axis}},
                parts);
  }
  for (int i = 0; i < parts && at.ok(); ++i) {
    at.emitter().Hint(Lowering::Port(y, i), {at.dtype(x), OpenShape(at.Rank(x))});
    at.Out(i, Lowering::Port(y, i));
  }
}

// ---- copies ----

// Both shapes broadcast to each other, which a product with ones does for every type of number.
void LowerExpand(Lowering& at) {
  const Value x = at.in(0), shape = at.in(1);
  const DataType dtype = at.dtype(x);
  const bool flag = dtype == DataType::kBool;
  const Value ones = at.Filled(shape, at.Scalar(1, dtype));
  at.Out(0, at.Node(flag ? "LogicalAnd" : "Mul", {x, ones}));
}

void LowerTile(Lowering& at) {
  const Value x = at.in(0);
  const Value y = at.Node("Tile", {x, at.in(1)});
  if (at.shape(x).has_rank()) at.emitter().Hint(y, {at.dtype(x), OpenShape(at.shape(x).rank())});
  at.Out(0, y);
}

// Place i of the result along an axis is place (i - pad before) mod size of x.
Value Wrapped(Lowering& at, Value x, const std::vector<int64_t>& pads) {
  const int rank = at.Rank(x);
  if (at.ok() && pads.size() != static_cast<size_t>(2 * rank)) {
    at.Fail(Code::kCorrupt, "{} pads for {} dimensions", pads.size(), rank);
  }
  if (!at.ok()) return x;
  const Value shape = at.ShapeOf(x);
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t before = pads[static_cast<size_t>(axis)];
    const int64_t behind = pads[static_cast<size_t>(axis + rank)];
    if (before == 0 && behind == 0) continue;
    const Value size = at.Reshape(at.Slice(shape, 0, axis, axis + 1), {});
    const Value places = CountTo(at, at.Add(size, at.IntScalar(before + behind)), DataType::kInt64);
    const Value shifted = at.Sub(places, at.IntScalar(before));
    x = at.Gather(x, at.Binary("FloorMod", shifted, size), axis);
  }
  return x;
}

void LowerPad(Lowering& at) {
  const Value x = at.in(0);
  const std::string mode = at.Text("mode", "constant");
  Value pads = at.version() < 11 ? at.Ints(at.IntList("pads")) : at.in(1);
  if (at.has(3)) {
    // Version 18 names the axes; the others are not padded.
    const std::optional<std::vector<int64_t>> axes = at.KnownInts(at.in(3)),
                                              some = at.KnownInts(pads);
    const int rank = at.Rank(x);
    if (!axes || !some) return at.Refuse("axes and pads have to be known when it is imported");
    std::vector<int64_t> all(static_cast<size_t>(2 * rank), 0);
    if (some->size() != 2 * axes->size()) {
      return at.Fail(Code::kCorrupt, "{} pads for {} axes", some->size(), axes->size());
    }
    for (size_t i = 0; i < axes->size(); ++i) {
      const auto axis = static_cast<size_t>(at.Axis((*axes)[i], rank));
      if (!at.ok()) return;
      all[axis] = (*some)[i];
      all[axis + static_cast<size_t>(rank)] = (*some)[i + axes->size()];
    }
    pads = at.Ints(all);
  }
  const int64_t given = at.KnownSize(pads, 0);
  if (at.ok() && at.shape(x).has_rank() && given >= 0 && given != 2 * at.shape(x).rank()) {
    return at.Fail(Code::kCorrupt, "{} pads for {} dimensions; expected two for each", given,
                   at.shape(x).rank());
  }
  if (mode == "wrap") {
    const std::optional<std::vector<int64_t>> known = at.KnownInts(pads);
    if (!known) return at.Refuse("pads of mode wrap have to be known when it is imported");
    return at.Out(0, at.Unary("Identity", Wrapped(at, x, *known)));
  }
  Lowering::Inputs inputs = {x, pads};
  if (mode == "constant") {
    const Value value = at.version() < 11 ? at.Like(at.Float("value", 0), x)
                        : at.has(2)       ? at.in(2)
                                          : at.Like(0, x);
    inputs.emplace_back(value);
  }
  const Value y =
      at.Node("PadV3", std::move(inputs), {{"mode", mode}, {"paddings_contiguous", false}});
  if (at.shape(x).has_rank()) at.emitter().Hint(y, {at.dtype(x), OpenShape(at.shape(x).rank())});
  at.Out(0, y);
}

// ---- what follows from shapes ----

void LowerShape(Lowering& at) {
  const Value x = at.in(0);
  if (!at.has_attr("start") && !at.has_attr("end")) {
    return at.Out(0, at.Node("Shape", {x}, {{"dtype", DataType::kInt64}}));
  }
  const int64_t begin = at.Int("start", 0), end = at.Int("end", INT64_MAX);
  at.Out(0, at.Slice(at.ShapeOf(x), 0, begin, end));
}

void LowerSize(Lowering& at) {
  at.Out(0, at.Node("Size", {at.in(0)}, {{"dtype", DataType::kInt64}}));
}

// The tensor that one of the value attributes holds.
void LowerConstant(Lowering& at) {
  const OnnxNode& node = at.node();
  if (node.outputs.empty()) return;
  const auto count = [](const auto& list) { return Shape({static_cast<int64_t>(list.size())}); };
  if (const OnnxAttribute* value = node.Find("value")) {
    return at.Out(0, at.emitter().Const(value->tensor, node.outputs[0]));
  }
  if (at.has_attr("value_float"))
    return at.Out(0, at.Scalar(at.Float("value_float", 0), DataType::kFloat));
  if (at.has_attr("value_int")) return at.Out(0, at.IntScalar(at.Int("value_int", 0)));
  if (at.has_attr("value_ints")) return at.Out(0, at.Ints(at.IntList("value_ints")));
  if (at.has_attr("value_floats")) {
    const std::vector<float> floats = at.FloatList("value_floats");
    return at.Out(0, at.Floats(floats, count(floats)));
  }
  at.Refuse("holds a value that is no dense tensor of numbers");
}

void LowerConstantOfShape(Lowering& at) {
  const OnnxAttribute* const value = at.node().Find("value");
  Value one = value == nullptr ? at.Scalar(0, DataType::kFloat) : at.emitter().Const(value->tensor);
  if (value != nullptr) one = at.Reshape(one, {});
  const Value shape = at.in(0);
  const Value y = at.Node("Fill", {shape, one});
  if (at.shape(shape).is_static()) {
    at.emitter().Hint(y, {at.dtype(one), OpenShape(static_cast<int>(at.shape(shape).elements()))});
  }
  at.Out(0, y);
}

// What is known of a range that has no end.
void CheckRange(Lowering& at, Value start, Value limit, Value delta) {
  const std::optional<double> from = at.KnownNumber(start), to = at.KnownNumber(limit);
  const std::optional<double> step = at.KnownNumber(delta);
  if (step && (*step == 0 || !std::isfinite(*step))) {
    at.Fail(Code::kCorrupt, "delta is {}; expected a number other than 0", *step);
  }
  if ((from && !std::isfinite(*from)) || (to && !std::isfinite(*to))) {
    at.Fail(Code::kCorrupt, "the range from {} to {} has no end", from.value_or(0), to.value_or(0));
  }
}

// How many numbers there are must be known to make them: those of floats are counted first.
void LowerRange(Lowering& at) {
  const DataType dtype = at.dtype(at.in(0));
  // Ours has no integers of 16 bits.
  const bool narrow = IsInteger(dtype) && BitsOf(dtype) < 32;
  const auto operand = [&](int i) {
    return narrow ? at.Cast(at.in(i), DataType::kInt32) : at.in(i);
  };
  const Value start = operand(0), limit = operand(1), delta = operand(2);
  CheckRange(at, start, limit, delta);
  const bool known = at.emitter().constant(start) != nullptr;
  if (IsFloating(dtype) && !known) {
    const Value count =
        at.Cast(at.Unary("Ceil", at.Div(at.Sub(limit, start), delta)), DataType::kInt64);
    const Value steps = CountTo(at, at.Max(count, at.IntScalar(0)), dtype);
    return at.Out(0, at.Add(start, at.Mul(steps, delta)));
  }
  const Value y = at.Node("Range", {start, limit, delta});
  at.emitter().Hint(y, {at.dtype(start), Shape({kUnknownDim})});
  at.Out(0, at.Cast(y, dtype));
}

// Ones on diagonal k of a matrix like x.
void LowerEyeLike(Lowering& at) {
  const Value x = at.in(0);
  const int64_t k = at.Int("k", 0), number = at.Int("dtype", 0);
  const DataType dtype = number == 0 ? at.dtype(x) : DataTypeFromOnnx(number);
  const Value zero = at.IntScalar(0), one = at.IntScalar(1), shape = at.ShapeOf(x);
  const auto count = [&](int64_t axis) {
    return at.Reshape(at.Gather(shape, at.Ints({axis}), 0), {});
  };
  const Value rows = at.Unsqueeze(at.Range(zero, count(0), one), {1});
  const Value columns = at.Range(zero, count(1), one);
  const Value on = at.Binary("Equal", at.Add(rows, at.IntScalar(k)), columns);
  at.Out(0, at.Cast(on, dtype));
}

// ---- blocks ----

void LowerDepthToSpace(Lowering& at) {
  const bool crd = at.Text("mode", "DCR") == "CRD";
  at.Out(0, at.Node("DepthToSpace", {at.in(0)},
                    {{"block_size", at.Int("blocksize", 1)},
                     {"mode", crd ? "CRD" : "DCR"},
                     {"data_format", "NCHW"}}));
}

void LowerSpaceToDepth(Lowering& at) {
  at.Out(0, at.Node("SpaceToDepth", {at.in(0)},
                    {{"block_size", at.Int("blocksize", 1)}, {"data_format", "NCHW"}}));
}

// The triangle at and above (or below) diagonal k, which may be known only when it runs.
void LowerTrilu(Lowering& at) {
  const Value x = at.in(0);
  const bool upper = at.Int("upper", 1) != 0;
  const int rank = at.Rank(x);
  const Value zero = at.IntScalar(0), one = at.IntScalar(1), shape = at.ShapeOf(x);
  const auto count = [&](int64_t axis) {
    return at.Reshape(at.Gather(shape, at.Ints({axis}), 0), {});
  };
  Value rows = at.Unsqueeze(at.Range(zero, count(rank - 2), one), {1});
  const Value columns = at.Range(zero, count(rank - 1), one);
  if (at.has(1)) rows = at.Add(rows, at.Reshape(at.in(1), {}));
  const Value keep = at.Binary(upper ? "LessEqual" : "GreaterEqual", rows, columns);
  const Value y = at.Select(keep, x, at.Like(0, x));
  at.emitter().Hint(y, {at.dtype(x), at.shape(x)});  // open extents leave the ranges unknown
  at.Out(0, y);
}

}  // namespace

void AddShapeRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"Concat", 4, LowerConcat, "ConcatD", "T... axis:int!"},
      {"Constant", 1, LowerConstant, "Const",
       "sparse_value:sparse@11 value:tensor value_float:float@12 value_floats:floats@12 "
       "value_int:int@12 value_ints:ints@12 value_string:string@12 value_strings:strings@12"},
      {"ConstantOfShape", 9, LowerConstantOfShape, "Fill", "L value:tensor"},
      {"DepthToSpace", 1, LowerDepthToSpace, "DepthToSpace", "_ blocksize:int! mode:string@11"},
      {"Expand", 8, LowerExpand, "Fill, Mul", "_ L"},
      {"EyeLike", 9, LowerEyeLike, "Range, Equal, Cast", "_ dtype:int k:int"},
      {"Flatten", 1, LowerFlatten, "Flatten", "_ axis:int"},
      {"Pad", 2, LowerPad, "PadV3", "T L? T? I? mode:string pads:ints!<11 value:float<11"},
      {"Range", 11, LowerRange, "Range", "T=RS T T"},
      {"Reshape", 1, LowerReshape, "Reshape", "_ L allowzero:int@14"},
      {"Shape", 1, LowerShape, "Shape", "_ end:int@15 start:int@15"},
      {"Size", 1, LowerSize, "Size", "_"},
      {"Slice", 1, LowerSlice1, "StridedSliceV2", "_ axes:ints ends:ints! starts:ints!"},
      {"Slice", 10, LowerSlice10, "StridedSliceV2", "_ T=I T T? T?"},
      {"SpaceToDepth", 1, LowerSpaceToDepth, "SpaceToDepth", "_ blocksize:int!"},
      {"Split", 2, LowerSplit, "SplitV", "_ L? axis:int num_outputs:int@18 split:ints<13"},
      {"Squeeze", 1, LowerSqueeze, "SqueezeV3", "_ L? axes:ints<13"},
      {"Tile", 6, LowerTile, "Tile", "_ L"},
      {"Transpose", 1, LowerTranspose, "TransposeD", "_ perm:ints"},
      {"Trilu", 14, LowerTrilu, "Range, SelectV2", "_ L? upper:int"},
      {"Unsqueeze", 1, LowerUnsqueeze, "UnsqueezeV3", "_ L? axes:ints!<13"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
