// Elements and rows that indices choose, read and written into copies.
#include <algorithm>

#include "tests/fuzz/engine/draws.h"

namespace npumesh::fuzz {
namespace {

bool IsIndexable(const PlainTensor& x) {
  return x.rank() >= 1 && x.count() > 0 && x.dtype != DataType::kBool;
}

// Constant positions in [0, extent); an open dimension is only sure to have the first.
PlainTensor RandomIndices(GraphWriter& w, const Extents& dims, int64_t extent) {
  PlainTensor indices = Zeros(w.dice().Chance(50) ? DataType::kInt64 : DataType::kInt32, dims);
  for (Number& index : indices.v) {
    index = static_cast<Number>(IsOpen(extent) ? 0 : w.dice().Below(extent));
  }
  return indices;
}

Extents RandomIndexDims(GraphWriter& w) {
  Extents dims(static_cast<size_t>(w.dice().Between(0, 2)));
  for (int64_t& extent : dims) extent = w.dice().Between(1, 3);
  return dims;
}

// Positions that the graph itself computed, where some are in range.
const KnownValue* KnownIndices(GraphWriter& w, int64_t extent) {
  if (IsOpen(extent)) return nullptr;
  return w.Pick([=](const PlainTensor& y) {
    const bool integers = y.dtype == DataType::kInt32 || y.dtype == DataType::kInt64;
    return integers && y.rank() <= 2 &&
           std::all_of(y.v.begin(), y.v.end(), [=](Number v) { return v >= 0 && v < extent; });
  });
}

bool DrawGather(GraphWriter& w) {
  const KnownValue* x = w.Pick(IsIndexable);
  if (x == nullptr) return false;
  const bool plain = w.dice().Chance(40);
  const int64_t axis = plain ? 0 : w.dice().Below(x->now.rank());
  const int64_t extent = x->now.dims[static_cast<size_t>(axis)];
  const KnownValue* held = w.dice().Chance(40) ? KnownIndices(w, extent) : nullptr;
  const Value indices = held != nullptr
                            ? held->value
                            : w.AddConst(RandomIndices(w, RandomIndexDims(w), extent)).value;
  if (plain) return w.Emit("Gather", {{"x", x->value}, {"indices", indices}});
  return w.Emit("GatherV2", {{"x", x->value}, {"indices", indices}, {"axis", w.Int(axis)}});
}

bool DrawGatherElements(GraphWriter& w) {
  const KnownValue* x =
      w.Pick([](const PlainTensor& x) { return IsIndexable(x) && !HasOpen(x.dims); });
  if (x == nullptr) return false;
  const int64_t axis = w.dice().Below(x->now.rank());
  const int64_t extent = x->now.dims[static_cast<size_t>(axis)];
  return w.Emit(
      "GatherElements",
      {{"x", x->value}, {"index", w.AddConst(RandomIndices(w, x->now.dims, extent)).value}},
      {{"dim", AttrValue::Int(axis)}});
}

bool DrawGatherNd(GraphWriter& w) {
  const KnownValue* x = w.Pick(IsIndexable);
  return x != nullptr &&
         w.Emit("GatherNd",
                {{"x", x->value},
                 {"indices", w.AddConst(RandomIndices(w, {2, 1}, x->now.dims[0])).value}});
}

bool DrawScatterElements(GraphWriter& w) {
  const KnownValue* x =
      w.Pick([](const PlainTensor& x) { return IsIndexable(x) && !HasOpen(x.dims); });
  if (x == nullptr) return false;
  // One place for each element along the axis, so that no order of writes matters.
  PlainTensor indices = Zeros(DataType::kInt64, x->now.dims);
  const int64_t last = x->now.dims.back();
  const int64_t shift = w.dice().Below(last);
  for (int64_t i = 0; i < indices.count(); ++i) {
    indices.at(i) = static_cast<Number>((i % last + shift) % last);
  }
  constexpr const char* kReductions[] = {"none", "add", "max", "min"};
  return w.Emit("ScatterElements",
                {{"data", x->value},
                 {"indices", w.AddConst(indices).value},
                 {"updates", Operand(w, x->now.dtype, x->now.dims)}},
                {{"axis", AttrValue::Int(x->now.rank() - 1)},
                 {"reduction", AttrValue::String(kReductions[w.dice().Below(4)])}});
}

bool DrawScatterNd(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) {
    return x.rank() == 2 && x.dims[0] <= 3 && x.dims[0] > 0 && !IsOpen(x.dims[1]) &&
           x.dtype != DataType::kBool;
  });
  if (x == nullptr) return false;
  return w.Emit("ScatterNd",
                {{"indices", w.AddConst(RandomIndices(w, {x->now.dims[0], 1}, 4)).value},
                 {"x", x->value},
                 {"shape", w.Ints({4, x->now.dims[1]})}});
}

bool DrawTensorScatter(GraphWriter& w) {
  const KnownValue* x = w.Pick(IsIndexable);
  if (x == nullptr) return false;
  Extents updates = x->now.dims;
  updates[0] = 1;
  return w.Emit("TensorScatterUpdate",
                {{"x", x->value},
                 {"indices", w.AddConst(RandomIndices(w, {1, 1}, x->now.dims[0])).value},
                 {"updates", Operand(w, x->now.dtype, updates)}});
}

bool DrawMaskedScatter(GraphWriter& w) {
  const KnownValue* x =
      w.Pick([](const PlainTensor& x) { return IsIndexable(x) && x.dtype != DataType::kBool; });
  return x != nullptr &&
         w.Emit("MaskedScatter", {{"x", x->value},
                                  {"mask", Operand(w, DataType::kBool, x->now.dims)},
                                  {"updates", Operand(w, x->now.dtype, x->now.dims)}});
}

}  // namespace

std::vector<Draw> GatherDraws() {
  return {{{"Gather", "GatherV2"}, 3, DrawGather},  {{"GatherElements"}, 1, DrawGatherElements},
          {{"GatherNd"}, 1, DrawGatherNd},          {{"ScatterElements"}, 1, DrawScatterElements},
          {{"ScatterNd"}, 1, DrawScatterNd},        {{"TensorScatterUpdate"}, 1, DrawTensorScatter},
          {{"MaskedScatter"}, 1, DrawMaskedScatter}};
}

}  // namespace npumesh::fuzz
