// Views and other arrangements of elements.
#include <algorithm>
#include <numeric>

#include "tests/fuzz/engine/draws.h"

namespace npumesh::fuzz {
namespace {

bool Anything(const PlainTensor&) {
  return true;
}

Fits Ranked(int least) {
  return [=](const PlainTensor& x) { return x.rank() >= least; };
}

int RandomAxis(GraphWriter& w, const PlainTensor& x) {
  return static_cast<int>(w.dice().Below(x.rank()));
}

int64_t ExtentOf(const PlainTensor& x, int axis) {
  return x.dims[static_cast<size_t>(axis)];
}

// ---- views ----

// Other dimensions for as many elements; at most one is open, and is written as -1.
Extents OtherDims(GraphWriter& w, Extents dims) {
  if (dims.size() >= 2 && w.dice().Chance(60)) {
    const auto d = static_cast<size_t>(w.dice().Below(static_cast<int64_t>(dims.size()) - 1));
    dims[d] *= dims[d + 1];
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(d) + 1);
  } else if (w.dice().Chance(50)) {
    dims.insert(dims.begin() + w.dice().Between(0, static_cast<int64_t>(dims.size())), 1);
  } else if (!HasOpen(dims)) {
    std::reverse(dims.begin(), dims.end());
  }
  bool open = false;
  for (int64_t& extent : dims) {
    if (!IsOpen(extent) || open) continue;
    open = true;
    extent = -1;
  }
  return dims;
}

bool DrawReshape(GraphWriter& w) {
  const KnownValue* x = w.Pick(Anything);
  if (x == nullptr) return false;
  const Value shape = w.Sizes(OtherDims(w, x->now.dims), w.dice().Chance(15));
  return w.Emit("Reshape", {{"x", x->value}, {"shape", shape}});
}

// To the shape of another value, which is asked when the graph runs.
bool DrawReshapeLike(GraphWriter& w) {
  const KnownValue* x = w.Pick(Anything);
  if (x == nullptr) return false;
  const KnownValue* like =
      w.Pick([&](const PlainTensor& y) { return y.count() == x->now.count() && y.count() > 0; });
  if (like == nullptr || !w.Emit("Shape", {{"x", like->value}})) return false;
  return w.Emit("Reshape", {{"x", x->value}, {"shape", w.last().value}});
}

bool DrawSqueeze(GraphWriter& w) {
  const KnownValue* x =
      w.Pick([](const PlainTensor& x) { return std::count(x.dims.begin(), x.dims.end(), 1) > 0; });
  if (x == nullptr) return false;
  std::vector<int64_t> axes;
  for (int d = 0; d < x->now.rank() && axes.empty(); ++d) {
    if (ExtentOf(x->now, d) == 1) axes.push_back(d);
  }
  const std::string type = w.dice().Chance(70) ? "Squeeze" : "SqueezeV2";
  return w.Emit(type, {{"x", x->value}}, {{"axis", AttrValue::Ints(axes)}});
}

bool DrawUnsqueeze(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) { return x.rank() <= 4; });
  if (x == nullptr) return false;
  const int64_t axis = w.dice().Between(-1, x->now.rank());
  if (w.dice().Chance(50)) {
    return w.Emit("Unsqueeze", {{"x", x->value}}, {{"axes", AttrValue::Ints({axis})}});
  }
  return w.Emit("ExpandDims", {{"x", x->value}, {"axis", w.Int(axis)}});
}

bool DrawFlatten(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) {
    return x.rank() >= 1 && (x.dtype == DataType::kFloat || x.dtype == DataType::kInt32 ||
                             x.dtype == DataType::kFloat16);
  });
  return x != nullptr &&
         w.Emit("Flatten", {{"x", x->value}}, {{"axis", AttrValue::Int(RandomAxis(w, x->now))}});
}

