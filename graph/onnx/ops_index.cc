// Which elements, in which order: gather, scatter, sort, select.
#include <algorithm>

#include "graph/onnx/op_table.h"
#include "graph/onnx/rewrites.h"

namespace npumesh {
namespace {

// Indices below 0 count from the end of dimension `axis` of x.
Value FromTheEnd(Lowering& at, Value indices, Value x, int64_t axis) {
  const Value dim = at.Cast(at.Reshape(at.DimOf(x, axis), {}), at.dtype(indices));
  const Value below = at.Binary("Less", indices, at.Like(0, indices));
  return at.Select(below, at.Add(indices, dim), indices);
}

void LowerGather(Lowering& at) {
  at.Out(0, at.Node("GatherV2", {at.in(0), at.in(1), at.IntScalar(at.Int("axis", 0))},
                    {{"negative_index_support", true}}));
}

void LowerGatherElements(Lowering& at) {
  const Value x = at.in(0);
  const int64_t axis = at.Axis(at.Int("axis", 0), at.Rank(x));
  const Value index = FromTheEnd(at, at.in(1), x, axis);
  at.Out(0, at.Node("GatherElements", {x, index}, {{"dim", axis}}));
}

// Along the first `batch` dimensions an index tuple belongs to the elements at its own place: the
// tuple gets its place as further coordinates in front.
void LowerGatherNd(Lowering& at) {
  const Value x = at.in(0);
  Value indices = at.in(1);
  const auto batch = static_cast<int>(at.Int("batch_dims", 0));
  const int rank = at.Rank(indices);
  for (int axis = batch - 1; axis >= 0 && at.ok(); --axis) {
    const Value count = at.Reshape(at.DimOf(indices, axis), {});
    const Value places = at.Along(at.Range(at.IntScalar(0), count, at.IntScalar(1)), axis, rank);
    const Value zeros = at.Mul(at.Slice(indices, rank - 1, 0, 1), at.Like(0, indices));
    indices = at.Concat({at.Add(zeros, at.Cast(places, at.dtype(indices))), indices}, rank - 1);
  }
  at.Out(0, at.Node("GatherNd", {x, indices}, {{"negative_index_support", true}}));
}

void LowerScatterElements(Lowering& at) {
  const Value x = at.in(0);
  const int64_t axis = at.Axis(at.Int("axis", 0), at.Rank(x));
  const Value indices = FromTheEnd(at, at.in(1), x, axis);
  at.Out(0, at.Node("ScatterElements", {x, indices, at.in(2)},
                    {{"axis", axis}, {"reduction", at.Text("reduction", "none")}}));
}

// Rows that index tuples name are multiplied: tuples become numbers of rows.
Value MultiplyRows(Lowering& at, Value x, Value indices, Value updates) {
  const int rank = at.Rank(indices), of_x = at.Rank(x);
  const int64_t named = at.Dim(indices, rank - 1);
  Value row;
  for (int64_t k = 0; k < named; ++k) {
    const Value part = at.Squeeze(at.Slice(indices, rank - 1, k, k + 1), {rank - 1});
    const Value dim = at.Reshape(at.DimOf(x, k), {});
    row = k == 0 ? part : at.Add(at.Mul(row, dim), part);
  }
  row = at.Reshape(row, {-1});
  const Value inner = named < of_x ? at.Slice(at.ShapeOf(x), 0, named, of_x) : at.Ints({1});
  const int columns = named < of_x ? of_x - static_cast<int>(named) : 1;
  const Value rows_shape = at.Concat({at.Ints({-1}), inner}, 0);
  const Value rows = at.Unary("TensorMove", at.ReshapeTo(x, rows_shape, columns + 1));
  const Value by = at.ReshapeTo(updates, rows_shape, columns + 1);
  const Value y = at.Op("ScatterMul", {rows, row, by});
  return at.ReshapeTo(y, at.ShapeOf(x), of_x);
}

// Coordinates below 0 of index tuples [.., named] count from the ends of the first dimensions of x.
Value TuplesFromTheEnd(Lowering& at, Value indices, Value x) {
  const std::optional<std::vector<int64_t>> known = at.KnownInts(indices);
  const auto counts_up = [](int64_t index) { return index >= 0; };
  if (known && std::all_of(known->begin(), known->end(), counts_up)) return indices;
  const Value sizes = at.Op("StridedSliceV2", {at.ShapeOf(x), at.Ints({0}), at.DimOf(indices, -1),
                                               at.Ints({0}), at.Ints({1})});
  at.emitter().Hint(sizes, {DataType::kInt64, Shape({kUnknownDim})});
  const Value below = at.Binary("Less", indices, at.Like(0, indices));
  const Value wrapped = at.Add(indices, at.Cast(sizes, at.dtype(indices)));
  const Value tuples = at.Select(below, wrapped, indices);
  at.emitter().Hint(tuples, {at.dtype(indices), at.shape(indices)});
  return tuples;
}

void LowerScatterNd(Lowering& at) {
  const Value x = at.in(0), updates = at.in(2);
  const Value indices = TuplesFromTheEnd(at, at.in(1), x);
  const std::string reduction = at.Text("reduction", "none");
  if (reduction == "mul") return at.Out(0, MultiplyRows(at, x, indices, updates));
  std::string type = "TensorScatterUpdate";
  if (reduction == "add") type = "TensorScatterAdd";
  if (reduction == "max") type = "TensorScatterMax";
  if (reduction == "min") type = "TensorScatterMin";
  at.Out(0, at.Node(type, {x, indices, updates}));
}

// ---- selection ----

void LowerNonZero(Lowering& at) {
  const Value y =
      at.Node("NonZero", {at.in(0)}, {{"transpose", true}, {"dtype", DataType::kInt64}});
  at.Out(0, y);
}

void LowerCompress(Lowering& at) {
  Value x = at.in(0);
  const bool flat = !at.has_attr("axis");
  if (flat) x = at.Reshape(x, {-1});
  const int64_t axis = flat ? 0 : at.Axis(at.Int("axis", 0), at.Rank(x));
  at.Out(0, at.Gather(x, PlacesOfTrue(at, at.in(1)), axis));
}

void LowerOneHot(Lowering& at) {
  const Value given = at.in(0), values = at.in(2);
  const Value indices = at.Cast(given, DataType::kInt64);
  const Value depth = at.Cast(at.Reshape(at.in(1), {}), DataType::kInt64);
  const int rank = at.Rank(given) + 1;
  const int axis = at.Axis(at.Int("axis", -1), rank);
  if (!at.ok()) return;
  const Value below = at.Binary("Less", indices, at.IntScalar(0));
  const Value wrapped = at.Select(below, at.Add(indices, depth), indices);
  const Value classes = at.Range(at.IntScalar(0), depth, at.IntScalar(1));
  at.emitter().Hint(classes, {DataType::kInt64, Shape({kUnknownDim})});
  const Value hot =
      at.Binary("Equal", at.Unsqueeze(wrapped, {axis}), at.Along(classes, axis, rank));
  const auto value = [&](int64_t i) { return at.Reshape(at.Slice(values, 0, i, i + 1), {}); };
  at.Out(0, at.Select(hot, value(1), value(0)));
}

// ---- order ----

void LowerTopK(Lowering& at) {
  const Value x = at.in(0);
  const Value k = at.version() < 10 ? at.IntScalar(at.Int("k", 1)) : at.Reshape(at.in(1), {});
  const int axis = at.Axis(at.Int("axis", -1), at.Rank(x));
  const Value y = at.Op("TopKV2", {x, k},
                        {{"sorted", at.Int("sorted", 1) != 0},
                         {"dim", axis},
                         {"largest", at.Int("largest", 1) != 0},
                         {"indices_dtype", DataType::kInt64}},
                        2);
  at.Out(0, y);
  at.Out(1, Lowering::Port(y, 1));
}

void LowerCumSum(Lowering& at) {
  const Value x = at.in(0);
  const Lowering::Attrs attrs = {{"exclusive", at.Int("exclusive", 0) != 0},
                                 {"reverse", at.Int("reverse", 0) != 0}};
  const Value axis = at.Reshape(at.in(1), {});
  const Value y = at.Node("Cumsum", {x, axis}, attrs);
  at.emitter().Hint(y, {at.dtype(x), at.shape(x)});
  at.Out(0, y);
}

// Element t of a row of length n comes from n - 1 - t, and past the length from its own place.
void LowerReverseSequence(Lowering& at) {
  const Value x = at.in(0), lengths = at.in(1);
  const int rank = at.Rank(x);
  const int time = at.Axis(at.Int("time_axis", 0), rank);
  const int batch = at.Axis(at.Int("batch_axis", 1), rank);
  if (!at.ok()) return;
  const Value count = at.Reshape(at.DimOf(x, time), {});
  const Value t = at.Along(at.Range(at.IntScalar(0), count, at.IntScalar(1)), time, rank);
  const Value n = at.Along(at.Cast(lengths, DataType::kInt64), batch, rank);
  const Value turned = at.Sub(at.Sub(n, at.IntScalar(1)), t);
  const Value places = at.Select(at.Binary("Less", t, n), turned, t);
  const Value all = at.Broadcast(places, at.ShapeOf(x));
  at.Out(0, at.Op("GatherElements", {x, all}, {{"dim", time}}));
}

}  // namespace

void AddIndexRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"Compress", 9, LowerCompress, "NonZero, GatherV2", "_ B axis:int"},
      {"CumSum", 11, LowerCumSum, "Cumsum", "_=RIK I exclusive:int reverse:int"},
      {"Gather", 1, LowerGather, "GatherV2", "_ I axis:int"},
      {"GatherElements", 11, LowerGatherElements, "GatherElements", "_ I axis:int"},
      {"GatherND", 11, LowerGatherNd, "GatherNd", "_ L batch_dims:int@12"},
      {"NonZero", 9, LowerNonZero, "NonZero", "_"},
      {"OneHot", 9, LowerOneHot, "Equal, SelectV2", "N N _ axis:int"},
      {"ReverseSequence", 10, LowerReverseSequence, "GatherElements",
       "_ L batch_axis:int time_axis:int"},
      {"Scatter", 9, LowerScatterElements, "ScatterElements", "T I T axis:int"},
      {"ScatterElements", 11, LowerScatterElements, "ScatterElements",
       "T I T axis:int reduction:string@16"},
      {"ScatterND", 11, LowerScatterNd, "TensorScatterUpdate, TensorScatterAdd, ScatterMul",
       "T L T reduction:string@16"},
      {"TopK", 1, LowerTopK, "TopKV2", "N L? axis:int k:int!<10 largest:int@11 sorted:int@11"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
