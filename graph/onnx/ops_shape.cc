// Values stay, shapes change: views, cuts, copies; what follows from shapes alone.
#include <algorithm>
#include <numeric>

#include "graph/onnx/op_table.h"
#include "graph/onnx/reader.h"
#include "graph/onnx/rewrites.h"

namespace npumesh {
namespace {

Shape OpenShape(int rank) {
  return Shape(std::vector<int64_t>(static_cast<size_t>(std::max(rank, 0)), kUnknownDim));
}

// ---- views ----

void LowerReshape(Lowering& at) {
  const Value x = at.in(0);
  if (at.version() < 5) return at.Out(0, at.Reshape(x, at.IntList("shape")));
  const Value shape = at.in(1);
  // With allowzero a 0 is a size of 0, which an empty x keeps in ours too; else it copies one of x.
  const Value y = at.Node("Reshape", {{"x", x}, {"shape", shape}});
  const int64_t rank = at.shape(shape).rank() == 1 ? at.shape(shape)[0] : -1;
  if (rank >= 0) at.emitter().Hint(y, {at.dtype(x), OpenShape(static_cast<int>(rank))});
  at.Out(0, y);
}

void LowerFlatten(Lowering& at) {
  at.Out(0, at.Node("Flatten", {{"x", at.in(0)}}, {{"axis", AttrValue::Int(at.Int("axis", 1))}}));
}

// Axes by attribute, or by an input that may be known only when it runs.
void LowerSqueeze(Lowering& at) {
  const Value x = at.in(0);
  if (at.has_attr("axes")) return at.Out(0, at.Squeeze(x, at.IntList("axes")));
  if (!at.has(1)) return at.Out(0, at.Node("SqueezeV3", {{"x", x}}));
  const Value axes = at.in(1);
  const Value y = at.Node("SqueezeV3", {{"x", x}, {"axes", axes}});
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
  const Value y = at.Node("UnsqueezeV3", {{"x", x}, {"axes", axes}});
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
  at.Out(0, at.Node("TransposeD", {{"x", x}}, {{"perm", AttrValue::Ints(perm)}}));
}

// ---- cuts and joins ----

void LowerConcat(Lowering& at) {
  Lowering::Inputs inputs;
  for (int i = 0; i < at.inputs(); ++i) inputs.emplace_back(fmt::format("x{}", i), at.in(i));
  at.Out(0, at.Node("ConcatD", std::move(inputs),
                    {{"N", AttrValue::Int(at.inputs())},
                     {"concat_dim", AttrValue::Int(at.Int("axis", 1))}}));
}

// As StridedSliceV2; positions past the ends are cut off by both.
void LowerSlice1(Lowering& at) {
  const std::vector<int64_t> begin = at.IntList("starts");
  std::vector<int64_t> axes = at.IntList("axes");
  if (!at.has_attr("axes")) {
    axes.resize(begin.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  at.Out(0, at.Node("StridedSliceV2", {{"x", at.in(0)},
                                       {"begin", at.Ints(begin)},
                                       {"end", at.Ints(at.IntList("ends"))},
                                       {"axes", at.Ints(axes)}}));
}

void LowerSlice10(Lowering& at) {
  const Value x = at.in(0);
  Lowering::Inputs inputs = {{"x", x}, {"begin", at.in(1)}, {"end", at.in(2)}};
  if (at.has(3)) inputs.emplace_back("axes", at.in(3));
  if (at.has(4)) inputs.emplace_back("strides", at.in(4));
  const Value y = at.Node("StridedSliceV2", std::move(inputs));
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
  if (!at.ok() || parts == 0) return;
  std::vector<int64_t> sizes = at.IntList("split");
  const int64_t whole = at.shape(x)[axis];
  if (!at.has(1) && sizes.empty() && whole >= 0) sizes = EqualSizes(whole, parts);
  Value y;
  if (at.has(1) || sizes.empty()) {
    const Value splits = at.has(1) ? at.in(1) : EqualParts(at, x, axis, parts);
    y = at.Node("SplitV", {{"x", x}, {"size_splits", splits}, {"split_dim", at.IntScalar(axis)}},
                {{"num_split", AttrValue::Int(parts)}}, parts);
  } else {
    y = at.Node("SplitVD", {{"x", x}},
                {{"num_split", AttrValue::Int(parts)},
                 {"size_splits", AttrValue::Ints(sizes)},
                 {"split_dim", AttrValue::Int(axis)}},
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
  const std::optional<std::vector<int64_t>> known = at.KnownInts(shape);
  const DataType dtype = at.dtype(x);
  const bool flag = dtype == DataType::kBool;
  const Value ones = at.Op("Fill", {{"dims", shape}, {"value", at.Scalar(1, dtype)}});
  if (!known && at.shape(shape).is_static()) {
    at.emitter().Hint(ones, {dtype, OpenShape(static_cast<int>(at.shape(shape).elements()))});
  }
  at.Out(0, at.Node(flag ? "LogicalAnd" : "Mul", {{"x1", x}, {"x2", ones}}));
}

void LowerTile(Lowering& at) {
  const Value x = at.in(0);
  const Value y = at.Node("Tile", {{"x", x}, {"multiples", at.in(1)}});
  if (at.shape(x).has_rank()) at.emitter().Hint(y, {at.dtype(x), OpenShape(at.shape(x).rank())});
  at.Out(0, y);
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
  Lowering::Inputs inputs = {{"x", x}, {"paddings", pads}};
  if (mode == "constant") {
    const Value value = at.version() < 11 ? at.Like(at.Float("value", 0), x)
                        : at.has(2)       ? at.in(2)
                                          : at.Like(0, x);
    inputs.emplace_back("constant_values", value);
  }
  const Value y =
      at.Node("PadV3", std::move(inputs),
              {{"mode", AttrValue::String(mode)}, {"paddings_contiguous", AttrValue::Bool(false)}});
  if (at.shape(x).has_rank()) at.emitter().Hint(y, {at.dtype(x), OpenShape(at.shape(x).rank())});
  at.Out(0, y);
}

// ---- what follows from shapes ----

void LowerShape(Lowering& at) {
  const Value x = at.in(0);
  const AttrValue int64 = AttrValue::Int(static_cast<int64_t>(DataType::kInt64));
  if (!at.has_attr("start") && !at.has_attr("end")) {
    return at.Out(0, at.Node("Shape", {{"x", x}}, {{"dtype", int64}}));
  }
  const int64_t begin = at.Int("start", 0), end = at.Int("end", INT64_MAX);
  at.Out(0, at.Slice(at.ShapeOf(x), 0, begin, end));
}

void LowerSize(Lowering& at) {
  at.Out(0, at.Node("Size", {{"x", at.in(0)}},
                    {{"dtype", AttrValue::Int(static_cast<int64_t>(DataType::kInt64))}}));
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
  const Value y = at.Node("Fill", {{"dims", shape}, {"value", one}});
  if (at.shape(shape).is_static()) {
    at.emitter().Hint(y, {at.dtype(one), OpenShape(static_cast<int>(at.shape(shape).elements()))});
  }
  at.Out(0, y);
}

// How many numbers there are must be known to make them: those of floats are counted first.
void LowerRange(Lowering& at) {
  const Value start = at.in(0);
  const bool known = at.emitter().constant(start) != nullptr;
  if (IsFloating(at.dtype(start)) && !known) {
    const Value delta = at.in(2);
    const Value count =
        at.Cast(at.Unary("Ceil", at.Div(at.Sub(at.in(1), start), delta)), DataType::kInt64);
    const Value steps = CountTo(at, at.Max(count, at.IntScalar(0)), at.dtype(start));
    return at.Out(0, at.Add(start, at.Mul(steps, delta)));
  }
  const Value y = at.Node("Range", {{"start", start}, {"limit", at.in(1)}, {"delta", at.in(2)}});
  at.emitter().Hint(y, {at.dtype(start), Shape({kUnknownDim})});
  at.Out(0, y);
}

// Ones on diagonal k of a matrix like x.
void LowerEyeLike(Lowering& at) {
  const Value x = at.in(0);
  const int64_t k = at.Int("k", 0), number = at.Int("dtype", 0);
  const DataType dtype = number == 0 ? at.dtype(x) : TypeOfOnnx(number);
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
  at.Out(0, at.Node("DepthToSpace", {{"x", at.in(0)}},
                    {{"block_size", AttrValue::Int(at.Int("blocksize", 1))},
                     {"mode", AttrValue::String(crd ? "CRD" : "DCR")},
                     {"data_format", AttrValue::String("NCHW")}}));
}

void LowerSpaceToDepth(Lowering& at) {
  at.Out(0, at.Node("SpaceToDepth", {{"x", at.in(0)}},
                    {{"block_size", AttrValue::Int(at.Int("blocksize", 1))},
                     {"data_format", AttrValue::String("NCHW")}}));
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
      {"Concat", 4, LowerConcat, "ConcatD"},
      {"Constant", 1, LowerConstant, "Const"},
      {"ConstantOfShape", 9, LowerConstantOfShape, "Fill"},
      {"DepthToSpace", 1, LowerDepthToSpace, "DepthToSpace"},
      {"Expand", 8, LowerExpand, "Fill, Mul"},
      {"EyeLike", 9, LowerEyeLike, "Range, Equal, Cast"},
      {"Flatten", 1, LowerFlatten, "Flatten"},
      {"Pad", 2, LowerPad, "PadV3"},
      {"Range", 11, LowerRange, "Range"},
      {"Reshape", 1, LowerReshape, "Reshape"},
      {"Shape", 1, LowerShape, "Shape"},
      {"Size", 1, LowerSize, "Size"},
      {"Slice", 1, LowerSlice1, "StridedSliceV2"},
      {"Slice", 10, LowerSlice10, "StridedSliceV2"},
      {"SpaceToDepth", 1, LowerSpaceToDepth, "SpaceToDepth"},
      {"Split", 2, LowerSplit, "SplitV"},
      {"Squeeze", 1, LowerSqueeze, "SqueezeV3"},
      {"Tile", 6, LowerTile, "Tile"},
      {"Transpose", 1, LowerTranspose, "TransposeD"},
      {"Trilu", 14, LowerTrilu, "Range, SelectV2"},
      {"Unsqueeze", 1, LowerUnsqueeze, "UnsqueezeV3"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
