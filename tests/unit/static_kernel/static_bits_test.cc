// Static kernels give the bits of the operators' own kernels.
#include <fmt/format.h>
#include <stdlib.h>

#include <bit>
#include <filesystem>
#include <limits>
#include <random>

#include "graph/static_kernel/static_kernels.h"
#include "tests/unit/fusion/fusion_fixture.h"

namespace npumesh {
namespace {

class StaticBitsTest : public FusionTest {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = (std::filesystem::temp_directory_path() / "npumesh_bits_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::filesystem::create_directory(folder_ / "build");
    StaticKernelOptions options;
    options.build_dir = folder_ / "build";
    options.store_root = folder_ / "store";
    Result<std::unique_ptr<StaticKernels>> made = StaticKernels::Create(options);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    kernels_ = std::move(*made);
  }
  static void TearDownTestSuite() {
    kernels_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Numbers at which formulas and roundings differ, among others.
  static Tensor Special(const TensorType& type, uint32_t seed) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kSpecial[] = {0.0f,       -0.0f,         1.0f,       -1.0f,     kInfinity,
                                  -kInfinity, 0x1p-149f,     0x1p-127f,  -0x1p-15f, 0x1.ffcp-15f,
                                  65504.0f,   65519.0f,      65520.0f,   -70000.0f, 3.4e38f,
                                  1e-8f,      5.9604645e-8f, 0x1.8p-25f, 88.0f,     -104.5f,
                                  700.0f,     -700.0f,       0x1p21f,    -0x1p25f,  std::nanf("")};
    std::mt19937 random(seed);
    std::vector<float> values(static_cast<size_t>(type.shape.elements()));
    for (float& value : values) {
      const uint32_t drawn = static_cast<uint32_t>(random());
      switch (drawn % 4) {
        case 0:
          value = kSpecial[(drawn >> 8) % std::size(kSpecial)];
          break;
        case 1:
          value = std::bit_cast<float>(static_cast<uint32_t>(random()));
          break;
        default:
          value = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-29f;
      }
    }
    Tensor tensor = Tensor::Allocate(type);
    FindConvert(kFloat, type.dtype)(values.data(), tensor.mutable_data(), values.size());
    return tensor;
  }

  static bool BothNan(const Tensor& a, const Tensor& b, size_t i) {
    if (a.dtype() == DataType::kBool) return false;
    const size_t width = static_cast<size_t>(BitsOf(a.dtype())) / 8;
    const auto is_nan = [&](const Tensor& tensor) {
      double value = 0;
      FindConvert(tensor.dtype(), DataType::kDouble)(
          static_cast<const std::byte*>(tensor.data()) + i * width, &value, 1);
      return std::isnan(value);
    };
    return is_nan(a) && is_nan(b);
  }

  void Out(Value value) { outputs_.push_back(value); }

  // Every output has the same bits with and without static kernels, NaNs are NaNs; and `least`
  // steps were static kernels.
  void ExpectSameBits(int least = 1) {
    g_.Output(outputs_);
    const Outcome plain = Run(nullptr);
    const Outcome fast = Run(nullptr, kernels_.get());
    ASSERT_EQ(fast.outputs.size(), plain.outputs.size());
    for (size_t i = 0; i < plain.outputs.size(); ++i) {
      ASSERT_EQ(fast.outputs[i].type(), plain.outputs[i].type());
      const size_t width = static_cast<size_t>(BitsOf(plain.outputs[i].dtype())) / 8;
      const auto* seen = static_cast<const std::byte*>(fast.outputs[i].data());
      const auto* expected = static_cast<const std::byte*>(plain.outputs[i].data());
      int shown = 0;
      for (size_t e = 0; e < plain.outputs[i].bytes() / width && shown < 5; ++e) {
        if (std::memcmp(seen + e * width, expected + e * width, width) == 0) continue;
        if (BothNan(fast.outputs[i], plain.outputs[i], e)) continue;
        ++shown;
        ADD_FAILURE() << "output " << i << " " << plain.outputs[i].type().ToString() << " element "
                      << e << ": seen " << Hex(seen + e * width, width) << ", expected "
                      << Hex(expected + e * width, width);
      }
    }
    EXPECT_GE(fast.static_steps, least);
    EXPECT_EQ(kernels_->stats().failed, 0);
  }

  static std::string Hex(const std::byte* bytes, size_t width) {
    std::string text = "0x";
    for (size_t i = width; i-- > 0;) text += fmt::format("{:02x}", static_cast<int>(bytes[i]));
    return text;
  }

  std::vector<Value> outputs_;
  static std::filesystem::path folder_;
  static std::unique_ptr<StaticKernels> kernels_;
};

std::filesystem::path StaticBitsTest::folder_;
std::unique_ptr<StaticKernels> StaticBitsTest::kernels_;

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
      switch (below(6)) {
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
    Out(values[values.size() / 2]);
  }
  ExpectSameBits();
}

}  // namespace
}  // namespace npumesh
