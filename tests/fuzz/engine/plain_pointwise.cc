// Element by element, with broadcasting.
#include <algorithm>
#include <cmath>

#include "tests/fuzz/engine/plain_ops.h"

namespace npumesh::fuzz {
namespace {

// What can be said of a result whose inputs are exact.
enum class Kind : uint8_t {
  kExact,    // one operation, rounded once
  kFormula,  // several: exact as long as all numbers are small integers
  kRough,    // a function that libraries approximate
};

bool IsSmallInteger(Number x) {
  return std::floor(x) == x && std::fabs(x) < 1024;
}

bool AllSmall(const std::vector<const PlainTensor*>& inputs) {
  for (const PlainTensor* input : inputs) {
    for (const Number x : input->v) {
      if (!IsSmallInteger(x)) return false;
    }
  }
  return true;
}

Trust TrustOf(Kind kind, DataType dtype, const std::vector<const PlainTensor*>& inputs) {
  if (!IsFloat(dtype) || kind == Kind::kExact) return Trust::kExact;
  return kind == Kind::kFormula && AllSmall(inputs) ? Trust::kExact : Trust::kRough;
}

// `function` of the elements that meet when `inputs` are broadcast together.
std::optional<PlainTensors> Together(const std::vector<const PlainTensor*>& inputs, DataType dtype,
                                     Kind kind,
                                     const std::function<Number(const Number* x)>& function) {
  Extents dims;
  for (const PlainTensor* input : inputs) {
    const std::optional<Extents> joined = Joined(dims, input->dims);
    if (!joined) return std::nullopt;
    dims = *joined;
  }
  std::vector<std::vector<int64_t>> sources;
  for (const PlainTensor* input : inputs) sources.push_back(BroadcastSources(input->dims, dims));
  PlainTensor y = Zeros(dtype, dims);
  std::vector<Number> x(inputs.size());
  for (int64_t i = 0; i < y.count(); ++i) {
    for (size_t k = 0; k < x.size(); ++k) x[k] = inputs[k]->at(sources[k][static_cast<size_t>(i)]);
    y.at(i) = RoundTo(dtype, function(x.data()));
  }
  y.trust = TrustOf(kind, dtype, inputs);
  return PlainTensors{std::move(y)};
}

// ---- of one tensor ----

using Unary = Number (*)(Number);

void AddUnary(PlainOpTable& table, const char* type, const char* port, Kind kind, bool steady,
              Unary function) {
  const auto compute = [port = std::string(port), kind, function](const PlainCall& call) {
    const PlainTensor& x = call.in(port);
    return Together({&x}, x.dtype, kind, [=](const Number* v) { return function(v[0]); });
  };
  table[type] = {.compute = compute, .steady = steady};
}

void AddTest(PlainOpTable& table, const char* type, Unary function) {
  table[type] = {.compute =
                     [function](const PlainCall& call) {
                       return Together({&call.in("x")}, DataType::kBool, Kind::kExact,
                                       [=](const Number* v) { return function(v[0]); });
                     },
                 .steady = false};
}

Number Sigmoid(Number x) {
  return 1 / (1 + std::exp(-x));
}

Number GeluTanh(Number x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PIl) * (x + 0.044715L * x * x * x)));
}

Number Square(Number x) {
  return x * x;
}