bool DrawIdentity(GraphWriter& w) {
  const KnownValue* x = w.Pick(Anything);
  return x != nullptr && w.Emit(w.dice().Chance(60) ? "Identity" : "TensorMove", {{"x", x->value}});
}

// Numbers that are finite either way: which NaN it was, the interpreter forgets.
bool DrawBitcast(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) { return x.dtype == DataType::kFloat; });
  return x != nullptr && w.Emit("Bitcast", {{"x", x->value}},
                                {{"type", AttrValue::Int(static_cast<int64_t>(DataType::kInt32))}});
}

bool DrawIdentityN(GraphWriter& w) {
  const KnownValue *a = w.Pick(Anything), *b = w.Pick(Anything);
  return a != nullptr && b != nullptr &&
         w.Emit("IdentityN", {{"x0", a->value}, {"x1", b->value}}, {}, 2);
}

// ---- another order ----

bool DrawTranspose(GraphWriter& w) {
  const KnownValue* x = w.Pick(Ranked(2));
  if (x == nullptr) return false;
  std::vector<int64_t> order(x->now.dims.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(w.dice().Below(static_cast<int64_t>(i)))]);
  }
  if (w.dice().Chance(60)) {
    return w.Emit("Transpose", {{"x", x->value}, {"perm", w.Ints(order)}});
  }
  return w.Emit("TransposeD", {{"x", x->value}}, {{"perm", AttrValue::Ints(order)}});
}

bool DrawReverse(GraphWriter& w) {
  const KnownValue* x = w.Pick(Ranked(1));
  return x != nullptr &&
         w.Emit("ReverseV2", {{"x", x->value}, {"axis", w.Ints({RandomAxis(w, x->now)})}});
}

bool DrawRoll(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) {
    return x.rank() >= 1 && x.count() > 0 && x.dtype != DataType::kBool;
  });
  if (x == nullptr) return false;
  return w.Emit("Roll", {{"x", x->value}},
                {{"shifts", AttrValue::Ints({w.dice().Between(-3, 3)})},
                 {"dims", AttrValue::Ints({RandomAxis(w, x->now)})}});
}

bool DrawTriangle(GraphWriter& w) {
  const KnownValue* x = w.Pick(Ranked(2));
  return x != nullptr && w.Emit(w.dice().Chance(50) ? "Tril" : "Triu", {{"x", x->value}},
                                {{"diagonal", AttrValue::Int(w.dice().Between(-1, 1))}});
}

// ---- pieces ----

bool DrawSlice(GraphWriter& w) {
  const KnownValue* x = w.Pick(Ranked(1));
  if (x == nullptr) return false;
  std::vector<int64_t> offsets, size;
  for (const int64_t extent : x->now.dims) {
    offsets.push_back(IsOpen(extent) || extent == 0 ? 0 : w.dice().Below(extent));
    size.push_back(IsOpen(extent) ? -1 : w.dice().Between(0, extent - offsets.back()));
    if (size.back() == 0 && w.dice().Chance(80)) size.back() = -1;
  }
  if (w.dice().Chance(60) || HasOpen(x->now.dims)) {
    return w.Emit("Slice", {{"x", x->value}, {"offsets", w.Ints(offsets)}, {"size", w.Ints(size)}});
  }
  return w.Emit("SliceD", {{"x", x->value}},
                {{"offsets", AttrValue::Ints(offsets)}, {"size", AttrValue::Ints(size)}});
}

// An axis of a known even extent; -1: no such axis.
int EvenAxis(const PlainTensor& x) {
  for (int d = 0; d < x.rank(); ++d) {
    if (ExtentOf(x, d) % 2 == 0 && ExtentOf(x, d) > 0 && !IsOpen(ExtentOf(x, d))) return d;
  }
  return -1;
}

