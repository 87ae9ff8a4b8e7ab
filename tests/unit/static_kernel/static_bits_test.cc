// Static kernels give the bits of the operators' own kernels.
#include "tests/unit/static_kernel/static_fixture.h"

namespace npumesh {
namespace {

class StaticBitsTest : public StaticKernelTest {};

constexpr DataType kTypes[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16};
constexpr const char* kOfOne[] = {"Sqrt", "Rsqrt", "Exp",        "Expm1",    "Log",  "Log1p",
                                  "Abs",  "Neg",   "Reciprocal", "Square",   "Sign", "Floor",
                                  "Ceil", "Erf",   "Sin",        "Cos",      "Relu", "Sigmoid",
                                  "Tanh", "Gelu",  "GeluV2",     "FastGelu", "Swish"};
constexpr const char* kOfTwo[] = {"Add", "Sub",     "Mul",     "RealDiv",
                                  "Div", "Maximum", "Minimum", "FloorDiv"};
constexpr const char* kCompare[] = {"Equal",     "NotEqual", "Less",
                                    "LessEqual", "Greater",  "GreaterEqual"};

TEST_F(StaticBitsTest, FormulasOfOneOperand) {
  int steps = 0;
  for (const DataType dtype : kTypes) {
    const Value x = In(Special({dtype, Shape({37, 29})}, 7));
    for (const char* type : kOfOne) {
      Out(One(type, x));
      ++steps;
    }
  }
  ExpectSameBits(steps);
}

TEST_F(StaticBitsTest, FormulasOfTwoOperands) {
  int steps = 0;
  for (const DataType dtype : kTypes) {
    const Value a = In(Special({dtype, Shape({64, 32})}, 1));
    const Value b = In(Special({dtype, Shape({64, 32})}, 2));
    for (const char* type : kOfTwo) Out(Two(type, a, b)), ++steps;
    for (const char* type : kCompare) Out(Two(type, a, b)), ++steps;
  }
  ExpectSameBits(steps);
}

TEST_F(StaticBitsTest, CastsBetweenFloatsAndBool) {
  for (const DataType from : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}) {
    const Value x = In(Special({from, Shape({33, 17})}, 3));
    for (const DataType to : kTypes) {
      if (to != from) Out(Cast(x, to));
    }
    Out(Cast(Cast(x, DataType::kBool), DataType::kFloat));
  }
  ExpectSameBits(9);
}

TEST_F(StaticBitsTest, SelectionsAndLogic) {
  for (const DataType dtype : kTypes) {
    const Value a = In(TensorType{dtype, Shape({8, 48})});
    const Value b = In(TensorType{dtype, Shape({48})});
    const Value less = Two("Less", a, b);
    const Value more = Two("Greater", a, b);
    const Value either = Two("LogicalOr", less, more);
    const Value none = One("LogicalNot", either);
    Out(none);
    Out(g_.Op("SelectV2", {{"condition", less}, {"then", a}, {"else", b}}));
    Out(g_.Op("MaskedFill", {{"x", a}, {"mask", more}, {"value", Scalar(0.1f)}}));
  }
  ExpectSameBits(9);
}

// Rows of every length around vectors and blocks of sums.
class StaticRowsTest : public StaticBitsTest, public testing::WithParamInterface<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Columns, StaticRowsTest,
                         testing::Values(1, 2, 15, 17, 48, 1024, 1025, 2056));

TEST_P(StaticRowsTest, NormsAndSoftmax) {
  const int64_t n = GetParam();
  for (const DataType dtype : kTypes) {
    const Value x = In(TensorType{dtype, Shape({3, 2, n})});
    const Value gamma = In(TensorType{dtype, Shape({n})});
    const Value beta = In(TensorType{dtype, Shape({n})});
    Out(g_.Op("SoftmaxV2", {{"x", x}}));
    Out(g_.Op("RmsNorm", {{"x", x}, {"gamma", gamma}}, {}, {}, 2));
    Out(g_.Op("LayerNormV4",
              {{"x", x}, {"normalized_shape", g_.Ints({n})}, {"gamma", gamma}, {"beta", beta}}, {},
              {}, 3));
  }
  ExpectSameBits(n == 1 ? 0 : 9);
}

