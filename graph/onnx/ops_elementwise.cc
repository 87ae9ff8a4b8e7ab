// Arithmetic, logic, comparisons, activations: one value in, one value out.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "graph/onnx/op_table.h"
#include "runtime/base/type_numbers.h"

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

// ---- quotients, powers and remainders ----

void LowerDiv(Lowering& at) {
  const Value a = at.in(0), b = at.in(1);
  at.Out(0, at.Node(at.Quotient(a, b), {a, b}));
}

// Whether all exponents are known to be whole numbers that every type of float holds.
bool AreSmallAndWhole(Lowering& at, Value exponent) {
  constexpr double kMost = 256;
  const std::optional<std::vector<double>> known = at.KnownNumbers(exponent);
  return known && std::all_of(known->begin(), known->end(), [](double number) {
           return std::abs(number) <= kMost && number == std::floor(number);
         });
}

// x^n for whole n of 64 bits, of which a double may lose the last bit, and the sign of the power
// with it: x^(n - rest) * x^rest, where n - rest is even.
Value WholePower(Lowering& at, Value x, Value n) {
  const Value two = at.Like(2, n), rest = at.Binary("TruncateMod", n, two);
  const auto power = [&](Value by) { return at.Binary("Pow", x, at.Cast(by, DataType::kDouble)); };
  return at.Mul(power(at.Sub(n, rest)), power(rest));
}

// Types of base and exponent may differ; the power has that of the base. Whole powers of integers
// wrap, all others are computed in double.
void LowerPow(Lowering& at) {
  const Value base = at.in(0), exponent = at.in(1);
  const DataType dtype = at.dtype(base), of_exponent = at.dtype(exponent);
  if (at.ok() && (dtype == DataType::kBool || of_exponent == DataType::kBool)) {
    return at.Fail(Code::kCorrupt, "raises {} to {}; expected numbers", Name(dtype),
                   Name(of_exponent));
  }
  const bool whole_base = IsInteger(dtype), whole_exponent = IsInteger(of_exponent);
  const bool small = AreSmallAndWhole(at, exponent);
  if (dtype == of_exponent || small) {
    const Value alike = at.Cast(exponent, dtype);
    return at.Out(0, at.Node("Pow", {base, alike}));
  }
  if (whole_base && whole_exponent) {
    const Value y =
        at.Binary("Pow", at.Cast(base, DataType::kInt64), at.Cast(exponent, DataType::kInt64));
    return at.Out(0, at.Cast(y, dtype));
  }
  const Value wide = at.Cast(base, DataType::kDouble);
  if (whole_exponent && BitsOf(of_exponent) == 64) {
    return at.Out(0, at.Cast(WholePower(at, wide, exponent), dtype));
  }
  const Value n = at.Cast(exponent, DataType::kDouble);
  Value y = at.Cast(at.Binary("Pow", wide, n), dtype);
  if (dtype == DataType::kInt64) {
    // A double holds no integer of 64 bits: whole powers are computed in integers.
    const Value exact = at.Binary("Pow", base, at.Cast(n, dtype));
    y = at.Select(at.Binary("Equal", at.Unary("Floor", n), n), exact, y);
  }
  at.Out(0, y);
}

// fmod: the sign of the dividend; otherwise of the divisor.
void LowerMod(Lowering& at) {
  const bool truncated = at.Int("fmod", 0) != 0;
  at.Out(0, at.Node(truncated ? "TruncateMod" : "FloorMod", {at.in(0), at.in(1)}));
}

void LowerBitShift(Lowering& at) {
  const bool left = at.Text("direction", "") == "LEFT";
  at.Out(0, at.Node(left ? "LeftShift" : "RightShift", {at.in(0), at.in(1)}));
}

// ---- limits ----

void LowerClip6(Lowering& at) {
  // Without limits only infinities are cut.
  constexpr float kMost = std::numeric_limits<float>::max();
  const Value y = at.Max(at.in(0), at.Like(at.Float("min", -kMost), at.in(0)));
  at.Out(0, at.Min(y, at.Like(at.Float("max", kMost), y)));
}

