// Bytes that stand for floats: scale * (byte - zero).
#include "graph/onnx/op_table.h"
#include "graph/onnx/rewrites.h"

namespace npumesh {
namespace {

std::optional<Value> OptionalOf(Lowering& at, int input) {
  return at.has(input) ? std::optional(at.in(input)) : std::nullopt;
}

// Version 21 has a scale for each block of an axis, and names the type of the result.
bool HasNewForm(Lowering& at) {
  if (at.Int("block_size", 0) == 0 && at.Int("output_dtype", 0) == 0) return false;
  at.Refuse("block_size and output_dtype are not translated");
  return true;
}

bool HasDoubles(Lowering& at) {
  if (at.dtype(at.in(1)) != DataType::kDouble) return false;
  at.Fail(Code::kCorrupt, "a scale of double; expected one of 16 or 32 bits");
  return true;
}

void LowerQuantize(Lowering& at) {
  if (HasNewForm(at) || HasDoubles(at)) return;
  const Value x = at.in(0);
  const int rank = at.Rank(x);
  const int64_t axis = at.Int("axis", 1);  // of no meaning where there is one scale
  const Value scale = at.Wide(AlongAxis(at, at.in(1), rank, axis));
  std::optional<Value> zero = OptionalOf(at, 2);
  const DataType dtype = zero ? at.dtype(*zero) : DataType::kUint8;
  if (at.ok() && (!IsInteger(dtype) || BitsOf(dtype) < 8 || BitsOf(dtype) > 16)) {
    at.Refuse("quantises to {}; expected an integer of 8 or 16 bits", Name(dtype));
  }
  if (!at.ok()) return;
  if (zero) zero = AlongAxis(at, *zero, rank, axis);
  const Value wide = at.Cast(x, DataType::kFloat);  // x may be int32
  at.Out(0, Quantised(at, at.Div(wide, scale), zero, dtype));
}

void LowerDequantize(Lowering& at) {
  if (HasNewForm(at) || HasDoubles(at)) return;
  const Value x = at.in(0), scale = at.in(1);
  const int rank = at.Rank(x);
  const int64_t axis = at.Int("axis", 1);  // of no meaning where there is one scale
  Value y = at.Cast(x, DataType::kInt32);
  if (at.has(2)) y = at.Sub(y, AlongAxis(at, at.Cast(at.in(2), DataType::kInt32), rank, axis));
  at.Out(0, at.Mul(at.Cast(y, at.dtype(scale)), AlongAxis(at, scale, rank, axis)));
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
  at.Out(0, ByteProduct(at, at.in(0), OptionalOf(at, 2), at.in(1), OptionalOf(at, 3)));
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
       "T R T? axis:int@13 block_size:int@21 output_dtype:int@23"},
      {"DynamicQuantizeLinear", 11, LowerDynamicQuantize, "ReduceMaxD, ReduceMinD, Rint, Cast",
       "F"},
      {"MatMulInteger", 10, LowerMatMulInteger, "BatchMatMulV2, Cast", "T U T? U?"},
      {"QLinearMatMul", 10, LowerQLinearMatMul, "BatchMatMulV2, Rint, Cast", "T U T V U V U _"},
      {"QuantizeLinear", 10, LowerQuantize, "Div, Rint, Cast",
       "_ R _? axis:int@13 block_size:int@21 output_dtype:int@21 precision:int@23 saturate:int@19"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