// All outputs of operators that have several.
TEST_P(StaticRowsTest, StatisticsThatAreRead) {
  const int64_t n = GetParam();
  for (const DataType dtype : kTypes) {
    const Value x = In(TensorType{dtype, Shape({3, 2, n})});
    const Value residual = In(TensorType{dtype, Shape({3, 2, n})});
    const Value gamma = In(TensorType{dtype, Shape({n})});
    const Value rms = g_.Op("RmsNorm", {{"x", x}, {"gamma", gamma}}, {}, {}, 2);
    const Value layer =
        g_.Op("LayerNormV4", {{"x", x}, {"normalized_shape", g_.Ints({n})}}, {}, {}, 3);
    const Value sum =
        g_.Op("AddRmsNorm", {{"x1", x}, {"x2", residual}, {"gamma", gamma}}, {}, {}, 3);
    for (const auto& [value, ports] : {std::pair(rms, 2), std::pair(layer, 3), std::pair(sum, 3)}) {
      for (int port = 0; port < ports; ++port) Out(g_.Port(value, port));
    }
  }
  ExpectSameBits(n == 1 ? 0 : 9);
}

TEST_P(StaticRowsTest, SwiGluOfHalves) {
  const int64_t n = GetParam();
  for (const DataType dtype : kTypes) {
    Out(One("SwiGlu", In(TensorType{dtype, Shape({5, 2 * n})})));
  }
  ExpectSameBits(3);
}

TEST_P(StaticRowsTest, ChainsIntoAndOutOfRows) {
  const int64_t n = GetParam();
  for (const DataType dtype : kTypes) {
    const Value x = In(TensorType{dtype, Shape({4, n})});
    const Value mask = In(TensorType{dtype, Shape({n})});
    const Value scaled = Two("Mul", x, In(TensorType{dtype, Shape({4, 1})}));
    const Value soft = g_.Op("SoftmaxV2", {{"x", Two("Add", scaled, mask)}});
    Out(Two("Mul", soft, x));
  }
  ExpectSameBits(3);
}

// Operands in every way that broadcasting allows.
TEST_F(StaticBitsTest, Broadcasting) {
  const std::vector<Shape> shapes = {Shape({3, 4, 5, 32}),
                                     Shape({4, 5, 32}),
                                     Shape({1, 4, 1, 32}),
                                     Shape({3, 1, 5, 1}),
                                     Shape({32}),
                                     Shape({1}),
                                     Shape(),
                                     Shape({3, 1, 1, 32}),
                                     Shape({5, 1})};
  const Value x = In(TensorType{kFloat, shapes[0]});
  Value all = x;
  for (const Shape& shape : shapes) {
    const Value other = In(TensorType{kFloat, shape});
    Out(Two("Sub", x, other));
    all = Two("Add", Two("Mul", all, other), x);
  }
  Out(all);
  ExpectSameBits(static_cast<int>(shapes.size()) + 1);
}

// The attribute that says that rows run along the last axis.
std::pair<std::string, AttrValue> RowsOf(const std::string& name) {
  return {name, AttrValue::Ints({-1})};
}

TEST_P(StaticRowsTest, FoldedRows) {
  const int64_t n = GetParam();
  int steps = 0;
  const Value axis = g_.Ints({-1});
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kDouble}) {
    const Value x = In(TensorType{dtype, Shape({3, 2, n})});
    for (const bool keep : {false, true}) {
      for (const char* type : {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin",
                               "ReduceAny", "ReduceAll", "ReduceLogSumExp", "ReduceLogSum"}) {
        Out(g_.Op(type, {{"x", x}, {"axes", axis}}, {{"keep_dims", AttrValue::Bool(keep)}}));
        ++steps;
      }
    }
    Out(g_.Op("ReduceMeanWithCast", {{"x", x}, {"axes", axis}},
              {{"dtype", AttrValue::Int(static_cast<int64_t>(DataType::kFloat))}}));
    ++steps;
  }
  ExpectSameBits(steps);
}

