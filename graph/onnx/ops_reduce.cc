// Many values to few: sums, norms, extremes and their places.
#include "graph/onnx/op_table.h"

namespace npumesh {
namespace {

// A fold of ours (without its D) of a value over the axes of the node.
using PlainFold = std::function<Value(const std::string& type, Value x, bool keep)>;

// What is done before and after the elements are folded; empty: nothing.
struct FoldRule {
  std::string type = {};  // of ours, without its D; empty where `fold` folds
  std::function<Value(Lowering&, Value)> before = {};
  std::function<Value(Lowering&, Value)> behind = {};
  std::string flags = {};  // of ours for bool
  // Folds by several operators of ours.
  std::function<Value(Lowering&, Value, bool keep, const PlainFold&)> fold = {};
  bool wide = false;  // halves are computed in float32
  bool real = false;  // integers are computed in double, and lose the fraction
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
Value LogSumExp(Lowering& at, Value x, bool keep, const PlainFold& fold) {
  Value most = fold("ReduceMax", x, true);
  // Without a finite element nothing may be subtracted.
  most = at.Select(at.Unary("IsFinite", most), most, at.Like(0, most));
  const Value sum = fold("ReduceSum", at.Unary("Exp", at.Sub(x, most)), true);
  const Value y = at.Add(at.Unary("Log", sum), most);
  return keep ? y : fold("ReduceMax", y, false);
}

// The axes that an operand names; nullopt: they are not known now. No axes are, by their shape.
std::optional<std::vector<int64_t>> AxesIn(Lowering& at, int input) {
  const Shape& shape = at.shape(at.in(input));
  if (shape.is_static() && shape.elements() == 0) return std::vector<int64_t>();
  return at.KnownInts(at.in(input));
}

// x as the rule computes with it.
Value Prepared(Lowering& at, const FoldRule& rule, Value x) {
  if (rule.real && IsInteger(at.dtype(x))) x = at.Cast(x, DataType::kDouble);
  if (rule.wide) x = at.Wide(x);
  return rule.before ? rule.before(at, x) : x;
}

// By `type` over `known` axes, or those of operand 1.
Value FoldedBy(Lowering& at, const std::string& type, Value x, bool keep,
               const std::optional<std::vector<int64_t>>& known) {
  const bool noop = !known && at.Int("noop_with_empty_axes", 0) != 0;
  Lowering::Attrs attrs = {{"keep_dims", keep}, {"noop_with_empty_axes", noop}};
  if (known) {
    attrs.emplace_back("axes", *known);
    return at.Op(type + "D", {x}, attrs);
  }
  const Value y = at.Op(type, {x, at.in(1)}, attrs);
  Shape shape = Shape::UnknownRank();
  if (keep && at.shape(x).has_rank()) {
    shape = Shape(std::vector<int64_t>(static_cast<size_t>(at.shape(x).rank()), kUnknownDim));
  }
  at.emitter().Hint(y, {at.dtype(x), shape});
  return y;
}

Value Folded(Lowering& at, const FoldRule& rule, Value x,
             const std::optional<std::vector<int64_t>>& known) {
  const bool keep = at.Int("keepdims", 1) != 0;
  if (rule.fold) {
    return rule.fold(at, x, keep, [&](const std::string& type, Value v, bool keeps) {
      return FoldedBy(at, type, v, keeps, known);
    });
  }
  const bool flags = at.dtype(x) == DataType::kBool && !rule.flags.empty();
  return FoldedBy(at, flags ? rule.flags : rule.type, x, keep, known);
}

// Axes by attribute, or (ReduceSum from 13 on, the others from 18 on) by input; none: all, or with
// noop_with_empty_axes none: then only what is done before and after the fold is done.
std::function<void(Lowering&)> Reduction(FoldRule rule) {
  return [rule = std::move(rule)](Lowering& at) {
    const Value given = at.in(0), x = Prepared(at, rule, given);
    const std::optional<std::vector<int64_t>> known =
        at.has(1) ? AxesIn(at, 1) : at.IntList("axes");
    const bool folds = !known || !known->empty() || at.Int("noop_with_empty_axes", 0) == 0;
    const Value y = folds ? Folded(at, rule, x, known) : x;
    const Value finished = rule.behind ? rule.behind(at, y) : y;
    const bool converted = rule.wide || rule.real;
    const Value result = converted ? at.Cast(finished, at.dtype(given)) : finished;
    at.Out(0, result == given ? at.Unary("Identity", given) : result);
  };
}

// ---- places of extremes ----

std::function<void(Lowering&)> PlaceOf(bool most) {
  return [most](Lowering& at) {
    Value x = at.in(0);
    const int axis = at.Axis(at.Int("axis", 0), at.Rank(x));
    const bool last = at.Int("select_last_index", 0) != 0;
    if (last) x = at.Op("ReverseV2", {x, at.Ints({axis})});
    Value y = at.Op(most ? "ArgMaxD" : "ArgMinD", {x},
                    {{"dimension", axis}, {"dtype", DataType::kInt64}});
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
  const Value rows = flattens ? at.Op("Flatten", {x}, {{"axis", axis}}) : x;
  const int along = flattens ? 1 : axis, dims = flattens ? 2 : rank;
  if (at.KnownSize(rows, along) == 0) return at.Out(0, at.Unary("Identity", x));  // no elements
  const Value place = at.Unsqueeze(
      at.Op("ArgMaxD", {rows}, {{"dimension", along}, {"dtype", DataType::kInt64}}), {along});
  const Value count = at.Reshape(at.DimOf(rows, along), {});
  const Value places = at.Along(at.Range(at.IntScalar(0), count, at.IntScalar(1)), along, dims);
  const Value y = at.Cast(at.Binary("Equal", place, places), at.dtype(x));
  at.Out(0, flattens ? at.ReshapeTo(y, at.ShapeOf(x), rank) : y);
}

// Axes are an operand from some version on.
constexpr std::string_view kForm = "_=RIK L? axes:ints<18 keepdims:int noop_with_empty_axes:int@18";
constexpr std::string_view kFormOfLimit =  // of all but integers of 16 bits
    "_=RIKYB L? axes:ints<18 keepdims:int noop_with_empty_axes:int@18";
constexpr std::string_view kFormOfSum =
    "_=RIK L? axes:ints<13 keepdims:int noop_with_empty_axes:int@13";

OnnxOp Fold(std::string_view name, FoldRule rule, std::string_view form = kForm) {
  std::string text = rule.type;
  return {name, 1, Reduction(std::move(rule)), std::move(text), form};
}

}  // namespace

void AddReduceRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"ArgMax", 1, PlaceOf(true), "ArgMaxD", "N axis:int keepdims:int select_last_index:int@12"},
      {"ArgMin", 1, PlaceOf(false), "ArgMinD", "N axis:int keepdims:int select_last_index:int@12"},
      {"Hardmax", 1, LowerHardmax, "ArgMaxD, Equal", "R axis:int"},
      Fold("ReduceL1", {.type = "ReduceSum", .before = Magnitude}),
      Fold("ReduceL2",
           {.type = "ReduceSum", .before = Squared, .behind = Root, .wide = true, .real = true}),
      Fold("ReduceLogSum", {.type = "ReduceSum", .behind = Logarithm, .wide = true, .real = true}),
      {"ReduceLogSumExp", 1, Reduction({.fold = LogSumExp, .wide = true, .real = true}),
       "ReduceMaxD, Exp, ReduceSumD, Log", kForm},
      Fold("ReduceMax", {.type = "ReduceMax", .flags = "ReduceAny"}, kFormOfLimit),
      Fold("ReduceMean", {.type = "ReduceMean"}),
      Fold("ReduceMin", {.type = "ReduceMin", .flags = "ReduceAll"}, kFormOfLimit),
      Fold("ReduceProd", {.type = "ReduceProd"}),
      Fold("ReduceSum", {.type = "ReduceSum"}, kFormOfSum),
      Fold("ReduceSumSquare", {.type = "ReduceSum", .before = Squared, .wide = true}),
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