bool DrawSplit(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) { return EvenAxis(x) >= 0; });
  if (x == nullptr) return false;
  const int64_t axis = EvenAxis(x->now);
  if (w.dice().Chance(50)) {
    PlainTensor dim = Zeros(DataType::kInt32, {});
    dim.at(0) = static_cast<Number>(axis);
    return w.Emit("Split", {{"split_dim", w.AddConst(dim).value}, {"x", x->value}},
                  {{"num_split", AttrValue::Int(2)}}, 2);
  }
  return w.Emit("SplitD", {{"x", x->value}},
                {{"num_split", AttrValue::Int(2)}, {"split_dim", AttrValue::Int(axis)}}, 2);
}

bool DrawSplitV(GraphWriter& w) {
  const KnownValue* x = w.Pick(
      [](const PlainTensor& x) { return x.rank() >= 1 && !IsOpen(x.dims[0]) && x.dims[0] >= 1; });
  if (x == nullptr) return false;
  const int64_t first = w.dice().Between(0, ExtentOf(x->now, 0));
  return w.Emit("SplitV",
                {{"x", x->value},
                 {"size_splits", w.Ints({first, ExtentOf(x->now, 0) - first})},
                 {"split_dim", w.Int(0)}},
                {{"num_split", AttrValue::Int(2)}}, 2);
}

bool DrawUnpack(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) {
    return x.rank() >= 1 && x.dims[0] >= 1 && x.dims[0] <= 4 && x.dtype != DataType::kBool;
  });
  if (x == nullptr) return false;
  const int64_t count = ExtentOf(x->now, 0);
  return w.Emit("Unpack", {{"x", x->value}},
                {{"num", AttrValue::Int(count)}, {"axis", AttrValue::Int(0)}},
                static_cast<int>(count));
}

bool DrawAsStrided(GraphWriter& w) {
  const KnownValue* x =
      w.Pick([](const PlainTensor& x) { return x.count() >= 4 && !HasOpen(x.dims); });
  return x != nullptr && w.Emit("AsStrided", {{"x", x->value},
                                              {"size", w.Ints({2, 2})},
                                              {"stride", w.Ints({1, w.dice().Between(0, 2)})},
                                              {"storage_offset", w.Ints({0})}});
}

// ---- together, and larger ----

bool DrawConcat(GraphWriter& w) {
  const KnownValue* x = w.Pick(Ranked(1));
  if (x == nullptr) return false;
  const int axis = RandomAxis(w, x->now);
  std::vector<GraphBuilder::Input> inputs = {{"x0", x->value}};
  const int64_t count = w.dice().Between(1, 3);
  while (static_cast<int64_t>(inputs.size()) < count) {
    inputs.emplace_back("x" + std::to_string(inputs.size()), Operand(w, x->now.dtype, x->now.dims));
  }
  const GraphBuilder::Attr n{"N", AttrValue::Int(count)};
  if (w.dice().Chance(60)) {
    inputs.emplace_back("concat_dim", w.Int(axis));
    return w.Emit("ConcatV2", inputs, {n});
  }
  return w.Emit("ConcatD", inputs, {n, {"concat_dim", AttrValue::Int(axis)}});
}

bool DrawPack(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) { return x.rank() <= 3; });
  if (x == nullptr) return false;
  const Value other = Operand(w, x->now.dtype, x->now.dims);
  return w.Emit(
      "Pack", {{"x0", x->value}, {"x1", other}},
      {{"axis", AttrValue::Int(w.dice().Between(0, x->now.rank()))}, {"N", AttrValue::Int(2)}});
}

std::vector<int64_t> RandomPaddings(GraphWriter& w, const PlainTensor& x) {
  std::vector<int64_t> paddings(x.dims.size() * 2);
  for (int64_t& padding : paddings) padding = w.dice().Chance(70) ? 0 : w.dice().Between(1, 2);
  return paddings;
}