TEST_P(StaticRowsTest, StatisticsAndNorms) {
  const int64_t n = GetParam();
  int steps = 0;
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kDouble}) {
    const Value x = In(TensorType{dtype, Shape({3, 2, n})});
    const Value y = In(TensorType{dtype, Shape({3, 2, n})});
    for (const char* type : {"ReduceStd", "ReduceStdV2"}) {
      const Value both = g_.Op(type, {{"x", x}}, {RowsOf("dim")}, {}, 2);
      Out(g_.Port(both, 0));
      Out(g_.Port(both, 1));
    }
    Out(g_.Op("ReduceStdWithMean", {{"x", x}, {"mean", y}},
              {RowsOf("dim"), {"invert", AttrValue::Bool(true)}}));
    for (const float p : {0.0f, 2.5f, 2147483647.0f, -2147483648.0f}) {
      Out(g_.Op("LpNormV2", {{"x", x}}, {RowsOf("axes"), {"p", AttrValue::Float(p)}}));
    }
    Out(g_.Op("LogSoftmaxV2", {{"logits", x}}));
    Out(g_.Op("SoftmaxGrad", {{"softmax", x}, {"grad_softmax", y}}));
    Out(g_.Op("LogSoftmaxGrad", {{"grad", x}, {"x", y}}));
    Out(g_.Op("L2Normalize", {{"x", x}}, {RowsOf("axis")}));
    steps += 11;
  }
  ExpectSameBits(steps);
}

TEST_P(StaticRowsTest, GatesOfHalves) {
  const int64_t n = GetParam();
  int steps = 0;
  for (const DataType dtype : kTypes) {
    const Value x = In(Special({dtype, Shape({5, 2 * n})}, 9));
    for (const char* type : {"SwiGlu", "GLU", "GeluMul"}) Out(One(type, x)), ++steps;
    const Value both = g_.Op("GeGluV2", {{"x", x}}, {}, {}, 2);
    Out(g_.Port(both, 0));
    Out(g_.Port(both, 1));
    // Halves of another dimension.
    Out(g_.Op("GLU", {{"x", In(Special({dtype, Shape({4, n})}, 10))}},
              {{"dim", AttrValue::Int(0)}}));
    steps += 2;
  }
  ExpectSameBits(steps);
}

// One number for each channel, which is no last dimension.
TEST_P(StaticRowsTest, NumbersByChannel) {
  const int64_t n = GetParam();
  int steps = 0;
  for (const DataType dtype : kTypes) {
    const Value x = In(TensorType{dtype, Shape({2, 3, n})});
    const Value by_channel = In(TensorType{dtype, Shape({3})});
    const Value numbers = In(TensorType{kFloat, Shape({3})});
    Out(g_.Op("PRelu", {{"x", x}, {"weight", by_channel}}));
    Out(g_.Op("Scale", {{"x", x}, {"scale", by_channel}, {"bias", by_channel}}));
    Out(g_.Op("BiasAdd", {{"x", In(TensorType{dtype, Shape({2, 3, 1, n})})}, {"bias", by_channel}},
              {{"data_format", AttrValue::String("NCHW")}}));
    Out(g_.Op("BNInferGrad", {{"grads", x}, {"scale", numbers}, {"batch_variance", numbers}}));
    steps += 4;
  }
  ExpectSameBits(steps);
}

