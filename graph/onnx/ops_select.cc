// How much comes out depends on values: boxes that do not overlap, and values without repetition.
#include "graph/onnx/graph_scope.h"
#include "graph/onnx/loop_writer.h"
#include "graph/onnx/op_table.h"
#include "graph/onnx/rewrites.h"

namespace npumesh {
namespace {

Value Both(Lowering& at, Value a, Value b) {
  return at.Binary("LogicalAnd", a, b);
}

// ---- NonMaxSuppression ----

// Borders of boxes, each [batch, classes, boxes] in the order of the scores.
struct SortedBoxes {
  Value top, left, bottom, right;
};

// The area of boxes; those that are turned around have none.
Value AreaOf(Lowering& at, const SortedBoxes& boxes) {
  const Value zero = at.Like(0, boxes.top);
  return at.Mul(at.Max(at.Sub(boxes.bottom, boxes.top), zero),
                at.Max(at.Sub(boxes.right, boxes.left), zero));
}

// What two boxes share, divided by what they cover together.
Value Overlap(Lowering& at, const SortedBoxes& a, const SortedBoxes& b) {
  const SortedBoxes shared = {at.Max(a.top, b.top), at.Max(a.left, b.left),
                              at.Min(a.bottom, b.bottom), at.Min(a.right, b.right)};
  const Value area = AreaOf(at, shared);
  const Value all = at.Sub(at.Add(AreaOf(at, a), AreaOf(at, b)), area);
  const Value some = at.Binary("Greater", all, at.Like(0, all));
  return at.Select(some, at.Div(area, at.Select(some, all, at.Like(1, all))), at.Like(0, all));
}

// Boxes [batch, boxes, 4] by the places `order` [batch, classes, boxes].
SortedBoxes SortBoxes(Lowering& at, Value boxes, Value order) {
  const auto part = [&](int64_t i) { return at.Squeeze(at.Slice(boxes, 2, i, i + 1), {2}); };
  const Value p[] = {part(0), part(1), part(2), part(3)};
  const auto sorted = [&](Value border) {
    const Value all = at.Broadcast(at.Unsqueeze(border, {1}), at.ShapeOf(order));
    at.emitter().Hint(all, {at.dtype(boxes), Shape({kUnknownDim, kUnknownDim, kUnknownDim})});
    return at.Op("GatherElements", {all, order}, {{"dim", 2}});
  };
  if (at.Int("center_point_box", 0) != 0) {  // x, y of the middle, width, height
    const Value half = at.Like(0.5, boxes);
    const Value wide = at.Mul(p[2], half), high = at.Mul(p[3], half);
    return {sorted(at.Sub(p[1], high)), sorted(at.Sub(p[0], wide)), sorted(at.Add(p[1], high)),
            sorted(at.Add(p[0], wide))};
  }
  return {sorted(at.Min(p[0], p[2])), sorted(at.Min(p[1], p[3])), sorted(at.Max(p[0], p[2])),
          sorted(at.Max(p[1], p[3]))};
}

// From the best score on, each box that still lives ends those after it which overlap too much.
Value Survivors(Lowering& at, const SortedBoxes& boxes, Value alive, Value limit) {
  const Value count = at.Reshape(at.DimOf(alive, 2), {});
  const std::vector<Value> last = WriteLoop(
      at, count, at.Scalar(1, DataType::kBool), {alive},
      [&](GraphScope& scope, Lowering& body, Value turn, const std::vector<Value>& now) {
        const SortedBoxes all = {scope.CaptureOf(boxes.top), scope.CaptureOf(boxes.left),
                                 scope.CaptureOf(boxes.bottom), scope.CaptureOf(boxes.right)};
        const auto one = [&](Value x) { return body.Unsqueeze(body.Gather(x, turn, 2), {2}); };
        const SortedBoxes mine = {one(all.top), one(all.left), one(all.bottom), one(all.right)};
        const Value near = body.Binary("Greater", Overlap(body, mine, all), scope.CaptureOf(limit));
        const Value places =
            CountTo(body, body.Reshape(body.DimOf(now[0], 2), {}), DataType::kInt64);
        const Value later = body.Binary("Greater", places, turn);
        const Value ends = Both(body, Both(body, near, later), one(now[0]));
        const Value left = Both(body, now[0], body.Unary("LogicalNot", ends));
        return LoopTurn{{left}, body.Scalar(1, DataType::kBool)};
      });
  return last.empty() ? Value() : last[0];
}

void LowerNonMaxSuppression(Lowering& at) {
  const Value boxes = at.in(0), scores = at.in(1);
  const auto scalar = [&](int i) {
    return at.has(i) ? at.Reshape(at.in(i), {}) : at.Scalar(0, DataType::kFloat);
  };
  const Value sorted = at.Op(
      "Sort", {scores},
      {{"axis", 2}, {"descending", true}, {"stable", true}, {"y2_dtype", DataType::kInt64}}, 2);
  const Value order = Lowering::Port(sorted, 1);
  Value alive = at.Binary("Equal", order, order);  // all
  if (at.has(4)) alive = at.Binary("Greater", sorted, scalar(4));
  alive = Survivors(at, SortBoxes(at, boxes, order), alive, scalar(3));
  const Value most = at.has(2) ? at.Cast(scalar(2), DataType::kInt64) : at.IntScalar(0);
  const Value number = at.Op("CumsumD", {at.Cast(alive, DataType::kInt64)}, {{"axis", 2}});
  alive = Both(at, alive, at.Binary("LessEqual", number, most));
  const Value places =
      at.Op("NonZero", {alive}, {{"transpose", false}, {"dtype", DataType::kInt64}});
  at.emitter().Hint(places, {DataType::kInt64, Shape({kUnknownDim, 3})});
  const Value box = at.Op("GatherNd", {order, places});
  at.emitter().Hint(box, {DataType::kInt64, Shape({kUnknownDim})});
  at.Out(0, at.Concat({at.Slice(places, 1, 0, 2), at.Unsqueeze(box, {1})}, 1));
}

// ---- Unique ----

// The order in which the rows of a matrix are sorted, first by their first element: columns are
// sorted from the last one, and a stable order keeps what was there.
Value OrderOfRows(Lowering& at, Value rows, int64_t columns) {
  Value order;
  for (int64_t c = columns - 1; c >= 0 && at.ok(); --c) {
    Value column = at.Reshape(at.Slice(rows, 1, c, c + 1), {-1});
    if (order.node >= 0) column = at.Gather(column, order, 0);
    const Value sorted =
        at.Op("Sort", {column}, {{"axis", 0}, {"stable", true}, {"y2_dtype", DataType::kInt64}}, 2);
    const Value next = Lowering::Port(sorted, 1);
    order = order.node >= 0 ? at.Gather(order, next, 0) : next;
  }
  return order;
}

// Rows (or, without an axis, elements) without repetition: for each group of equal rows its first
// place; then in the order of the rows or, when they are not sorted, of the first places.
void LowerUnique(Lowering& at) {
  Value x = at.in(0);
  const bool flat = !at.has_attr("axis");
  if (flat) x = at.Reshape(x, {-1});
  const int rank = at.Rank(x);
  const int axis = flat ? 0 : at.Axis(at.Int("axis", 0), rank);
  if (!at.ok()) return;
  const Value turned = at.SwapAxes(x, 0, axis);
  const Value count = at.Reshape(at.DimOf(turned, 0), {});
  int64_t columns = 1;
  for (int d = 1; d < rank; ++d) columns *= at.Dim(turned, d);
  const Value rows = at.Reshape(turned, {-1, columns});
  const Value numbers = CountTo(at, count, DataType::kInt64);
  // same[i, j]: rows i and j are equal; the first j of each i names its group.
  const Value equal = at.Binary("Equal", at.Unsqueeze(rows, {1}), at.Unsqueeze(rows, {0}));
  const Value same = at.Reduce("ReduceAll", equal, {2}, false);
  const Value first = at.Op("ArgMaxD", {at.Cast(same, DataType::kInt32)},
                            {{"dimension", 1}, {"dtype", DataType::kInt64}});
  const Value heads = at.Binary("Equal", first, numbers);
  Value places = PlacesOfTrue(at, heads);
  if (at.Int("sorted", 1) != 0) {
    const Value order = OrderOfRows(at, rows, columns);
    const Value kept = PlacesOfTrue(at, at.Gather(heads, order, 0));
    places = at.Gather(order, kept, 0);
  }
  at.emitter().Hint(places, {DataType::kInt64, Shape({kUnknownDim})});
  at.Out(0, at.Gather(x, places, axis));
  at.Out(1, places);
  // member[i, k]: row i belongs to group k.
  const Value member = at.Binary("Equal", at.Unsqueeze(first, {1}), at.Unsqueeze(places, {0}));
  const Value flags = at.Cast(member, DataType::kInt64);
  if (at.wants(2)) {
    at.Out(2, at.Op("ArgMaxD", {flags}, {{"dimension", 1}, {"dtype", DataType::kInt64}}));
  }
  if (at.wants(3)) at.Out(3, at.Reduce("ReduceSum", flags, {0}, false));
}

}  // namespace

void AddSelectRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"NonMaxSuppression", 10, LowerNonMaxSuppression, "Sort, While, NonZero",
       "F F L? F? F? center_point_box:int"},
      {"Unique", 11, LowerUnique, "Equal, Sort, NonZero", "_ axis:int sorted:int"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