void AddUnaries(PlainOpTable& t) {
  AddUnary(t, "Neg", "x", Kind::kExact, true, [](Number x) { return -x; });
  AddUnary(t, "Abs", "x", Kind::kExact, true, [](Number x) { return std::fabs(x); });
  AddUnary(t, "Relu", "x", Kind::kExact, true, [](Number x) { return x < 0 ? 0 : x; });
  AddUnary(t, "Relu6", "x", Kind::kExact, true, [](Number x) { return x < 0 ? 0 : x > 6 ? 6 : x; });
  AddUnary(t, "Square", "x", Kind::kExact, true, Square);
  AddUnary(t, "Sign", "x", Kind::kExact, false, [](Number x) {
    return x > 0 ? Number{1} : x < 0 ? Number{-1} : x;
  });
  AddUnary(t, "Floor", "x", Kind::kExact, false, [](Number x) { return std::floor(x); });
  AddUnary(t, "Ceil", "x", Kind::kExact, false, [](Number x) { return std::ceil(x); });
  AddUnary(t, "Rint", "x", Kind::kExact, false, [](Number x) { return std::nearbyint(x); });
  AddUnary(t, "Round", "x", Kind::kExact, false, [](Number x) { return std::nearbyint(x); });
  AddUnary(t, "Trunc", "input_x", Kind::kExact, false, [](Number x) { return std::trunc(x); });
  AddUnary(t, "Sqrt", "x", Kind::kRough, true, [](Number x) { return std::sqrt(x); });
  AddUnary(t, "Rsqrt", "x", Kind::kRough, true, [](Number x) { return 1 / std::sqrt(x); });
  AddUnary(t, "Reciprocal", "x", Kind::kRough, true, [](Number x) { return 1 / x; });
  AddUnary(t, "Exp", "x", Kind::kRough, true, [](Number x) { return std::exp(x); });
  AddUnary(t, "Sigmoid", "x", Kind::kRough, true, Sigmoid);
  AddUnary(t, "Tanh", "x", Kind::kRough, true, [](Number x) { return std::tanh(x); });
  AddUnary(t, "Erf", "x", Kind::kRough, true, [](Number x) { return std::erf(x); });
  AddUnary(t, "Gelu", "x", Kind::kRough, true, GeluTanh);
  AddUnary(t, "GeluV2", "x", Kind::kRough, true,
           [](Number x) { return x / 2 * (1 + std::erf(x / std::sqrt(Number{2}))); });
  AddUnary(t, "FastGelu", "x", Kind::kRough, true,
           [](Number x) { return x * Sigmoid(1.702L * x); });
  AddUnary(t, "Swish", "x", Kind::kRough, true, [](Number x) { return x * Sigmoid(x); });
  AddUnary(t, "Softplus", "x", Kind::kRough, true,
           [](Number x) { return std::log1p(std::exp(x)); });
  AddUnary(t, "Sin", "x", Kind::kRough, true, [](Number x) { return std::sin(x); });
  AddUnary(t, "Cos", "x", Kind::kRough, true, [](Number x) { return std::cos(x); });
  AddUnary(t, "Log1p", "x", Kind::kRough, true, [](Number x) { return std::log1p(x); });
  AddUnary(t, "Mish", "x", Kind::kRough, true,
           [](Number x) { return x * std::tanh(std::log1p(std::exp(x))); });
  AddUnary(t, "HardSwish", "x", Kind::kRough, true, [](Number x) {
    const Number cut = x + 3 < 0 ? 0 : x + 3 > 6 ? 6 : x + 3;
    return x * cut / 6;
  });
  AddUnary(t, "LogicalNot", "x", Kind::kExact, false, [](Number x) { return Number(x == 0); });
  AddUnary(t, "Invert", "x", Kind::kExact, false, [](Number x) { return -x - 1; });
  AddUnary(t, "ZerosLike", "x", Kind::kExact, true, [](Number) { return Number{0}; });
  AddUnary(t, "OnesLike", "x", Kind::kExact, true, [](Number) { return Number{1}; });
  AddTest(t, "IsNan", [](Number x) { return Number(std::isnan(x)); });
  AddTest(t, "IsFinite", [](Number x) { return Number(std::isfinite(x)); });
}

// ---- of two tensors of one dtype ----

using Binary = Number (*)(Number, Number);

// `of_integers`: where they are computed in another way; null: they are not.
void AddBinary(PlainOpTable& table, const char* type, Kind kind, bool steady, Binary function,
               Binary of_integers = nullptr) {
  const auto compute = [=](const PlainCall& call) -> std::optional<PlainTensors> {
    const PlainTensor &a = call.in("x1"), &b = call.in("x2");
    if (a.dtype != b.dtype) return std::nullopt;
    const bool whole = of_integers != nullptr && !IsFloat(a.dtype);
    const Binary chosen = whole ? of_integers : function;
    return Together({&a, &b}, a.dtype, kind, [=](const Number* v) { return chosen(v[0], v[1]); });
  };
  table[type] = {.compute = compute, .steady = steady};
}

void AddComparison(PlainOpTable& table, const char* type, Binary function) {
  const auto compute = [function](const PlainCall& call) -> std::optional<PlainTensors> {
    const PlainTensor &a = call.in("x1"), &b = call.in("x2");
    if (a.dtype != b.dtype) return std::nullopt;
    return Together({&a, &b}, DataType::kBool, Kind::kExact,
                    [=](const Number* v) { return function(v[0], v[1]); });
  };
  table[type] = {.compute = compute, .steady = false};
}

int64_t Bits(Number x) {
  return static_cast<int64_t>(x);
}