// Lists of one shape are one kernel; others stay with the operators that are applied.
TEST_P(StaticRowsTest, ListsOfTensors) {
  const Shape shape({3, GetParam()});
  int steps = 0;
  for (const DataType dtype : kTypes) {
    const Value a = In(TensorType{dtype, shape}), b = In(TensorType{dtype, shape});
    const Value numbers = In(TensorType{kFloat, Shape({2})});
    const Value unary = g_.Op("ForeachExp", {{"x0", a}, {"x1", b}}, {}, {}, 2);
    const Value scaled =
        g_.Op("ForeachMulScalarList", {{"x0", a}, {"x1", b}, {"scalars", numbers}}, {}, {}, 2);
    for (const Value& list : {unary, scaled}) {
      for (int port = 0; port < 2; ++port) Out(g_.Port(list, port));
      ++steps;
    }
  }
  ExpectSameBits(steps);
}

TEST_F(StaticBitsTest, ListsOfSeveralShapesAreRefused) {
  const Value a = In(TensorType{kFloat, Shape({4})}), b = In(TensorType{kFloat, Shape({5})});
  const Value list = g_.Op("ForeachExp", {{"x0", a}, {"x1", b}}, {}, {}, 2);
  for (int port = 0; port < 2; ++port) Out(g_.Port(list, port));
  g_.Output(outputs_);
  EXPECT_EQ(Run(nullptr, kernels_.get()).static_steps, 0);
}

// Zeros of both signs, in short rows and in rows of several vectors.
TEST_F(StaticBitsTest, TheLargestAndTheLeastOfZeros) {
  for (const int64_t columns : {2, 7, 16, 100}) {
    Tensor zeros = Tensor::Allocate({kFloat, Shape({4, columns})});
    float* const values = reinterpret_cast<float*>(zeros.mutable_data());
    std::fill_n(values, 4 * columns, -0.0f);
    for (const int64_t positive : {int64_t{0}, 2 * columns - 1, 2 * columns + columns / 2}) {
      values[positive] = 0.0f;
    }
    for (const char* type : {"ReduceMax", "ReduceMin"}) {
      Out(g_.Op(type, {{"x", In(zeros)}, {"axes", g_.Ints({-1})}},
                {{"keep_dims", AttrValue::Bool(true)}}));
    }
  }
  ExpectSameBits(8);
}

// ---- integers and double ----

constexpr DataType kWholeTypes[] = {DataType::kInt8,  DataType::kUint8,  DataType::kInt16,
                                    DataType::kInt32, DataType::kUint16, DataType::kUint32,
                                    DataType::kInt64};

TEST_F(StaticBitsTest, FormulasOnIntegers) {
  int steps = 0;
  for (const DataType dtype : kWholeTypes) {
    const Value a = In(Borders({dtype, Shape({37, 29})}, 1));
    const Value b = In(Borders({dtype, Shape({37, 29})}, 2));
    for (const char* type : {"Add", "Sub", "Mul", "Maximum", "Minimum", "RealDiv"}) {
      Out(Two(type, a, b)), ++steps;
    }
    for (const char* type : kCompare) Out(Two(type, a, b)), ++steps;
    for (const char* type : {"Neg", "Abs", "Square", "Sign", "Relu", "Reciprocal", "Log"}) {
      Out(One(type, a)), ++steps;
    }
    Out(g_.Op("Muls", {{"x", a}}, {{"value", AttrValue::Float(-0.7f)}})), ++steps;
    Out(g_.Op("SelectV2", {{"condition", Two("Less", b, a)}, {"then", a}, {"else", b}})), ++steps;
  }
  ExpectSameBits(steps);
}

TEST_F(StaticBitsTest, FormulasOnDouble) {
  int steps = 0;
  const Value a = In(Borders({DataType::kDouble, Shape({37, 29})}, 1));
  const Value b = In(Borders({DataType::kDouble, Shape({37, 29})}, 2));
  for (const char* type : kOfTwo) Out(Two(type, a, b)), ++steps;
  for (const char* type : kCompare) Out(Two(type, a, b)), ++steps;
  for (const char* type :
       {"Sqrt", "Rsqrt", "Neg", "Reciprocal", "Abs", "Square", "Sign", "Floor", "Ceil", "Relu"}) {
    Out(One(type, a)), ++steps;
  }
  Out(g_.Op("Muls", {{"x", a}}, {{"value", AttrValue::Float(0.1f)}})), ++steps;
  Out(g_.Op("SelectV2", {{"condition", Two("Less", b, a)}, {"then", a}, {"else", b}})), ++steps;
  ExpectSameBits(steps);
}