// Between 0 and 6, as mobile networks have it, in one operator.
void LowerClip11(Lowering& at) {
  Value y = at.in(0);
  const bool low = at.has(1), high = at.has(2);
  if (low && high && at.KnownNumber(at.in(1)) == 0 && at.KnownNumber(at.in(2)) == 6) {
    return at.Out(0, at.Unary("Relu6", y));
  }
  if (low) y = at.Max(y, at.in(1));
  if (high) y = at.Min(y, at.in(2));
  at.Out(0, low || high ? y : at.Unary("Identity", y));
}

// ---- activations ----

// alpha * (exp(x / alpha) - 1) below 0.
void LowerCelu(Lowering& at) {
  const Value x = at.Wide(at.in(0)), alpha = at.Like(at.Float("alpha", 1), x);
  const Value zero = at.Like(0, x);
  const Value below = at.Mul(alpha, at.Unary("Expm1", at.Div(at.Min(x, zero), alpha)));
  at.Out(0, at.Cast(at.Add(at.Max(x, zero), below), at.dtype(at.in(0))));
}

void LowerSelu(Lowering& at) {
  const Value x = at.Wide(at.in(0)), zero = at.Like(0, x);
  const Value alpha = at.Like(at.Float("alpha", kSeluAlpha), x);
  const Value gamma = at.Like(at.Float("gamma", kSeluGamma), x);
  const Value below = at.Mul(alpha, at.Unary("Expm1", at.Min(x, zero)));
  const Value y = at.Mul(gamma, at.Add(at.Max(x, zero), below));
  at.Out(0, at.Cast(y, at.dtype(at.in(0))));
}

void LowerThresholdedRelu(Lowering& at) {
  const Value x = at.in(0), alpha = at.Like(at.Float("alpha", 1), x);
  at.Out(0, at.Select(at.Binary("Greater", x, alpha), x, at.Like(0, x)));
}

// Integers lose the fraction that the bias gives them.
void LowerShrink(Lowering& at) {
  const DataType dtype = at.dtype(at.in(0));
  const Value x = IsInteger(dtype) ? at.Cast(at.in(0), DataType::kDouble) : at.in(0);
  const double lambd = at.Float("lambd", 0.5F), bias = at.Float("bias", 0);
  const Value low = at.Binary("Less", x, at.Like(-lambd, x));
  const Value high = at.Binary("Greater", x, at.Like(lambd, x));
  const Value inner = at.Select(high, at.Sub(x, at.Like(bias, x)), at.Like(0, x));
  at.Out(0, at.Cast(at.Select(low, at.Add(x, at.Like(bias, x)), inner), dtype));
}

void LowerPRelu(Lowering& at) {
  const Value x = at.in(0), slope = at.in(1);
  at.Out(0, at.Select(at.Binary("Less", x, at.Like(0, x)), at.Mul(x, slope), x));
}

void LowerHardSwish(Lowering& at) {
  const Value x = at.Wide(at.in(0));
  const Value gate = at.Op("HardSigmoid", {x}, {{"alpha", 1.0F / 6}, {"beta", 0.5F}});
  at.Out(0, at.Cast(at.Mul(x, gate), at.dtype(at.in(0))));
}

// Doubles, which GeluV2 has not, are computed step by step.
void LowerGelu(Lowering& at) {
  const Value x = at.in(0);
  const std::string approximate = at.Text("approximate", "none");
  if (at.dtype(x) != DataType::kDouble) {
    return at.Out(0, at.Node("GeluV2", {x}, {{"approximate", approximate}}));
  }
  const auto number = [&](double value) { return at.Like(value, x); };
  Value share = at.Unary("Erf", at.Mul(x, number(1 / std::numbers::sqrt2)));
  if (approximate == "tanh") {
    const Value cube = at.Mul(number(0.044715), at.Mul(x, at.Mul(x, x)));
    const double slope = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    share = at.Unary("Tanh", at.Mul(number(slope), at.Add(x, cube)));
  }
  at.Out(0, at.Mul(at.Mul(number(0.5), x), at.Add(number(1), share)));
}

