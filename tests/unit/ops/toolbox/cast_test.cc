// Cast: all pairs of types, and the rules of cast.h one by one.
#include "graph/ops/toolbox/values/cast.h"

#include "tests/unit/op_reference.h"

namespace npumesh {
namespace {

class CastTest : public testing::Test {
 protected:
  Tensor Cast(const Tensor& x, DataType to) {
    return RunOne({.type = "Cast",
                   .inputs = {{"x", x}},
                   .attrs = {{"dst_type", AttrValue::Int(static_cast<int64_t>(to))}}});
  }
};

std::vector<DataType> AllTypes() {
  std::vector<DataType> types(std::begin(kReals), std::end(kReals));
  types.insert(types.end(), std::begin(kIntegers), std::end(kIntegers));
  types.push_back(kBool);
  return types;
}

TEST_F(CastTest, SmallNumbersSurviveEveryPair) {
  const std::vector<double> values = {0, 1, 2, 3, 100, 127};
  for (const DataType from : AllTypes()) {
    for (const DataType to : AllTypes()) {
      const bool logic = from == kBool || to == kBool;
      std::vector<double> expected = values;
      for (double& value : expected) value = logic ? value != 0 : value;
      const Tensor x = FromDoubles(from, {6}, from == kBool ? expected : values);
      const Tensor y = Cast(x, to);
      EXPECT_EQ(y.dtype(), to);
      EXPECT_EQ(ToDoubles(y), expected) << Name(from) << " to " << Name(to);
    }
  }
}

TEST_F(CastTest, SameTypeIsACopy) {
  const Tensor x = Make<uint32_t>(kF32, {2}, {0x7fa00001u, 0x80000000u});  // a signalling NaN, -0
  EXPECT_TRUE(SameBytes(Cast(x, kF32), x));
}

TEST_F(CastTest, FloatToIntegerTruncatesSaturatesAndMakesNanZero) {
  const std::vector<double> x = {1.9, -1.9, NAN, INFINITY, -INFINITY, 3e9, -3e9, 1e20, 255.5, -0.5};
  for (const DataType from : {kF32, kF64}) {
    const Tensor input = FromDoubles(from, {10}, x);
    for (const DataType to : kIntegers) {
      WithStorage(to, [&](auto tag) {
        using T = decltype(tag);
        if constexpr (std::is_integral_v<T>) {
          std::vector<T> expected;
          for (const double value : x) {
            const long double whole = std::trunc(static_cast<long double>(value));
            T element = 0;
            if (whole > static_cast<long double>(std::numeric_limits<T>::max())) {
              element = std::numeric_limits<T>::max();
            } else if (whole < static_cast<long double>(std::numeric_limits<T>::min())) {
              element = std::numeric_limits<T>::min();
            } else if (!std::isnan(value)) {
              element = static_cast<T>(whole);
            }
            expected.push_back(element);
          }
          ExpectSame<T>(Cast(input, to), expected, fmt::format("{} to {}", Name(from), Name(to)));
        }
        return 0;
      });
    }
  }
}

TEST_F(CastTest, LimitsOfIntegersAreMetExactly) {
  const Tensor wide =
      FromDoubles(kF64, {4}, {2147483647.0, 2147483648.0, -2147483648.0, -2147483649.0});
  EXPECT_EQ(ValuesOf<int32_t>(Cast(wide, DataType::kInt32)),
            (std::vector<int32_t>{INT32_MAX, INT32_MAX, INT32_MIN, INT32_MIN}));
  const Tensor top = FromDoubles(kF32, {3}, {0x1p63, 0x1.fffffep62, -0x1p63});
  EXPECT_EQ(ValuesOf<int64_t>(Cast(top, DataType::kInt64)),
            (std::vector<int64_t>{INT64_MAX, 0x7fffff8000000000, INT64_MIN}));
  const Tensor unsigned_top = FromDoubles(kF32, {2}, {0x1p64, 0x1.fffffep63});
  EXPECT_EQ(ValuesOf<uint64_t>(Cast(unsigned_top, DataType::kUint64)),
            (std::vector<uint64_t>{UINT64_MAX, 0xffffff0000000000}));
}

TEST_F(CastTest, IntegersKeepTheLowBits) {
  const Tensor x = Make<int32_t>(DataType::kInt32, {4}, {300, -1, 0x12345678, INT32_MIN});
  EXPECT_EQ(ValuesOf<int8_t>(Cast(x, DataType::kInt8)), (std::vector<int8_t>{44, -1, 0x78, 0}));
  EXPECT_EQ(ValuesOf<uint16_t>(Cast(x, DataType::kUint16)),
            (std::vector<uint16_t>{300, 65535, 0x5678, 0}));
  EXPECT_EQ(ValuesOf<uint64_t>(Cast(x, DataType::kUint64)),
            (std::vector<uint64_t>{300, UINT64_MAX, 0x12345678, 0xffffffff80000000}));
}

TEST_F(CastTest, AnythingButZeroIsTrue) {
  const std::vector<double> x = {0, -0.0, 0x1p-14, NAN, INFINITY, -1};
  for (const DataType from : kReals) {
    EXPECT_EQ(ValuesOf<uint8_t>(Cast(FromDoubles(from, {6}, x), kBool)),
              (std::vector<uint8_t>{0, 0, 1, 1, 1, 1}))
        << Name(from);
  }
  const Tensor wide = Make<int64_t>(DataType::kInt64, {2}, {int64_t{1} << 40, 0});
  EXPECT_EQ(ValuesOf<uint8_t>(Cast(wide, kBool)), (std::vector<uint8_t>{1, 0}));
}

TEST_F(CastTest, BytesOtherThanOneCountAsTrue) {
  const Tensor x = Make<uint8_t>(kBool, {3}, {0, 1, 7});
  EXPECT_EQ(ValuesOf<float>(Cast(x, kF32)), (std::vector<float>{0, 1, 1}));
}

TEST_F(CastTest, HalfTypesAgreeWithTheirScalarConversion) {
  std::vector<float> x = AnyBits<float>(100000, 21);
  for (const float value : SpecialFloats()) x.push_back(value);
  for (uint32_t bits = 0; bits < 65536; ++bits) {  // halves and the ties between them
    x.push_back(Float16::ToFloat(static_cast<uint16_t>(bits)));
    x.push_back(std::bit_cast<float>(std::bit_cast<uint32_t>(x.back()) + 0x1000u));
  }
  const auto count = static_cast<int64_t>(x.size());
  const Tensor half = Cast(Make<float>(kF32, {count}, x), kF16);
  const Tensor bfloat = Cast(Make<float>(kF32, {count}, x), kBf16);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(half.as<uint16_t>()[i], Float16::FromFloat(x[i])) << x[i];
    ASSERT_EQ(bfloat.as<uint16_t>()[i], Bfloat16::FromFloat(x[i])) << x[i];
  }
}

TEST_F(CastTest, EveryHalfWidensExactly) {
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  const Tensor half = Cast(Make<uint16_t>(kF16, {65536}, bits), kF32);
  const Tensor bfloat = Cast(Make<uint16_t>(kBf16, {65536}, bits), kF32);
  for (size_t i = 0; i < bits.size(); ++i) {
    ASSERT_EQ(half.as<uint32_t>()[i], std::bit_cast<uint32_t>(Float16::ToFloat(bits[i])));
    ASSERT_EQ(bfloat.as<uint32_t>()[i], std::bit_cast<uint32_t>(Bfloat16::ToFloat(bits[i])));
  }
}

// One rounding: float in between would round up to a tie first and then to even.
TEST_F(CastTest, DoubleAndIntegersRoundToHalvesOnce) {
  const double above_tie = 1 + 0x1p-11 + 0x1p-40;
  const double below_tie = 1 + 0x1p-10 + 0x1p-11 - 0x1p-40;
  const Tensor half = Cast(FromDoubles(kF64, {3}, {above_tie, below_tie, 1e300}), kF16);
  EXPECT_EQ(ValuesOf<uint16_t>(half), (std::vector<uint16_t>{0x3c01, 0x3c01, 0x7c00}));
  const Tensor tiny = Cast(FromDoubles(kF64, {2}, {0x1p-25 + 0x1p-60, 1e-300}), kF16);
  EXPECT_EQ(ValuesOf<uint16_t>(tiny), (std::vector<uint16_t>{1, 0}));
  const int64_t above_integer_tie = (int64_t{1} << 40) + (int64_t{1} << 32) + 1;
  const Tensor bfloat = Cast(Make<int64_t>(DataType::kInt64, {1}, {above_integer_tie}), kBf16);
  EXPECT_EQ(bfloat.as<uint16_t>()[0], Bfloat16(0x1.02p40f).bits);
}

TEST_F(CastTest, RefusesTypesItDoesNotKnow) {
  const Tensor x = FromDoubles(kF32, {1}, {1});
  const auto cast = [&](int64_t to) {
    return FailOf(
        {.type = "Cast", .inputs = {{"x", x}}, .attrs = {{"dst_type", AttrValue::Int(to)}}});
  };
  EXPECT_EQ(cast(13).code(), Code::kUnsupported);
  EXPECT_THAT(std::string(cast(13).message()),
              testing::AllOf(testing::HasSubstr("node_under_test"), testing::HasSubstr("float32"),
                             testing::HasSubstr("string")));
  EXPECT_EQ(cast(99).code(), Code::kCorrupt);
  EXPECT_EQ(FailOf({.type = "Cast", .inputs = {{"x", x}}}).code(), Code::kCorrupt);
}

TEST(FindConvertTest, IsNullForOtherTypes) {
  EXPECT_EQ(FindConvert(DataType::kString, kF32), nullptr);
  EXPECT_EQ(FindConvert(kF32, DataType::kComplex64), nullptr);
}

// The values of all codes, and the nearest of them by distance; of two, the one with the even code.
struct Codes {
  DataType dtype;
  std::vector<double> values;  // in the order of the codes, without sign
};

double Nearest(const Codes& codes, double value) {
  const double size = std::min(std::fabs(value), codes.values.back());  // or all are equally far
  size_t best = 0;
  for (size_t code = 1; code < codes.values.size(); ++code) {
    const double now = std::fabs(codes.values[code] - size);
    const double before = std::fabs(codes.values[best] - size);
    if (now < before || (now == before && code % 2 == 0)) best = code;
  }
  return std::copysign(codes.values[best], value);
}

TEST_F(CastTest, Float4GetsTheNearestCode) {
  const Codes both[] = {{DataType::kFloat4E2M1, {0, 0.5, 1, 1.5, 2, 3, 4, 6}},
                        {DataType::kFloat4E1M2, {0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75}}};
  std::vector<double> x = {0, -0.0, 7, -100, 1e30, -1e-30, 5, 3.5, 2.5, 1.75, 0.25, -1.25};
  for (int i = -700; i <= 700; ++i) x.push_back(i / 64.0);  // all the ties, and a count that is odd
  for (const Codes& codes : both) {
    std::vector<double> expected;
    for (const double value : x) expected.push_back(Nearest(codes, value));
    for (const DataType from : {kF32, kF64}) {
      const Tensor narrow =
          Cast(FromDoubles(from, {static_cast<int64_t>(x.size())}, x), codes.dtype);
      EXPECT_EQ(narrow.dtype(), codes.dtype);
      EXPECT_EQ(ToDoubles(Cast(narrow, kF32)), expected) << Name(codes.dtype);
    }
    const Tensor whole = Cast(Make<int32_t>(DataType::kInt32, {3}, {1, -1, 9}), codes.dtype);
    EXPECT_EQ(ToDoubles(Cast(whole, kF32)), (std::vector<double>{1, -1, codes.values.back()}));
  }
  // Just above a tie of double, which float32 would round to the tie.
  const Tensor above = FromDoubles(kF64, {2}, {2.5 + 0x1p-40, 2.5});
  EXPECT_EQ(ToDoubles(Cast(Cast(above, DataType::kFloat4E2M1), kF32)), (std::vector<double>{3, 2}));
}

TEST_F(CastTest, PowersOfTwoGetTheNearestOne) {
  constexpr DataType kPowers = DataType::kFloat8E8M0;
  std::vector<double> x, expected;
  for (int power = -126; power < 127; ++power) {
    const double unit = std::ldexp(1.0, power);
    x.insert(x.end(), {unit, -1.25 * unit, 1.49 * unit, 1.5 * unit, 1.75 * unit});
    expected.insert(expected.end(), {unit, unit, unit, 2 * unit, 2 * unit});
  }
  const auto count = static_cast<int64_t>(x.size());
  EXPECT_EQ(ToDoubles(Cast(Cast(FromDoubles(kF32, {count}, x), kPowers), kF32)), expected);
  const Tensor odd = FromDoubles(kF32, {4}, {0, 0x1p-127, NAN, INFINITY});
  const std::vector<double> seen = ToDoubles(Cast(Cast(odd, kPowers), kF32));
  EXPECT_EQ(seen[0], 0x1p-127);
  EXPECT_EQ(seen[1], 0x1p-127);
  EXPECT_TRUE(std::isnan(seen[2]) && std::isnan(seen[3]));
}

}  // namespace
}  // namespace npumesh