// Squares and cubes are no calls of the C library.
TEST_F(StaticBitsTest, SimplePowers) {
  int steps = 0;
  for (const DataType dtype : kTypes) {
    const Value x = In(Special({dtype, Shape({37, 29})}, 3));
    for (const float exponent : {2.0f, 3.0f}) Out(Two("Pow", x, Scalar(exponent, dtype))), ++steps;
  }
  ExpectSameBits(steps);
}

// What the C library computes a kernel calls it for, in every type.
TEST_F(StaticBitsTest, CallsOfTheCLibrary) {
  int steps = 0;
  for (const DataType dtype : {DataType::kDouble, DataType::kFloat, DataType::kFloat16}) {
    const Value x = In(Special({dtype, Shape({37, 29})}, 4));
    const Value y = In(Special({dtype, Shape({37, 29})}, 5));
    for (const char* type : {"Tan", "Sinh", "Cosh", "Asin", "Acos", "Atan", "Asinh", "Acosh",
                             "Atanh", "Erfc", "Softplus", "Mish", "LogSigmoid", "Rint", "Round"}) {
      Out(One(type, x)), ++steps;
    }
    for (const char* type : {"Atan2", "Mod", "Xlogy", "LogAddExp"}) {
      Out(Two(type, x, y)), ++steps;
    }
  }
  const Value x = In(Special({DataType::kDouble, Shape({37, 29})}, 6));
  const Value y = In(Special({DataType::kDouble, Shape({37, 29})}, 7));
  for (const char* type :
       {"Exp", "Log", "Expm1", "Log1p", "Sin", "Cos", "Tanh", "Erf", "Sigmoid"}) {
    Out(One(type, x)), ++steps;
  }
  Out(Two("Pow", x, y)), ++steps;
  ExpectSameBits(steps);
}

// Quotients that may be by zero.
TEST_F(StaticBitsTest, RefusesWhatHasNoLoopForm) {
  const Value whole = In(Fill({DataType::kInt32, Shape({4, 32})}, 2));
  Out(Two("FloorDiv", whole, Scalar(3, DataType::kInt32)));
  Out(Two("Div", whole, Scalar(3, DataType::kInt32)));
  g_.Output(outputs_);
  EXPECT_EQ(Run(nullptr, kernels_.get()).static_steps, 0);
}

// Every type into every other one.
TEST_F(StaticBitsTest, CastsBetweenAllTypes) {
  std::vector<DataType> all(std::begin(kWholeTypes), std::end(kWholeTypes));
  all.insert(all.end(), {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16,
                         DataType::kDouble, DataType::kBool});
  int steps = 0;
  for (const DataType from : all) {
    const Value x = In(Borders({from, Shape({5, 77})}, static_cast<uint32_t>(from) + 1));
    for (const DataType to : all) {
      if (to != from) Out(Cast(x, to)), ++steps;
    }
  }
  ExpectSameBits(steps);
}

// A scalar does not widen the tensor beside it, but is compared with all its bits.
TEST_F(StaticBitsTest, ScalarsOfOtherTypes) {
  const Value x = In(Borders({DataType::kInt32, Shape({3, 40})}, 1));
  for (const float scalar : {0x1p40f, -0x1p40f, 5.0f}) {
    const Value wide = Scalar(scalar, DataType::kInt64);
    Out(Two("Less", x, wide));
    Out(Two("Maximum", x, wide));
    Out(Two("Add", x, Scalar(scalar)));
    Out(Two("Mul", x, Scalar(scalar, DataType::kDouble)));
  }
  ExpectSameBits(12);
}

// ---- quantisation ----

AttrValue TypeAttr(DataType dtype) {
  return AttrValue::Int(static_cast<int64_t>(dtype));
}

