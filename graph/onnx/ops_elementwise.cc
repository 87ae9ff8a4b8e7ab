// Arithmetic, logic, comparisons, activations: one value in, one value out.
#include "graph/onnx/op_table.h"
#include "graph/onnx/reader.h"

namespace npumesh {
namespace {

constexpr float kSeluAlpha = 1.67326319217681884765625f;
constexpr float kSeluGamma = 1.05070102214813232421875f;

// ---- more than two operands ----

// a op b op c ...
std::function<void(Lowering&)> Folded(std::string type) {
  return [type = std::move(type)](Lowering& at) {
    Value y = at.in(0);
    for (int i = 1; i < at.inputs(); ++i) y = at.Binary(type, y, at.in(i));
    at.Out(0, at.inputs() == 1 ? at.Unary("Identity", y) : y);
  };
}

void LowerMean(Lowering& at) {
  Value sum = at.in(0);
  for (int i = 1; i < at.inputs(); ++i) sum = at.Add(sum, at.in(i));
  at.Out(0, at.Div(sum, at.Like(at.inputs(), sum)));
}

// ---- powers and remainders: types of the operands may differ ----

void LowerPow(Lowering& at) {
  const Value base = at.in(0);
  Value exponent = at.in(1);
  if (at.dtype(base) == at.dtype(exponent)) {
    return at.Out(0, at.Node("Pow", {{"x1", base}, {"x2", exponent}}));
  }
  if (IsFloating(at.dtype(base)) || !IsFloating(at.dtype(exponent))) {
    exponent = at.Cast(exponent, at.dtype(base));
    return at.Out(0, at.Node("Pow", {{"x1", base}, {"x2", exponent}}));
  }
  const Value wide = at.Cast(base, at.dtype(exponent));
  at.Out(0, at.Cast(at.Binary("Pow", wide, exponent), at.dtype(base)));
}

// fmod: the sign of the dividend; otherwise of the divisor.
void LowerMod(Lowering& at) {
  const bool truncated = at.Int("fmod", 0) != 0;
  at.Out(0, at.Node(truncated ? "TruncateMod" : "FloorMod", {{"x1", at.in(0)}, {"x2", at.in(1)}}));
}

void LowerBitShift(Lowering& at) {
  const bool left = at.Text("direction", "") == "LEFT";
  at.Out(0, at.Node(left ? "LeftShift" : "RightShift", {{"x", at.in(0)}, {"y", at.in(1)}}));
}

// ---- limits ----

void LowerClip6(Lowering& at) {
  Value y = at.in(0);
  const bool low = at.has_attr("min"), high = at.has_attr("max");
  if (low) y = at.Max(y, at.Like(at.Float("min", 0), y));
  if (high) y = at.Min(y, at.Like(at.Float("max", 0), y));
  at.Out(0, low || high ? y : at.Unary("Identity", y));
}

void LowerClip11(Lowering& at) {
  Value y = at.in(0);
  const bool low = at.has(1), high = at.has(2);
  if (low) y = at.Max(y, at.in(1));
  if (high) y = at.Min(y, at.in(2));
  at.Out(0, low || high ? y : at.Unary("Identity", y));
}

// ---- activations ----

// alpha * (exp(x / alpha) - 1) below 0.
void LowerCelu(Lowering& at) {
  const Value x = at.in(0), alpha = at.Like(at.Float("alpha", 1), x), zero = at.Like(0, x);
  const Value below = at.Mul(alpha, at.Unary("Expm1", at.Div(at.Min(x, zero), alpha)));
  at.Out(0, at.Add(at.Max(x, zero), below));
}

void LowerSelu(Lowering& at) {
  const Value x = at.in(0), zero = at.Like(0, x);
  const Value alpha = at.Like(at.Float("alpha", kSeluAlpha), x);
  const Value gamma = at.Like(at.Float("gamma", kSeluGamma), x);
  const Value below = at.Mul(alpha, at.Unary("Expm1", at.Min(x, zero)));
  at.Out(0, at.Mul(gamma, at.Add(at.Max(x, zero), below)));
}

void LowerThresholdedRelu(Lowering& at) {
  const Value x = at.in(0), alpha = at.Like(at.Float("alpha", 1), x);
  at.Out(0, at.Select(at.Binary("Greater", x, alpha), x, at.Like(0, x)));
}

void LowerShrink(Lowering& at) {
  const Value x = at.in(0);
  const double lambd = at.Float("lambd", 0.5F), bias = at.Float("bias", 0);
  const Value low = at.Binary("Less", x, at.Like(-lambd, x));
  const Value high = at.Binary("Greater", x, at.Like(lambd, x));
  const Value inner = at.Select(high, at.Sub(x, at.Like(bias, x)), at.Like(0, x));
  at.Out(0, at.Select(low, at.Add(x, at.Like(bias, x)), inner));
}

void LowerPRelu(Lowering& at) {
  const Value x = at.in(0), slope = at.in(1);
  at.Out(0, at.Select(at.Binary("Less", x, at.Like(0, x)), at.Mul(x, slope), x));
}

void LowerHardSwish(Lowering& at) {
  const Value x = at.in(0);
  const Value gate =
      at.Op("HardSigmoid", {{"input_x", x}},
            {{"alpha", AttrValue::Float(1.0F / 6)}, {"beta", AttrValue::Float(0.5F)}});
  at.Out(0, at.Mul(x, gate));
}

// log(1 + e^x) without overflow.
void LowerSoftplus(Lowering& at) {
  const Value x = at.in(0);
  const Value tail = at.Unary("Log1p", at.Unary("Exp", at.Unary("Neg", at.Unary("Abs", x))));
  at.Out(0, at.Add(at.Max(x, at.Like(0, x)), tail));
}

void LowerIsInf(Lowering& at) {
  const Value x = at.in(0);
  const bool low = at.Int("detect_negative", 1) != 0, high = at.Int("detect_positive", 1) != 0;
  const Value infinite = at.Unary("IsInf", x);
  if (low && high) return at.Out(0, infinite);
  const Value zero = at.Like(0, x);
  Value sign = at.Op("NotEqual", {{"x1", x}, {"x2", x}});  // nothing, unless one is asked for
  if (high) sign = at.Binary("Greater", x, zero);
  if (low) sign = at.Binary("Less", x, zero);
  at.Out(0, at.Binary("LogicalAnd", infinite, sign));
}

// ---- types ----

void CastTo(Lowering& at, DataType dtype) {
  if (BitsOf(dtype) == 0 || BitsOf(at.dtype(at.in(0))) == 0) {
    return at.Refuse("cast from {} to {}: npumesh has no tensors of strings",
                     Name(at.dtype(at.in(0))), Name(dtype));
  }
  at.Out(0, at.Node("Cast", {{"x", at.in(0)}},
                    {{"dst_type", AttrValue::Int(static_cast<int64_t>(dtype))}}));
}

DataType TypeOfNumber(Lowering& at, int64_t number) {
  const DataType dtype = TypeOfOnnx(number);
  if (dtype == DataType::kUndefined) at.Refuse("has no type for element type {}", number);
  return dtype;
}

void LowerCast(Lowering& at) {
  const DataType dtype = TypeOfNumber(at, at.Int("to", 0));
  if (at.ok()) CastTo(at, dtype);
}

void LowerCastLike(Lowering& at) {
  const DataType dtype = at.dtype(at.in(1));
  if (dtype == DataType::kUndefined) return at.Refuse("the type of input 1 is not known");
  CastTo(at, dtype);
}

OnnxOp UnaryRow(std::string_view name, int since, std::string type, std::string port = "x") {
  return Row(name, since, std::move(type), {std::move(port)});
}

OnnxOp BinaryRow(std::string_view name, int since, std::string type) {
  return Row(name, since, std::move(type), {"x1", "x2"});
}

}  // namespace

void AddElementwiseRows(std::vector<OnnxOp>& rows) {
  const OnnxOp unary[] = {
      UnaryRow("Abs", 1, "Abs"),           UnaryRow("Acos", 7, "Acos"),
      UnaryRow("Acosh", 9, "Acosh"),       UnaryRow("Asin", 7, "Asin"),
      UnaryRow("Asinh", 9, "Asinh"),       UnaryRow("Atan", 7, "Atan"),
      UnaryRow("Atanh", 9, "Atanh"),       UnaryRow("BitwiseNot", 18, "Invert"),
      UnaryRow("Ceil", 1, "Ceil"),         UnaryRow("Cos", 7, "Cos"),
      UnaryRow("Cosh", 9, "Cosh"),         UnaryRow("Erf", 9, "Erf"),
      UnaryRow("Exp", 1, "Exp"),           UnaryRow("Floor", 1, "Floor"),
      UnaryRow("IsNaN", 9, "IsNan"),       UnaryRow("Log", 1, "Log"),
      UnaryRow("Mish", 18, "Mish"),        UnaryRow("Neg", 1, "Neg"),
      UnaryRow("Not", 1, "LogicalNot"),    UnaryRow("Reciprocal", 1, "Reciprocal"),
      UnaryRow("Relu", 1, "Relu"),         UnaryRow("Round", 11, "Rint"),
      UnaryRow("Sigmoid", 1, "Sigmoid"),   UnaryRow("Sign", 9, "Sign"),
      UnaryRow("Sin", 7, "Sin"),           UnaryRow("Sinh", 9, "Sinh"),
      UnaryRow("Softsign", 1, "Softsign"), UnaryRow("Sqrt", 1, "Sqrt"),
      UnaryRow("Tan", 7, "Tan"),           UnaryRow("Tanh", 1, "Tanh"),
  };
  const OnnxOp binary[] = {
      BinaryRow("Add", 7, "Add"),
      BinaryRow("And", 7, "LogicalAnd"),
      BinaryRow("BitwiseAnd", 18, "BitwiseAnd"),
      BinaryRow("BitwiseOr", 18, "BitwiseOr"),
      BinaryRow("BitwiseXor", 18, "BitwiseXor"),
      BinaryRow("Div", 7, "Div"),
      BinaryRow("Equal", 7, "Equal"),
      BinaryRow("Greater", 7, "Greater"),
      BinaryRow("GreaterOrEqual", 12, "GreaterEqual"),
      BinaryRow("Less", 7, "Less"),
      BinaryRow("LessOrEqual", 12, "LessEqual"),
      BinaryRow("Mul", 7, "Mul"),
      BinaryRow("Or", 7, "LogicalOr"),
      BinaryRow("Sub", 7, "Sub"),
      BinaryRow("Xor", 7, "NotEqual"),
      Row("Where", 9, "SelectV2", {"condition", "then", "else"}),
  };
  const OnnxOp others[] = {
      {"BitShift", 11, LowerBitShift, "LeftShift, RightShift"},
      {"Cast", 1, LowerCast, "Cast"},
      {"CastLike", 15, LowerCastLike, "Cast"},
      {"Celu", 12, LowerCelu, "Minimum, Maximum, Expm1"},
      {"Clip", 6, LowerClip6, "Maximum, Minimum"},
      {"Clip", 11, LowerClip11, "Maximum, Minimum"},
      Row("Elu", 1, "Elu", {"x"}, {{"alpha", "alpha", AttrValue::Float(1)}}),
      Row("Gelu", 20, "GeluV2", {"x"}, {{"approximate", "approximate", AttrValue::String("none")}}),
      Row("HardSigmoid", 1, "HardSigmoid", {"input_x"},
          {{"alpha", "alpha", AttrValue::Float(0.2F)}, {"beta", "beta", AttrValue::Float(0.5F)}}),
      {"HardSwish", 14, LowerHardSwish, "HardSigmoid, Mul"},
      {"IsInf", 10, LowerIsInf, "IsInf"},
      Row("LeakyRelu", 1, "LeakyRelu", {"x"},
          {{"negative_slope", "alpha", AttrValue::Float(0.01F)}}),
      {"Max", 6, Folded("Maximum"), "Maximum"},
      {"Mean", 6, LowerMean, "Add, Div"},
      {"Min", 6, Folded("Minimum"), "Minimum"},
      {"Mod", 10, LowerMod, "FloorMod, TruncateMod"},
      {"PRelu", 7, LowerPRelu, "Mul, SelectV2"},
      {"Pow", 7, LowerPow, "Pow"},
      {"Selu", 1, LowerSelu, "Minimum, Maximum, Expm1"},
      {"Shrink", 9, LowerShrink, "SelectV2"},
      {"Softplus", 1, LowerSoftplus, "Exp, Log1p"},
      {"Sum", 6, Folded("Add"), "Add"},
      {"ThresholdedRelu", 1, LowerThresholdedRelu, "Greater, SelectV2"},
  };
  rows.insert(rows.end(), std::begin(unary), std::end(unary));
  rows.insert(rows.end(), std::begin(binary), std::end(binary));
  rows.insert(rows.end(), std::begin(others), std::end(others));
}

}  // namespace npumesh