// log(1 + e^x) without overflow.
void LowerSoftplus(Lowering& at) {
  const Value x = at.Wide(at.in(0));
  const Value tail = at.Unary("Log1p", at.Unary("Exp", at.Unary("Neg", at.Unary("Abs", x))));
  at.Out(0, at.Cast(at.Add(at.Max(x, at.Like(0, x)), tail), at.dtype(at.in(0))));
}

void LowerIsInf(Lowering& at) {
  const Value x = at.in(0);
  const bool low = at.Int("detect_negative", 1) != 0, high = at.Int("detect_positive", 1) != 0;
  const Value infinite = at.Unary("IsInf", x);
  if (low && high) return at.Out(0, infinite);
  const Value zero = at.Like(0, x);
  Value sign = at.Op("NotEqual", {x, x});  // nothing, unless one is asked for
  if (high) sign = at.Binary("Greater", x, zero);
  if (low) sign = at.Binary("Less", x, zero);
  at.Out(0, at.Binary("LogicalAnd", infinite, sign));
}

// ---- types ----

void CastTo(Lowering& at, DataType dtype) {
  // What comes may have a type that only the run knows.
  const DataType from = at.dtype(at.in(0));
  if (BitsOf(dtype) == 0 || (BitsOf(from) == 0 && from != DataType::kUndefined)) {
    return at.Refuse("cast from {} to {}: npumesh has no tensors of strings", Name(from),
                     Name(dtype));
  }
  const Value y = at.Node("Cast", {at.in(0)}, {{"dst_type", dtype}});
  at.emitter().Hint(y, {dtype, Shape::UnknownRank()});
  at.Out(0, y);
}

DataType TypeOfNumber(Lowering& at, int64_t number) {
  const DataType dtype = DataTypeFromOnnx(number);
  if (dtype == DataType::kUndefined) at.Refuse("has no type for element type {}", number);
  return dtype;
}

void LowerCast(Lowering& at) {
  const DataType dtype = TypeOfNumber(at, at.Int("to", 0));
  if (at.ok()) CastTo(at, dtype);
}

void LowerCastLike(Lowering& at) {
  const DataType dtype = at.dtype(at.in(1));
  if (at.ok() && dtype == DataType::kUndefined) {
    return at.Refuse("{}", at.emitter().WhyUnknown(at.in(1)));
  }
  CastTo(at, dtype);
}

OnnxOp Unary(std::string_view name, int since, std::string type, std::string_view form = "R") {
  return Pair(name, since, form, {std::move(type)});
}

OnnxOp Binary(std::string_view name, int since, std::string type, std::string_view form = "T=N T") {
  return Pair(name, since, form, {std::move(type)});
}

}  // namespace