class StaticQuantTest : public StaticBitsTest, public testing::WithParamInterface<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Columns, StaticQuantTest, testing::Values(1, 15, 17, 64, 2056));

TEST_P(StaticQuantTest, StaticScales) {
  const int64_t n = GetParam();
  int steps = 0;
  for (const DataType dtype : kTypes) {
    const Value x = In(Borders({dtype, Shape({3, 2, n})}, 1));
    const Value y = In(Special({dtype, Shape({3, 2, n})}, 2));
    for (const char* mode : {"round", "floor", "ceil", "trunc"}) {
      Out(g_.Op("AscendQuant", {{"x", x}},
                {{"scale", AttrValue::Float(1)},
                 {"offset", AttrValue::Float(0)},
                 {"round_mode", AttrValue::String(mode)}}));
      Out(g_.Op("AscendQuantV2",
                {{"x", y},
                 {"scale", In(TensorType{dtype, Shape({n})})},
                 {"offset", In(TensorType{dtype, Shape({n})})}},
                {{"round_mode", AttrValue::String(mode)}, {"sqrt_mode", AttrValue::Bool(true)}}));
      steps += 2;
    }
    Out(g_.Op("AscendQuantV2", {{"x", y}, {"scale", In(TensorType{dtype, Shape({3, 1, n})})}}));
    Out(g_.Op("AscendQuantV2", {{"x", y}, {"scale", In(TensorType{kFloat, Shape({2})})}},
              {{"axis", AttrValue::Int(1)}}));
    for (const char* name : {"torch.qint8", "torch.quint8", "torch.qint32"}) {
      Out(g_.Op("Quantize",
                {{"x", x},
                 {"scales", In(TensorType{kFloat, Shape({3})})},
                 {"zero_points", In(TensorType{DataType::kInt32, Shape({3})})}},
                {{"dtype", AttrValue::String(name)}, {"axis", AttrValue::Int(0)}}));
    }
    steps += 5;
  }
  ExpectSameBits(steps);
}

// Rows that are zero, infinite, or nothing but NaN have scales of their own.
Tensor RowsOfMagnitudes(Tensor x) {
  constexpr float kValues[] = {0.0f, -0.0f, std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()};
  const int64_t n = x.type().shape.dims().back();
  const int64_t width = BitsOf(x.dtype()) / 8;
  std::byte* to = x.mutable_data();
  for (const float& value : kValues) {
    for (int64_t i = 0; i < n; ++i, to += width)
      FindConvert(DataType::kFloat, x.dtype())(&value, to, 1);
  }
  return x;
}

TEST_P(StaticQuantTest, DynamicScales) {
  const int64_t n = GetParam();
  int steps = 0;
  for (const DataType dtype : kTypes) {
    const Value x = In(RowsOfMagnitudes(Special({dtype, Shape({9, n})}, 3)));
    const Value y = In(RowsOfMagnitudes(Fill({dtype, Shape({9, n})}, 4)));
    const Value smooth = In(TensorType{dtype, Shape({n})});
    for (const Value& from : {x, y}) {
      Out(g_.Op("DynamicQuant", {{"x", from}}, {}, {}, 2));
      Out(g_.Op("DynamicQuant", {{"x", from}, {"smooth_scales", smooth}}, {}, {}, 2));
      Out(g_.Op("DynamicQuantV2", {{"x", from}}, {}, {}, 3));
      Out(g_.Op("DynamicQuantV2", {{"x", from}}, {{"is_symmetrical", AttrValue::Bool(true)}}, {},
                3));
      Out(g_.Op("GeluQuant", {{"x", from}}, {}, {}, 2));
      Out(g_.Op(
          "GeluQuant", {{"x", from}, {"input_scale", smooth}, {"input_offset", smooth}},
          {{"quant_mode", AttrValue::String("static")}, {"approximate", AttrValue::String("tanh")}},
          {}, 2));
      steps += 6;
    }
    Out(g_.Op("AddRmsNormDynamicQuant",
              {{"x1", y}, {"x2", y}, {"gamma", smooth}, {"smooth_scale1", smooth}}, {}, {}, 5));
    ++steps;
  }
  ExpectSameBits(n == 1 ? 0 : steps);
}

