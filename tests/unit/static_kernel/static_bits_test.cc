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
constexpr const char* kOfTwo[] = {"Add", "Sub", "Mul", "RealDiv", "Div", "Maximum", "Minimum"};
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
                         testing::Values(1, 2, 15, 16, 17, 31, 48, 768, 1023, 1024, 1025, 2056));

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

// What is summed in another order agrees to the last place.
TEST_F(StaticBitsTest, Reductions) {
  const Value x = In(TensorType{kFloat, Shape({6, 333})});
  const Value axis = g_.Ints({-1});
  for (const char* type : {"ReduceSum", "ReduceMean", "ReduceMax"}) {
    Out(g_.Op(type, {{"x", x}, {"axes", axis}}, {{"keep_dims", AttrValue::Bool(true)}}));
  }
  ExpectSameBits(3);
}

// Random chains: every operator may read every value before it.
class StaticChainTest : public StaticBitsTest, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, StaticChainTest, testing::Range(1, 13));

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