Number Wider(uint64_t bits) {
  return static_cast<Number>(static_cast<int64_t>(bits));
}

// Integers of 64 bits wrap, which a product of long doubles does not.
Number WrappedProduct(Number a, Number b) {
  return Wider(static_cast<uint64_t>(Bits(a)) * static_cast<uint64_t>(Bits(b)));
}

Number NanOr(Number a, Number b, Number chosen) {
  return std::isnan(a) ? a : std::isnan(b) ? b : chosen;
}

void AddBinaries(PlainOpTable& t) {
  for (const char* type : {"Add", "AddV2"}) {
    AddBinary(t, type, Kind::kExact, true, [](Number a, Number b) { return a + b; });
  }
  AddBinary(t, "Sub", Kind::kExact, true, [](Number a, Number b) { return a - b; });
  AddBinary(
      t, "Mul", Kind::kExact, true, [](Number a, Number b) { return a * b; }, WrappedProduct);
  AddBinary(t, "Maximum", Kind::kExact, true,
            [](Number a, Number b) { return NanOr(a, b, a > b ? a : b); });
  AddBinary(t, "Minimum", Kind::kExact, true,
            [](Number a, Number b) { return NanOr(a, b, a < b ? a : b); });
  AddBinary(t, "RealDiv", Kind::kExact, true, [](Number a, Number b) { return a / b; });
  AddBinary(t, "Div", Kind::kExact, true, [](Number a, Number b) { return a / b; });
  AddBinary(t, "DivNoNan", Kind::kExact, false,
            [](Number a, Number b) { return b == 0 ? 0 : a / b; });
  AddBinary(t, "FloorDiv", Kind::kExact, false,
            [](Number a, Number b) { return std::floor(a / b); });
  AddBinary(t, "FloorMod", Kind::kFormula, false,
            [](Number a, Number b) { return a - std::floor(a / b) * b; });
  AddBinary(t, "Mod", Kind::kFormula, false,
            [](Number a, Number b) { return a - std::trunc(a / b) * b; });
  AddBinary(t, "SquaredDifference", Kind::kFormula, true,
            [](Number a, Number b) { return (a - b) * (a - b); });
  AddBinary(t, "LogicalAnd", Kind::kExact, false,
            [](Number a, Number b) { return Number(a != 0 && b != 0); });
  AddBinary(t, "LogicalOr", Kind::kExact, false,
            [](Number a, Number b) { return Number(a != 0 || b != 0); });
  AddBinary(t, "BitwiseAnd", Kind::kExact, false,
            [](Number a, Number b) { return Number(Bits(a) & Bits(b)); });
  AddBinary(t, "BitwiseOr", Kind::kExact, false,
            [](Number a, Number b) { return Number(Bits(a) | Bits(b)); });
  AddBinary(t, "BitwiseXor", Kind::kExact, false,
            [](Number a, Number b) { return Number(Bits(a) ^ Bits(b)); });
  AddComparison(t, "Equal", [](Number a, Number b) { return Number(a == b); });
  AddComparison(t, "NotEqual", [](Number a, Number b) { return Number(a != b); });
  AddComparison(t, "Less", [](Number a, Number b) { return Number(a < b); });
  AddComparison(t, "LessEqual", [](Number a, Number b) { return Number(a <= b); });
  AddComparison(t, "Greater", [](Number a, Number b) { return Number(a > b); });
  AddComparison(t, "GreaterEqual", [](Number a, Number b) { return Number(a >= b); });
}

// ---- of several, or with attributes ----

std::optional<PlainTensors> Cast(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  const auto dtype = static_cast<DataType>(call.node.IntAttr("dst_type", 0));
  const bool drops = IsFloat(x.dtype) && IsWholeType(dtype);
  auto cast = Together({&x}, dtype, Kind::kExact,
                       [=](const Number* v) { return drops ? std::trunc(v[0]) : v[0]; });
  // What becomes of a number that the integer cannot hold is not said.
  const bool held = std::all_of(x.v.begin(), x.v.end(), [dtype](Number v) {
    return dtype == DataType::kBool || RoundTo(dtype, std::trunc(v)) == std::trunc(v);
  });
  const bool sure = IsFloat(dtype) || (x.trust == Trust::kExact && (!drops || held));
  if (!sure) (*cast)[0].trust = Trust::kUnsure;
  return cast;
}