void AddElementwiseRows(std::vector<OnnxOp>& rows) {
  const OnnxOp unary[] = {
      Unary("Abs", 1, "Abs", "N"),
      Unary("Acos", 7, "Acos"),
      Unary("Acosh", 9, "Acosh"),
      Unary("Asin", 7, "Asin"),
      Unary("Asinh", 9, "Asinh"),
      Unary("Atan", 7, "Atan"),
      Unary("Atanh", 9, "Atanh"),
      Unary("BitwiseNot", 18, "Invert", "Z"),
      Unary("Ceil", 1, "Ceil"),
      Unary("Cos", 7, "Cos"),
      Unary("Cosh", 9, "Cosh"),
      Unary("Erf", 9, "Erf"),
      Unary("Exp", 1, "Exp"),
      Unary("Floor", 1, "Floor"),
      Unary("IsNaN", 9, "IsNan"),
      Unary("Log", 1, "Log"),
      Unary("Mish", 18, "Mish"),
      Unary("Neg", 1, "Neg", "_=RS"),
      Unary("Not", 1, "LogicalNot", "B"),
      Unary("Reciprocal", 1, "Reciprocal"),
      Unary("Relu", 1, "Relu", "_=RS"),
      Unary("Round", 11, "Rint"),
      Unary("Sigmoid", 1, "Sigmoid"),
      Unary("Sign", 9, "Sign", "N"),
      Unary("Sin", 7, "Sin"),
      Unary("Sinh", 9, "Sinh"),
      Unary("Softsign", 1, "Softsign"),
      Unary("Sqrt", 1, "Sqrt"),
      Unary("Tan", 7, "Tan"),
      Unary("Tanh", 1, "Tanh"),
  };
  const OnnxOp binary[] = {
      Binary("Add", 7, "Add"),
      Binary("And", 7, "LogicalAnd", "B B"),
      Binary("BitwiseAnd", 18, "BitwiseAnd", "T=Z T"),
      Binary("BitwiseOr", 18, "BitwiseOr", "T=Z T"),
      Binary("BitwiseXor", 18, "BitwiseXor", "T=Z T"),
      Binary("Equal", 7, "Equal", "T T"),
      Binary("Greater", 7, "Greater"),
      Binary("GreaterOrEqual", 12, "GreaterEqual"),
      Binary("Less", 7, "Less"),
      Binary("LessOrEqual", 12, "LessEqual"),
      Binary("Mul", 7, "Mul"),
      Binary("Or", 7, "LogicalOr", "B B"),
      Binary("Sub", 7, "Sub"),
      Binary("Xor", 7, "NotEqual", "B B"),
      Pair("Where", 9, "B T T", {"SelectV2"}),
  };
  const OnnxOp others[] = {
      {"BitShift", 11, LowerBitShift, "LeftShift, RightShift", "T=A T direction:string!"},
      {"Cast", 1, LowerCast, "Cast", "_ saturate:int@19 to:int!"},
      {"CastLike", 15, LowerCastLike, "Cast", "_ _ saturate:int@19"},
      {"Celu", 12, LowerCelu, "Minimum, Maximum, Expm1", "F alpha:float"},
      {"Clip", 6, LowerClip6, "Maximum, Minimum", "R max:float min:float"},
      {"Clip", 11, LowerClip11, "Relu6, Maximum, Minimum", "T=N T? T?"},
      {"Div", 7, LowerDiv, "Div, TruncateDiv", "T=N T"},
      Pair("Elu", 1, "R alpha:float", {"Elu", {{"alpha", "alpha", 1}}}),
      {"Gelu", 20, LowerGelu, "GeluV2", "R approximate:string"},
      Pair("HardSigmoid", 1, "R alpha:float beta:float",
           {"HardSigmoid", {{"alpha", "alpha", 0.2F}, {"beta", "beta", 0.5F}}}),
      {"HardSwish", 14, LowerHardSwish, "HardSigmoid, Mul", "R"},
      {"IsInf", 10, LowerIsInf, "IsInf", "R detect_negative:int detect_positive:int"},
      Pair("LeakyRelu", 1, "R alpha:float", {"LeakyRelu", {{"negative_slope", "alpha", 0.01F}}}),
      {"Max", 6, Folded("Maximum"), "Maximum", "T=N..."},
      {"Mean", 6, LowerMean, "Add, Div", "T=R..."},
      {"Min", 6, Folded("Minimum"), "Minimum", "T=N..."},
      {"Mod", 10, LowerMod, "FloorMod, TruncateMod", "T=N T fmod:int"},
      {"PRelu", 7, LowerPRelu, "Mul, SelectV2", "T=RIK T"},
      {"Pow", 7, LowerPow, "Pow", "T=R T"},
      {"Pow", 12, LowerPow, "Pow", "_=RI N"},
      {"Selu", 1, LowerSelu, "Minimum, Maximum, Expm1", "R alpha:float gamma:float"},
      {"Shrink", 9, LowerShrink, "SelectV2", "N bias:float lambd:float"},
      {"Softplus", 1, LowerSoftplus, "Exp, Log1p", "R"},
      {"Sum", 6, Folded("Add"), "Add", "T=R..."},
      {"ThresholdedRelu", 1, LowerThresholdedRelu, "Greater, SelectV2", "R alpha:float@10"},
  };
  rows.insert(rows.end(), std::begin(unary), std::end(unary));
  rows.insert(rows.end(), std::begin(binary), std::end(binary));
  rows.insert(rows.end(), std::begin(others), std::end(others));
}

}  // namespace npumesh