TEST_P(StaticQuantTest, DequantisedIntegers) {
  const int64_t n = GetParam();
  const Value x = In(Borders({DataType::kInt32, Shape({3, 2, n})}, 5));
  const Value scale = In(TensorType{kFloat, Shape({n})});
  const Value packed = In(Borders({DataType::kUint64, Shape({n})}, 6));
  const Value rows = In(TensorType{kFloat, Shape({6})});
  int steps = 0;
  for (const DataType to : kTypes) {
    for (const Value& factor : {scale, packed, In(TensorType{kFloat, Shape({1})})}) {
      Out(g_.Op("AscendDequant", {{"x", x}, {"deq_scale", factor}},
                {{"dtype", TypeAttr(to)}, {"relu_flag", AttrValue::Bool(true)}}));
    }
    Out(g_.Op("AscendDequant", {{"x", x}, {"deq_scale", scale}},
              {{"dtype", TypeAttr(to)}, {"sqrt_mode", AttrValue::Bool(true)}}));
    for (const DataType bias : {DataType::kInt32, DataType::kFloat, DataType::kBfloat16}) {
      Out(g_.Op("DequantBias",
                {{"x", x},
                 {"weight_scale", scale},
                 {"activate_scale", rows},
                 {"bias", In(Borders({bias, Shape({n})}, 7))}},
                {{"output_dtype", TypeAttr(to)}}));
    }
    const Value bytes = In(Borders({DataType::kInt8, Shape({5, n})}, 8));
    Out(g_.Op("AscendAntiQuantV2", {{"x", bytes}, {"scale", scale}, {"offset", scale}},
              {{"dst_type", TypeAttr(to)}, {"sqrt_mode", AttrValue::Bool(true)}}));
    Out(g_.Op("AscendAntiQuant", {{"x", bytes}},
              {{"scale", AttrValue::Float(0.3f)},
               {"offset", AttrValue::Float(-3)},
               {"dtype", TypeAttr(to)}}));
    steps += 9;
  }
  ExpectSameBits(steps);
}

// int4 has two elements in a byte: it stays with its own kernels.
TEST_F(StaticBitsTest, RefusesPackedIntegers) {
  const Value x = In(TensorType{kFloat, Shape({4, 32})});
  Out(g_.Op("AscendQuantV2", {{"x", x}, {"scale", In(TensorType{kFloat, Shape({32})})}},
            {{"dst_type", TypeAttr(DataType::kInt4)}}));
  Out(g_.Op("DynamicQuant", {{"x", x}}, {{"dst_type", TypeAttr(DataType::kInt4)}}, {}, 2));
  g_.Output(outputs_);
  EXPECT_EQ(Run(nullptr, kernels_.get()).static_steps, 0);
}

// A chain that begins with integers and ends with them is one kernel.
TEST_P(StaticQuantTest, ChainFromIntegersToIntegers) {
  const int64_t n = GetParam();
  const Value x = In(Borders({DataType::kInt32, Shape({6, n})}, 9));
  const Value scale = In(TensorType{kFloat, Shape({n})});
  Value y = g_.Op("AscendDequant", {{"x", x}, {"deq_scale", scale}},
                  {{"dtype", TypeAttr(DataType::kFloat16)}});
  y = One("Gelu", Two("Add", y, In(TensorType{kHalf, Shape({n})})));
  y = g_.Op("AscendQuantV2", {{"x", y}, {"scale", scale}});
  Out(Cast(Two("Add", y, In(Borders({DataType::kInt8, Shape({6, n})}, 10))), DataType::kInt32));
  ExpectSameBits();
}

// Random chains of all types, with casts between them.
class StaticMixedChainTest : public StaticBitsTest, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, StaticMixedChainTest, testing::Range(1, 9));

