// Bytes that stand for floats: scale * (byte - zero).
#include "graph/onnx/byte_nodes.h"
#include "graph/onnx/op_table.h"
#include "graph/onnx/rewrites.h"
#include "graph/ops/toolbox/values/ceil_div.h"
#include "runtime/base/type_numbers.h"

namespace npumesh {
namespace {

// The operands of a quantisation beside x.
struct QuantGrid {
  int rank = 0;        // of x
  int64_t axis = 0;    // of no meaning where there is one scale
  int64_t length = 0;  // of x along axis; -1: open
  int64_t block = 0;   // elements along axis that share an entry; 0: one entry for each, or for all
};

QuantGrid GridOf(Lowering& at, Value x) {
  QuantGrid grid{at.Rank(x), at.Int("axis", 1), -1, at.Int("block_size", 0)};
  if (grid.block == 0) return grid;
  if (grid.block < 0) at.Fail(Code::kCorrupt, "block_size is {}; expected 0 or more", grid.block);
  grid.axis = at.Axis(grid.axis, grid.rank);
  grid.length = at.KnownSize(x, static_cast<int>(grid.axis));
  return grid;
}

// A scale or a zero as it broadcasts with x: each entry stands for a block of x (version 21), for
// a place along the axis, or for all of x.
Value Spread(Lowering& at, const QuantGrid& grid, Value x, Value entries) {
  if (grid.block == 0) return AlongAxis(at, entries, grid.rank, grid.axis);
  const auto axis = static_cast<int>(grid.axis);
  if (at.Rank(entries) != grid.rank) {
    at.Fail(Code::kCorrupt, "a scale or zero of {} dimensions beside block_size; expected {}",
            at.Rank(entries), grid.rank);
    return entries;
  }
  const int64_t blocks = at.KnownSize(entries, axis), asked = CeilDiv(grid.length, grid.block);
  if (grid.length >= 0 && blocks >= 0 && blocks != asked) {
    at.Fail(Code::kCorrupt, "{} blocks of {} along axis {}, which has {} places; expected {}",
            blocks, grid.block, axis, grid.length, asked);
    return entries;
  }
  const Value length = at.Reshape(at.DimOf(x, axis), {});
  const Value places = CountTo(at, length, DataType::kInt64);
  return at.Gather(entries, at.Div(places, at.IntScalar(grid.block)), axis);
}

// The type that attribute `name` asks for; `fallback` where it asks for none.
DataType AskedType(Lowering& at, std::string_view name, DataType fallback) {
  const int64_t number = at.Int(name, 0);
  if (number == 0) return fallback;
  const DataType dtype = DataTypeFromOnnx(number);
  if (dtype == DataType::kUndefined)
    at.Refuse("{} is {}, which npumesh has no type for", name, number);
  return dtype;
}

bool HasDoubles(Lowering& at) {
  if (at.dtype(at.in(1)) != DataType::kDouble) return false;
  at.Fail(Code::kCorrupt, "a scale of double; expected one of 16 or 32 bits");
  return true;
}

// Versions 19 to 22 know one type for x and its scale.
bool HasTwoTypes(Lowering& at) {
  const DataType x = at.dtype(at.in(0)), scale = at.dtype(at.in(1));
  if (at.version() < 19 || at.version() > 22 || x == scale) return false;
  at.Fail(Code::kCorrupt, "a scale of {} for {}; expected one type for both", Name(scale), Name(x));
  return true;
}

void LowerQuantize(Lowering& at) {
  if (HasDoubles(at) || HasTwoTypes(at)) return;
  const Value x = at.in(0);
  const QuantGrid grid = GridOf(at, x);
  std::optional<Value> zero = at.Given(2);
  const DataType fallback = zero ? at.dtype(*zero) : DataType::kUint8;
  const DataType dtype = AskedType(at, "output_dtype", fallback);
  if (at.ok() && zero && dtype != fallback) {
    at.Fail(Code::kCorrupt, "output_dtype is {} beside a zero of {}", Name(dtype), Name(fallback));
  } else if (at.ok() && (!IsInteger(dtype) || BitsOf(dtype) < 8 || BitsOf(dtype) > 16)) {
    at.Refuse("quantises to {}; expected an integer of 8 or 16 bits", Name(dtype));
  }
  const DataType precision = AskedType(at, "precision", DataType::kFloat);
  if (!at.ok()) return;
  const Value scale = Spread(at, grid, x, at.in(1));
  if (zero) zero = Spread(at, grid, x, *zero);
  // x may be int32. The quotient is rounded to the type that `precision` names.
  const auto rounded = [&](Value value) { return at.Wide(at.Cast(value, precision)); };
  const Value quotient = at.Div(rounded(x), rounded(scale));
  at.Out(0, LookedUp(at, Quantised(at, rounded(quotient), zero, dtype)));
}

void LowerDequantize(Lowering& at) {
  if (HasDoubles(at)) return;
  const Value x = at.in(0), scale = at.in(1);
  const QuantGrid grid = GridOf(at, x);
  const DataType dtype = AskedType(at, "output_dtype", at.dtype(scale));
  if (!at.ok()) return;
  Value y = at.Cast(x, DataType::kInt32);
  if (at.has(2)) y = at.Sub(y, Spread(at, grid, x, at.Cast(at.in(2), DataType::kInt32)));
  if (!at.has_attr("output_dtype") || dtype == at.dtype(scale)) {
    return at.Out(0, at.Mul(at.Cast(y, at.dtype(scale)), Spread(at, grid, x, scale)));
  }
  const Value wide = at.Mul(at.Cast(y, DataType::kFloat), Spread(at, grid, x, at.Wide(scale)));
  at.Out(0, at.Cast(wide, dtype));
}

// uint8 with the scale and zero that the extremes of x ask for; 0 is always among the values.
void LowerDynamicQuantize(Lowering& at) {
  const Value x = at.in(0), nothing = at.Like(0, x), most_byte = at.Like(255, x);
  const Value most = at.Max(at.Reduce("ReduceMax", x, {}, false), nothing);
  const Value least = at.Min(at.Reduce("ReduceMin", x, {}, false), nothing);
  const Value range = at.Sub(most, least);
  const Value flat = at.Binary("Equal", range, nothing);  // only zeros, of which any scale is right
  const Value scale = at.Select(flat, at.Like(1, x), at.Div(range, most_byte));
  const Value exact = at.Div(at.Sub(nothing, least), scale);
  const Value zero =
      at.Cast(at.Unary("Rint", at.Min(at.Max(exact, nothing), most_byte)), DataType::kUint8);
  at.Out(0, Quantised(at, at.Div(x, scale), zero, DataType::kUint8));
  at.Out(1, scale);
  at.Out(2, zero);
}

void LowerMatMulInteger(Lowering& at) {
  at.Out(0, ByteProduct(at, at.in(0), at.Given(2), at.in(1), at.Given(3)));
}

// One scale for each row of a or column of b, or one for all.
Value ScaleOf(Lowering& at, Value scale, bool rows) {
  const bool many = at.Rank(scale) == 1 && at.Dim(scale, 0) != 1;
  if (!many && at.Rank(scale) <= 1) return at.Reshape(scale, {});
  return many && rows ? at.Unsqueeze(scale, {1}) : scale;
}

// Inputs: a, its scale and zero, b, its scale and zero, scale and zero of y.
void LowerQLinearMatMul(Lowering& at) {
  const Value y_zero = at.in(7);
  if (!AreBytes(at, y_zero, y_zero)) return;
  const auto flat = [&](int input) { return at.Reshape(at.in(input), {-1}); };
  const ByteMatrices form = {.a = at.in(0),
                             .b = at.in(3),
                             .a_zero = at.in(2),
                             .b_zero = at.in(5),
                             .scale = at.Div(at.Mul(flat(1), flat(4)), flat(6)),
                             .dtype = at.dtype(y_zero),
                             .y_zero = y_zero};
  if (const std::optional<Value> y = MultipliedBytes(at, form)) return at.Out(0, *y);
  const Value sum = ByteProduct(at, at.in(0), at.in(2), at.in(3), at.in(5));
  const Value scale = at.Div(at.Mul(ScaleOf(at, at.in(1), true), ScaleOf(at, at.in(4), false)),
                             ScaleOf(at, at.in(6), false));
  const Value y = at.Mul(at.Cast(sum, DataType::kFloat), at.Cast(scale, DataType::kFloat));
  at.Out(0, Quantised(at, y, ScaleOf(at, y_zero, false), at.dtype(y_zero)));
}

}  // namespace

void AddQuantRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"DequantizeLinear", 10, LowerDequantize, "Cast, Sub, Mul",
       "T=QJ R T? axis:int@13 block_size:int@21 output_dtype:int@23"},
      {"DynamicQuantizeLinear", 11, LowerDynamicQuantize, "ReduceMaxD, ReduceMinD, Rint, Cast",
       "F"},
      {"MatMulInteger", 10, LowerMatMulInteger, "QLinearMatMul; BatchMatMulV2, Cast",
       "T=Y U=Y T? U?"},
      {"QLinearMatMul", 10, LowerQLinearMatMul, "QLinearMatMul; BatchMatMulV2, Rint, Cast",
       "T=Y U=R T V=Y U V U Y"},
      {"QuantizeLinear", 10, LowerQuantize, "Div, Rint, Cast; ByteTable",
       "_=RJ R Q? axis:int@13 block_size:int@21 output_dtype:int@21 precision:int@23 "
       "saturate:int@19"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
