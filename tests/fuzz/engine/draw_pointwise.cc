// Element-wise operators, alone and in chains.
#include <algorithm>
#include <cmath>

#include "tests/fuzz/engine/draws.h"

namespace npumesh::fuzz {
namespace {

bool Within(const PlainTensor& x, Number low, Number high) {
  return std::all_of(x.v.begin(), x.v.end(), [=](Number v) { return v >= low && v <= high; });
}

bool IsArithmetic(const PlainTensor& x) {
  return IsFloat(x.dtype) || x.dtype == DataType::kInt32 || x.dtype == DataType::kInt64;
}

bool IsWhole(const PlainTensor& x) {
  return x.dtype == DataType::kInt32 || x.dtype == DataType::kInt64;
}

Draw UnaryDraw(const std::string& type, Fits fits, const std::string& port = "x") {
  return {{type}, 1, [=](GraphWriter& w) {
            const KnownValue* x = w.Pick(fits);
            return x != nullptr && w.Emit(type, {{port, x->value}});
          }};
}

Fits Floats(Number low, Number high) {
  return [=](const PlainTensor& x) { return IsFloat(x.dtype) && Within(x, low, high); };
}

// Dimensions that broadcast with those of x: some are 1, leading ones may be missing.
Extents Smaller(GraphWriter& w, Extents dims) {
  for (int64_t& extent : dims) {
    if (w.dice().Chance(30)) extent = 1;
  }
  if (!dims.empty() && w.dice().Chance(40)) {
    dims.erase(dims.begin(), dims.begin() + w.dice().Between(0, static_cast<int>(dims.size())));
  }
  return dims;
}

// A value that meets x: of the graph where one broadcasts with it, otherwise a constant.
Value Partner(GraphWriter& w, const KnownValue& x) {
  const KnownValue* other = w.Pick([&](const PlainTensor& y) {
    return y.dtype == x.now.dtype && Joined(x.now.dims, y.dims).has_value();
  });
  if (other != nullptr && w.dice().Chance(70)) return other->value;
  Extents dims = Smaller(w, x.now.dims);
  if (HasOpen(dims)) dims.clear();
  return w.AddConst(w.Random(x.now.dtype, dims)).value;
}

bool EmitBinary(GraphWriter& w, const std::string& type, const KnownValue& x) {
  const Value other = Partner(w, x);
  const bool turned = w.dice().Chance(50);
  return w.Emit(type, {{"x1", turned ? other : x.value}, {"x2", turned ? x.value : other}});
}

Draw BinaryDraw(const std::string& type, Fits fits) {
  return {{type}, 2, [=](GraphWriter& w) {
            const KnownValue* x = w.Pick(fits);
            return x != nullptr && EmitBinary(w, type, *x);
          }};
}

// By a constant that is not zero.
Draw DivisionDraw(const std::string& type, Fits fits) {
  return {{type}, 1, [=](GraphWriter& w) {
            const KnownValue* x = w.Pick(fits);
            if (x == nullptr) return false;
            PlainTensor divisor = w.Random(x->now.dtype, {});
            static const std::vector<int64_t> divisors = {-4, -2, -1, 1, 2, 4};
            divisor.at(0) = static_cast<Number>(w.dice().Pick(divisors));
            return w.Emit(type, {{"x1", x->value}, {"x2", w.AddConst(divisor).value}});
          }};
}

bool DrawCast(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor&) { return true; });
  if (x == nullptr) return false;
  const DataType dtype = w.RandomType();
  return w.Emit("Cast", {{"x", x->value}},
                {{"dst_type", AttrValue::Int(static_cast<int64_t>(dtype))}});
}

float HalfStep(GraphWriter& w) {
  return static_cast<float>(w.dice().Between(-4, 4)) / 2;
}

bool DrawScalar(GraphWriter& w) {
  const KnownValue* x = w.Pick(Floats(-64, 64));
  if (x == nullptr) return false;
  const std::string type = w.dice().Chance(50) ? "Adds" : "Muls";
  return w.Emit(type, {{"x", x->value}}, {{"value", AttrValue::Float(HalfStep(w))}});
}

bool DrawAxpy(GraphWriter& w) {
  const KnownValue* x = w.Pick(Floats(-64, 64));
  return x != nullptr && w.Emit("Axpy", {{"x1", x->value}, {"x2", Partner(w, *x)}},
                                {{"alpha", AttrValue::Float(2)}});
}

bool DrawLeakyRelu(GraphWriter& w) {
  const KnownValue* x = w.Pick(Floats(-64, 64));
  return x != nullptr &&
         w.Emit("LeakyRelu", {{"x", x->value}}, {{"negative_slope", AttrValue::Float(0.5f)}});
}

Value Mask(GraphWriter& w, const Extents& dims) {
  return Operand(w, DataType::kBool, dims);
}

bool DrawSelect(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor&) { return true; });
  return x != nullptr && w.Emit("SelectV2", {{"condition", Mask(w, x->now.dims)},
                                             {"then", x->value},
                                             {"else", Partner(w, *x)}});
}