TEST_P(StaticMixedChainTest, RandomOperatorsAndCasts) {
  constexpr DataType kAll[] = {DataType::kInt8,     DataType::kUint8, DataType::kInt32,
                               DataType::kInt64,    DataType::kFloat, DataType::kFloat16,
                               DataType::kBfloat16, DataType::kDouble};
  constexpr const char* kEveryType[] = {"Abs", "Neg", "Square", "Sign", "Relu"};
  constexpr const char* kPairs[] = {"Add", "Sub", "Mul", "Maximum", "Minimum"};
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const auto below = [&](size_t bound) { return static_cast<size_t>(random()) % bound; };
  const auto columns = static_cast<int64_t>(below(130)) + 1;
  const Shape whole({static_cast<int64_t>(below(4)) + 1, columns});
  std::vector<Value> values;
  for (const DataType dtype : kAll) {
    const bool row = below(3) == 0;
    values.push_back(In(Borders({dtype, row ? Shape({columns}) : whole}, 11)));
  }
  Value last = In(Borders({kFloat, whole}, 12));
  for (size_t i = 0; i < 8 + below(24); ++i) {
    const Value other = values[below(values.size())];
    switch (below(5)) {
      case 0:
        last = Cast(last, kAll[below(std::size(kAll))]);
        break;
      case 1:
        last = One(kEveryType[below(std::size(kEveryType))], last);
        break;
      case 2:
        last = g_.Op(
            "SelectV2",
            {{"condition", Two(kCompare[below(6)], last, other)}, {"then", last}, {"else", other}});
        break;
      default:
        last = Two(kPairs[below(std::size(kPairs))], last, other);
    }
    if (below(2) == 0) values.push_back(last);
  }
  Out(last);
  ExpectSameBits();
}

// Random chains: every operator may read every value before it.
class StaticChainTest : public StaticBitsTest, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, StaticChainTest, testing::Range(1, 9));

TEST_P(StaticChainTest, RandomOperators) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const auto below = [&](size_t bound) { return static_cast<size_t>(random()) % bound; };
  const int64_t columns = static_cast<int64_t>(below(70)) + 1;
  const Shape whole(
      {static_cast<int64_t>(below(4)) + 1, static_cast<int64_t>(below(5)) + 1, columns});
  for (const DataType dtype : kTypes) {
    std::vector<Value> values;
    for (const Shape& shape : {whole, Shape({columns}), Shape({whole[1], 1}), whole}) {
      values.push_back(In(TensorType{dtype, shape}));
    }
    Value last = values[0];
    for (size_t i = 0; i < 5 + below(30); ++i) {
      const Value a = below(2) == 0 ? last : values[below(values.size())];
      const Value b = values[below(values.size())];
      switch (below(7)) {
        case 6: {
          const Value merged =
              g_.Op("Reshape",
                    {{"x", Two("Add", values[0], a)},
                     {"shape", below(2) == 0 ? g_.Ints({-1, columns}) : g_.Ints({whole[0], -1})}});
          values.push_back(
              g_.Op("Reshape", {{"x", One("Neg", merged)}, {"shape", g_.Ints(whole.dims())}}));
          last = values.back();
          break;
        }
        case 0:
          last = One(kOfOne[below(std::size(kOfOne))], a);
          break;
        case 1:
          last = g_.Op("SelectV2",
                       {{"condition", Two(kCompare[below(6)], a, b)}, {"then", a}, {"else", last}});
          break;
        case 2:
          last = Two("Add", values[0], a);
          last = g_.Op("SoftmaxV2", {{"x", last}});
          break;
        default:
          last = Two(kOfTwo[below(std::size(kOfTwo))], a, b);
      }
      values.push_back(last);
    }
    Out(last);
    for (size_t i = 4; i < values.size(); i += 1 + below(8)) Out(values[i]);
  }
  ExpectSameBits();
}

}  // namespace
}  // namespace npumesh