bool DrawPad(GraphWriter& w) {
  const KnownValue* x = w.Pick(Ranked(1));
  if (x == nullptr) return false;
  const std::vector<int64_t> values = RandomPaddings(w, x->now);
  if (w.dice().Chance(50)) {
    return w.Emit("PadV3", {{"x", x->value}, {"paddings", w.Ints(values)}});
  }
  PlainTensor paddings{DataType::kInt64, {x->now.rank(), 2}, {}};
  for (const int64_t value : values) paddings.v.push_back(static_cast<Number>(value));
  return w.Emit("Pad", {{"x", x->value}, {"paddings", w.AddConst(paddings).value}});
}

// Repeats that constants or inputs of the graph give.
bool DrawTile(GraphWriter& w) {
  const KnownValue* x = w.Pick(Ranked(1));
  if (x == nullptr) return false;
  std::vector<int64_t> multiples(x->now.dims.size(), 1);
  multiples[static_cast<size_t>(RandomAxis(w, x->now))] = w.dice().Between(0, 2);
  if (w.dice().Chance(70)) {
    const Value fed = w.Sizes(multiples, w.dice().Chance(40));
    return w.Emit("Tile", {{"x", x->value}, {"multiples", fed}});
  }
  return w.Emit("TileD", {{"x", x->value}}, {{"multiples", AttrValue::Ints(multiples)}});
}

bool DrawBroadcast(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) { return x.rank() <= 3; });
  if (x == nullptr) return false;
  const KnownValue* like = w.Pick([&](const PlainTensor& y) {
    const auto joined = Joined(x->now.dims, y.dims);
    return joined && *joined == y.dims && y.rank() >= 1;
  });
  if (like != nullptr && w.dice().Chance(50)) {
    return w.Emit("Shape", {{"x", like->value}}) &&
           w.Emit("BroadcastTo", {{"x", x->value}, {"shape", w.last().value}});
  }
  if (HasOpen(x->now.dims)) return false;
  Extents dims = x->now.dims;
  for (int64_t& extent : dims) extent = extent == 1 ? w.dice().Between(1, 3) : extent;
  dims.insert(dims.begin(), 2);
  const bool expands = x->now.dtype != DataType::kBool && w.dice().Chance(30);
  return w.Emit(expands ? "Expand" : "BroadcastTo",
                {{"x", x->value}, {"shape", w.Sizes(dims, w.dice().Chance(20))}});
}

}  // namespace

std::vector<Draw> LayoutDraws() {
  return {{{"Reshape"}, 4, DrawReshape},
          {{"Shape", "Reshape"}, 2, DrawReshapeLike},
          {{"Squeeze", "SqueezeV2"}, 2, DrawSqueeze},
          {{"Unsqueeze", "ExpandDims"}, 2, DrawUnsqueeze},
          {{"Flatten"}, 2, DrawFlatten},
          {{"Identity", "TensorMove"}, 4, DrawIdentity},
          {{"Bitcast"}, 1, DrawBitcast},
          {{"IdentityN"}, 1, DrawIdentityN},
          {{"Transpose", "TransposeD"}, 3, DrawTranspose},
          {{"ReverseV2"}, 1, DrawReverse},
          {{"Roll"}, 1, DrawRoll},
          {{"Tril", "Triu"}, 1, DrawTriangle},
          {{"Slice", "SliceD"}, 2, DrawSlice},
          {{"Split", "SplitD"}, 1, DrawSplit},
          {{"SplitV"}, 1, DrawSplitV},
          {{"Unpack"}, 1, DrawUnpack},
          {{"AsStrided"}, 1, DrawAsStrided},
          {{"ConcatV2", "ConcatD"}, 3, DrawConcat},
          {{"Pack"}, 1, DrawPack},
          {{"Pad", "PadV3"}, 1, DrawPad},
          {{"Tile", "TileD"}, 2, DrawTile},
          {{"Shape", "BroadcastTo", "Expand"}, 2, DrawBroadcast}};
}

}  // namespace npumesh::fuzz