bool DrawMaskedFill(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) {
    return IsFloat(x.dtype) || x.dtype == DataType::kInt32 || x.dtype == DataType::kInt64;
  });
  return x != nullptr && w.Emit("MaskedFill", {{"x", x->value},
                                               {"mask", Mask(w, x->now.dims)},
                                               {"value", Operand(w, x->now.dtype, {})}});
}

bool DrawClip(GraphWriter& w) {
  const KnownValue* x = w.Pick(IsArithmetic);
  if (x == nullptr) return false;
  PlainTensor low = Zeros(x->now.dtype, {}), high = low;
  low.at(0) = -2;
  high.at(0) = 3;
  return w.Emit("ClipByValue", {{"x", x->value},
                                {"clip_value_min", w.AddConst(low).value},
                                {"clip_value_max", w.AddConst(high).value}});
}

bool DrawAddcmul(GraphWriter& w) {
  const KnownValue* x = w.Pick(Floats(-64, 64));
  return x != nullptr &&
         w.Emit("Addcmul", {{"input_data", x->value},
                            {"x1", Partner(w, *x)},
                            {"x2", Partner(w, *x)},
                            {"value", w.AddConst(w.Random(x->now.dtype, {})).value}});
}

bool DrawLerp(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) { return x.dtype == DataType::kFloat; });
  return x != nullptr && w.Emit("Lerp", {{"start", x->value},
                                         {"end", Operand(w, x->now.dtype, x->now.dims)},
                                         {"weight", Operand(w, x->now.dtype, x->now.dims)}});
}

bool DrawAddN(GraphWriter& w) {
  const KnownValue* x = w.Pick(IsArithmetic);
  if (x == nullptr) return false;
  std::vector<GraphBuilder::Input> inputs;
  const int64_t count = w.dice().Between(1, 3);
  for (int64_t i = 0; i < count; ++i) {
    inputs.emplace_back("x" + std::to_string(i),
                        i == 0 ? x->value : Operand(w, x->now.dtype, x->now.dims));
  }
  return w.Emit("AddN", inputs, {{"N", AttrValue::Int(count)}});
}

bool DrawBiasAdd(GraphWriter& w) {
  const KnownValue* x = w.Pick([](const PlainTensor& x) {
    return IsFloat(x.dtype) && x.rank() >= 2 && x.rank() <= 4 && !IsOpen(x.dims.back());
  });
  return x != nullptr &&
         w.Emit("BiasAdd",
                {{"x", x->value}, {"bias", Operand(w, x->now.dtype, {x->now.dims.back()})}});
}

// The same elements under other dimensions.
bool EmitView(GraphWriter& w, const KnownValue& x) {
  Extents dims = x.now.dims;
  if (dims.size() >= 2 && !HasOpen(dims) && w.dice().Chance(70)) {
    const auto d = static_cast<size_t>(w.dice().Below(static_cast<int64_t>(dims.size()) - 1));
    dims[d] *= dims[d + 1];
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(d) + 1);
    return w.Emit("Reshape", {{"x", x.value}, {"shape", w.Ints(dims)}});
  }
  return x.now.rank() < 4 &&
         w.Emit("Unsqueeze", {{"x", x.value}},
                {{"axes", AttrValue::Ints({w.dice().Between(0, x.now.rank())})}});
}

// Several operators on one value, as chains are fused: across views, and with values on the way
// that are read again.
bool DrawChain(GraphWriter& w) {
  const KnownValue* x = w.Pick(Floats(-16, 16));
  if (x == nullptr) return false;
  static const std::vector<std::string> unary = {"Neg",  "Abs",   "Relu",    "Square",
                                                 "Tanh", "Swish", "Sigmoid", "Floor"};
  static const std::vector<std::string> binary = {"Add", "Sub", "Mul", "Maximum", "Minimum"};
  const int64_t length = w.dice().Between(2, 7);
  bool any = false;
  for (int64_t i = 0; i < length; ++i) {
    const bool done = w.dice().Chance(50) ? w.Emit(w.dice().Pick(unary), {{"x", x->value}})
                                          : EmitBinary(w, w.dice().Pick(binary), *x);
    any = any || done;
    if (!done || !IsFloat(w.last().now.dtype) || !Within(w.last().now, -64, 64)) continue;
    if (w.dice().Chance(85)) x = &w.last();
    if (w.dice().Chance(20) && EmitView(w, *x)) x = &w.last();
  }
  return any;
}

// From floats to int8, on as integers that wrap, and to another type.
bool DrawIntegerChain(GraphWriter& w) {
  const KnownValue* x = w.Pick(Floats(-100, 100));
  const auto cast = [&](DataType dtype) {
    return w.Emit("Cast", {{"x", x->value}},
                  {{"dst_type", AttrValue::Int(static_cast<int64_t>(dtype))}});
  };
  if (x == nullptr || !cast(DataType::kInt8)) return false;
  static const std::vector<std::string> binary = {"Add", "Sub", "Mul", "Maximum", "Minimum"};
  const int64_t length = w.dice().Between(1, 4);
  for (int64_t i = 0; i < length; ++i) {
    x = &w.last();
    if (!EmitBinary(w, w.dice().Pick(binary), *x)) return true;
  }
  x = &w.last();
  cast(w.RandomType());
  return true;
}