std::optional<PlainTensors> Adds(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  const Number value = call.node.FloatAttr("value", 0);
  return Together({&x}, x.dtype, Kind::kExact, [=](const Number* v) { return v[0] + value; });
}

std::optional<PlainTensors> Muls(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  const Number value = call.node.FloatAttr("value", 0);
  return Together({&x}, x.dtype, Kind::kExact, [=](const Number* v) { return v[0] * value; });
}

std::optional<PlainTensors> Axpy(const PlainCall& call) {
  const PlainTensor &a = call.in("x1"), &b = call.in("x2");
  const Number alpha = call.node.FloatAttr("alpha", 0);
  return Together({&a, &b}, a.dtype, Kind::kFormula,
                  [=](const Number* v) { return v[0] + alpha * v[1]; });
}

std::optional<PlainTensors> LeakyRelu(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  const Number slope = call.node.FloatAttr("negative_slope", 0);
  return Together({&x}, x.dtype, Kind::kExact,
                  [=](const Number* v) { return v[0] > 0 ? v[0] : slope * v[0]; });
}

std::optional<PlainTensors> Elu(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  return Together({&x}, x.dtype, Kind::kRough,
                  [=](const Number* v) { return v[0] > 0 ? v[0] : std::expm1(v[0]); });
}

std::optional<PlainTensors> Select(const PlainCall& call) {
  const PlainTensor &a = call.in("then"), &b = call.in("else");
  if (a.dtype != b.dtype) return std::nullopt;
  return Together({&call.in("condition"), &a, &b}, a.dtype, Kind::kExact,
                  [](const Number* v) { return v[0] != 0 ? v[1] : v[2]; });
}

std::optional<PlainTensors> MaskedFill(const PlainCall& call) {
  const PlainTensor &x = call.in("x"), &value = call.in("value");
  const Number filled = value.at(0);
  auto y = Together({&x, &call.in("mask")}, x.dtype, Kind::kExact,
                    [=](const Number* v) { return v[1] != 0 ? filled : v[0]; });
  return y;
}

std::optional<PlainTensors> ClipByValue(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  return Together({&x, &call.in("clip_value_min"), &call.in("clip_value_max")}, x.dtype,
                  Kind::kExact, [](const Number* v) {
                    const Number raised = v[0] < v[1] ? v[1] : v[0];
                    return raised > v[2] ? v[2] : raised;
                  });
}

std::optional<PlainTensors> Addcmul(const PlainCall& call) {
  const PlainTensor& x = call.in("input_data");
  return Together({&x, &call.in("x1"), &call.in("x2"), &call.in("value")}, x.dtype, Kind::kFormula,
                  [](const Number* v) { return v[0] + v[3] * v[1] * v[2]; });
}

std::optional<PlainTensors> Lerp(const PlainCall& call) {
  const PlainTensor& start = call.in("start");
  return Together({&start, &call.in("end"), &call.in("weight")}, start.dtype, Kind::kFormula,
                  [](const Number* v) { return v[0] + v[2] * (v[1] - v[0]); });
}

std::optional<PlainTensors> AddN(const PlainCall& call) {
  const std::vector<const PlainTensor*> x = call.list("x");
  return Together(x, x[0]->dtype, Kind::kFormula, [n = x.size()](const Number* v) {
    Number sum = 0;
    for (size_t i = 0; i < n; ++i) sum += v[i];
    return sum;
  });
}

std::optional<PlainTensors> BiasAdd(const PlainCall& call) {
  const PlainTensor &x = call.in("x"), &bias = call.in("bias");
  return Together({&x, &bias}, x.dtype, Kind::kExact, [](const Number* v) { return v[0] + v[1]; });
}

}  // namespace

void AddPointwiseOps(PlainOpTable& table) {
  AddUnaries(table);
  AddBinaries(table);
  table["Cast"] = {.compute = Cast};
  table["Adds"] = {.compute = Adds};
  table["Muls"] = {.compute = Muls};
  table["Axpy"] = {.compute = Axpy};
  table["LeakyRelu"] = {.compute = LeakyRelu};
  table["Elu"] = {.compute = Elu};
  table["SelectV2"] = {.compute = Select};
  table["MaskedFill"] = {.compute = MaskedFill};
  table["ClipByValue"] = {.compute = ClipByValue};
  table["Addcmul"] = {.compute = Addcmul};
  table["Lerp"] = {.compute = Lerp};
  table["AddN"] = {.compute = AddN};
  table["BiasAdd"] = {.compute = BiasAdd};
}

}  // namespace npumesh::fuzz
