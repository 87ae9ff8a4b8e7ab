// Many values to few: sums, norms, extremes and their places.
#include "graph/onnx/op_table.h"

namespace npumesh {
namespace {

// What is done before and after the elements are folded; empty: nothing.
struct FoldRule {
  std::string type;  // of ours, without its D
  std::function<Value(Lowering&, Value)> before = {};
  std::function<Value(Lowering&, Value)> behind = {};
};

Value Squared(Lowering& at, Value x) {
  return at.Mul(x, x);
}

Value Magnitude(Lowering& at, Value x) {
  return at.Unary("Abs", x);
}

Value Root(Lowering& at, Value x) {
  return at.Unary("Sqrt", x);
}

Value Logarithm(Lowering& at, Value x) {
  return at.Unary("Log", x);
}

// log(sum(e^(x - m))) + m, where m is the largest element.
Value LogSumExp(Lowering& at, Value x, const std::vector<int64_t>& axes, bool keep) {
  Value most = at.Reduce("ReduceMax", x, axes, true);
  // Without a finite element nothing may be subtracted.
  most = at.Select(at.Unary("IsFinite", most), most, at.Like(0, most));
  const Value sum = at.Reduce("ReduceSum", at.Unary("Exp", at.Sub(x, most)), axes, true);
  const Value y = at.Add(at.Unary("Log", sum), most);
  return keep ? y : at.Reduce("ReduceMax", y, axes, false);
}

// The axes that an operand names; nullopt: they are not known now. No axes are, by their shape.
std::optional<std::vector<int64_t>> AxesIn(Lowering& at, int input) {
  const Shape& shape = at.shape(at.in(input));
  if (shape.is_static() && shape.elements() == 0) return std::vector<int64_t>();
  return at.KnownInts(at.in(input));
}

// Axes by attribute, or (ReduceSum from 13 on, the others from 18 on) by input; none: all, or with
// noop_with_empty_axes x as it is.
std::function<void(Lowering&)> Reduction(FoldRule rule) {
  return [rule = std::move(rule)](Lowering& at) {
    Value x = at.in(0);
    const bool keep = at.Int("keepdims", 1) != 0;
    const std::optional<std::vector<int64_t>> known =
        at.has(1) ? AxesIn(at, 1) : at.IntList("axes");
    const bool given = known ? !known->empty() : true;
    if (!given && at.Int("noop_with_empty_axes", 0) != 0) return at.Out(0, at.Unary("Identity", x));
    const TensorType of_x{at.dtype(x), at.shape(x)};
    if (rule.before) x = rule.before(at, x);
    const Lowering::Attrs attrs = {{"keep_dims", AttrValue::Bool(keep)},
                                   {"noop_with_empty_axes", AttrValue::Bool(false)}};
    Value y;
    if (rule.type == "LogSumExp") {
      if (!known) return at.Refuse("axes have to be known when it is imported");
      y = LogSumExp(at, x, *known, keep);
    } else if (known) {
      Lowering::Attrs all = attrs;
      all.emplace_back("axes", AttrValue::Ints(*known));
      y = at.Op(rule.type + "D", {{"x", x}}, all);
    } else {
      y = at.Op(rule.type, {{"x", x}, {"axes", at.in(1)}}, attrs);
      if (keep && of_x.shape.has_rank()) {
        const auto rank = static_cast<size_t>(of_x.shape.rank());
        at.emitter().Hint(y, {of_x.dtype, Shape(std::vector<int64_t>(rank, kUnknownDim))});
      }
    }
    at.Out(0, rule.behind ? rule.behind(at, y) : y);
  };
}

// ---- places of extremes ----

std::function<void(Lowering&)> PlaceOf(bool most) {
  return [most](Lowering& at) {
    Value x = at.in(0);
    const int axis = at.Axis(at.Int("axis", 0), at.Rank(x));
    const bool last = at.Int("select_last_index", 0) != 0;
    if (last) x = at.Op("ReverseV2", {{"x", x}, {"axis", at.Ints({axis})}});
    Value y = at.Op(most ? "ArgMaxD" : "ArgMinD", {{"x", x}},
                    {{"dimension", AttrValue::Int(axis)},
                     {"dtype", AttrValue::Int(static_cast<int64_t>(DataType::kInt64))}});
    if (last) y = at.Sub(at.Sub(at.DimOf(x, axis), at.Ints({1})), y);
    // A scalar became a vector of one element in the subtraction.
    if (last && at.Rank(x) == 1) y = at.Reshape(y, {});
    at.Out(0, at.Int("keepdims", 1) != 0 ? at.Unsqueeze(y, {axis}) : y);
  };
}

// 1 at the first largest element along the axis, 0 elsewhere. Before version 13 all dimensions from
// the axis on are one.
void LowerHardmax(Lowering& at) {
  const Value x = at.in(0);
  const bool flattens = at.version() < 13;
  const int rank = at.Rank(x);
  const int axis = at.Axis(at.Int("axis", flattens ? 1 : -1), rank);
  if (!at.ok()) return;
  const Value rows = flattens ? at.Op("Flatten", {{"x", x}}, {{"axis", AttrValue::Int(axis)}}) : x;
  const int along = flattens ? 1 : axis, dims = flattens ? 2 : rank;
  const Value place =
      at.Unsqueeze(at.Op("ArgMaxD", {{"x", rows}},
                         {{"dimension", AttrValue::Int(along)},
                          {"dtype", AttrValue::Int(static_cast<int64_t>(DataType::kInt64))}}),
                   {along});
  const Value count = at.Reshape(at.DimOf(rows, along), {});
  const Value places = at.Along(at.Range(at.IntScalar(0), count, at.IntScalar(1)), along, dims);
  const Value y = at.Cast(at.Binary("Equal", place, places), at.dtype(x));
  at.Out(0, flattens ? at.ReshapeTo(y, at.ShapeOf(x), rank) : y);
}

OnnxOp Fold(std::string_view name, FoldRule rule) {
  std::string text = rule.type;
  return {name, 1, Reduction(std::move(rule)), std::move(text)};
}

}  // namespace

void AddReduceRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"ArgMax", 1, PlaceOf(true), "ArgMaxD"},
      {"ArgMin", 1, PlaceOf(false), "ArgMinD"},
      {"Hardmax", 1, LowerHardmax, "ArgMaxD, Equal"},
      Fold("ReduceL1", {.type = "ReduceSum", .before = Magnitude}),
      Fold("ReduceL2", {.type = "ReduceSum", .before = Squared, .behind = Root}),
      Fold("ReduceLogSum", {.type = "ReduceSum", .behind = Logarithm}),
      {"ReduceLogSumExp", 1, Reduction({.type = "LogSumExp"}), "ReduceMaxD, Exp, ReduceSumD, Log"},
      Fold("ReduceMax", {.type = "ReduceMax"}),
      Fold("ReduceMean", {.type = "ReduceMean"}),
      Fold("ReduceMin", {.type = "ReduceMin"}),
      Fold("ReduceProd", {.type = "ReduceProd"}),
      Fold("ReduceSum", {.type = "ReduceSum"}),
      Fold("ReduceSumSquare", {.type = "ReduceSum", .before = Squared}),
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