void AddUnaryDraws(std::vector<Draw>& draws) {
  for (const char* type : {"Neg", "Abs", "Relu", "Square"}) {
    draws.push_back(UnaryDraw(type, IsArithmetic));
  }
  for (const char* type : {"Sign", "ZerosLike", "OnesLike"}) {
    draws.push_back(UnaryDraw(type, IsArithmetic));
  }
  for (const char* type : {"Floor", "Ceil", "Rint", "Round", "Relu6", "IsNan", "IsFinite"}) {
    draws.push_back(UnaryDraw(type, Floats(-2048, 2048)));
  }
  draws.push_back(UnaryDraw("Trunc", Floats(-2048, 2048), "input_x"));
  for (const char* type : {"Sigmoid", "Tanh", "Erf", "Gelu", "GeluV2", "FastGelu", "Swish",
                           "Softplus", "Sin", "Cos", "Mish", "Elu"}) {
    draws.push_back(UnaryDraw(type, Floats(-16, 16)));
  }
  draws.push_back(UnaryDraw("Exp", Floats(-6, 6)));
  draws.push_back(UnaryDraw("Sqrt", Floats(0, 100)));
  draws.push_back(UnaryDraw("Log1p", Floats(0, 100)));
  draws.push_back(UnaryDraw("Rsqrt", Floats(0.25L, 100)));
  draws.push_back(UnaryDraw("Reciprocal", Floats(0.25L, 100)));
  draws.push_back(UnaryDraw("HardSwish", [](const PlainTensor& x) {
    return x.dtype == DataType::kFloat && Within(x, -16, 16);
  }));
  draws.push_back(
      UnaryDraw("LogicalNot", [](const PlainTensor& x) { return x.dtype == DataType::kBool; }));
  draws.push_back(UnaryDraw("Invert", IsWhole));
}

void AddBinaryDraws(std::vector<Draw>& draws) {
  for (const char* type : {"Add", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference", "Less",
                           "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"}) {
    draws.push_back(BinaryDraw(type, IsArithmetic));
  }
  for (const char* type : {"LogicalAnd", "LogicalOr"}) {
    draws.push_back(
        BinaryDraw(type, [](const PlainTensor& x) { return x.dtype == DataType::kBool; }));
  }
  for (const char* type : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) {
    draws.push_back(BinaryDraw(type, IsWhole));
  }
  for (const char* type : {"RealDiv", "Div"}) {
    draws.push_back(DivisionDraw(type, Floats(-2048, 2048)));
  }
  for (const char* type : {"FloorDiv", "FloorMod"})
    draws.push_back(DivisionDraw(type, IsArithmetic));
  draws.push_back(DivisionDraw("Mod", IsWhole));
  draws.push_back({{"DivNoNan"}, 1, [](GraphWriter& w) {
                     const KnownValue* x = w.Pick(Floats(-64, 64));
                     return x != nullptr && EmitBinary(w, "DivNoNan", *x);
                   }});
}

}  // namespace

Value Operand(GraphWriter& w, DataType dtype, const Extents& dims) {
  const KnownValue* held =
      w.Pick([&](const PlainTensor& x) { return x.dtype == dtype && x.dims == dims; });
  if (held != nullptr && w.dice().Chance(75)) return held->value;
  if (HasOpen(dims) || w.dice().Chance(30)) {
    return w.AddInput(w.Random(dtype, dims), w.dice().Chance(15)).value;
  }
  return w.AddConst(w.Random(dtype, dims)).value;
}

std::vector<Draw> PointwiseDraws() {
  std::vector<Draw> draws;
  AddUnaryDraws(draws);
  AddBinaryDraws(draws);
  draws.push_back({{"Cast"}, 4, DrawCast});
  draws.push_back({{"Adds", "Muls"}, 2, DrawScalar});
  draws.push_back({{"Axpy"}, 1, DrawAxpy});
  draws.push_back({{"LeakyRelu"}, 1, DrawLeakyRelu});
  draws.push_back({{"SelectV2"}, 2, DrawSelect});
  draws.push_back({{"MaskedFill"}, 1, DrawMaskedFill});
  draws.push_back({{"ClipByValue"}, 2, DrawClip});
  draws.push_back({{"Addcmul"}, 1, DrawAddcmul});
  draws.push_back({{"Lerp"}, 1, DrawLerp});
  draws.push_back({{"AddN"}, 1, DrawAddN});
  draws.push_back({{"BiasAdd"}, 1, DrawBiasAdd});
  draws.push_back({{}, 4, DrawChain});
  draws.push_back({{}, 1, DrawIntegerChain});
  return draws;
}

}  // namespace npumesh::fuzz
