// The 8-bit floats against decoders written from their definitions, bit by bit.
#include "graph/ops/toolbox/values/small_float.h"

#include <cmath>
#include <limits>

#include "graph/ops/toolbox/values/cast.h"
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

double SignOf(int code) {
  return code >= 128 ? -1 : 1;
}

double DecodeE5m2(int code) {
  const int exponent = code >> 2 & 31;
  const int mantissa = code & 3;
  if (exponent == 31) return mantissa == 0 ? SignOf(code) * kInf : kNan;
  if (exponent == 0) return SignOf(code) * std::ldexp(mantissa / 4.0, -14);
  return SignOf(code) * std::ldexp(1 + mantissa / 4.0, exponent - 15);
}

double DecodeE4m3(int code) {
  const int exponent = code >> 3 & 15;
  const int mantissa = code & 7;
  if (exponent == 15 && mantissa == 7) return kNan;
  if (exponent == 0) return SignOf(code) * std::ldexp(mantissa / 8.0, -6);
  return SignOf(code) * std::ldexp(1 + mantissa / 8.0, exponent - 7);
}

// Reads the code as a string of bits: sign, prefix, exponent, mantissa.
double DecodeHif8(int code) {
  if (code == 0) return 0;
  if (code == 0x80) return kNan;
  if (code == 0x6f || code == 0xef) return SignOf(code) * kInf;
  std::string bits;
  for (int i = 6; i >= 0; --i) bits += (code >> i & 1) != 0 ? '1' : '0';
  const std::pair<std::string, int> prefixes[] = {
      {"11", 4}, {"10", 3}, {"01", 2}, {"001", 1}, {"0001", 0}};
  for (const auto& [prefix, exponent_bits] : prefixes) {
    if (!bits.starts_with(prefix)) continue;
    const std::string rest = bits.substr(prefix.size());
    int exponent = 0;
    if (exponent_bits > 0) {
      exponent = 1;
      for (int i = 1; i < exponent_bits; ++i) {
        exponent = 2 * exponent + (rest[static_cast<size_t>(i)] - '0');
      }
      if (rest[0] == '1') exponent = -exponent;
    }
    double mantissa = 1;
    double weight = 0.5;
    for (size_t i = static_cast<size_t>(exponent_bits); i < rest.size(); ++i, weight /= 2) {
      if (rest[i] == '1') mantissa += weight;
    }
    return SignOf(code) * std::ldexp(mantissa, exponent);
  }
  return SignOf(code) * std::ldexp(1, (code & 7) - 23);
}

struct Format {
  DataType dtype;
  double (*decode)(int);
  double past;     // the value that would follow the largest one
  uint8_t beyond;  // its code: infinity or NaN
  uint8_t nan;
};
const Format kFormats[] = {{DataType::kFloat8E5M2, DecodeE5m2, 65536, 0x7c, 0x7f},
                           {DataType::kFloat8E4M3Fn, DecodeE4m3, 480, 0x7f, 0x7f},
                           {DataType::kHifloat8, DecodeHif8, 49152, 0x6f, 0x80}};

Tensor Cast(const Tensor& x, DataType to) {
  const auto out =
      RunOp({.type = "Cast", .inputs = {{"x", x}}, .attrs = {{"dst_type", AttrValue::Type(to)}}});
  EXPECT_TRUE(out.ok()) << out.status().ToString();
  return out.ok() ? (*out)[0] : Tensor::Allocate({to, x.shape()});
}

uint8_t Encoded(float value, DataType dtype) {
  return Cast(Make<float>(DataType::kFloat, {1}, {value}), dtype).as<uint8_t>()[0];
}

Tensor AllCodes(DataType dtype) {
  std::vector<uint8_t> codes;
  for (int code = 0; code < 256; ++code) codes.push_back(static_cast<uint8_t>(code));
  return Make<uint8_t>(dtype, {256}, codes);
}

TEST(SmallFloat, EveryCodeHasTheValueOfItsDefinition) {
  for (const Format& format : kFormats) {
    const Tensor wide = Cast(AllCodes(format.dtype), DataType::kFloat);
    for (int code = 0; code < 256; ++code) {
      const double expected = format.decode(code);
      const float seen = wide.as<float>()[static_cast<size_t>(code)];
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(seen)) << Name(format.dtype) << " " << code;
      } else {
        EXPECT_EQ(seen, expected) << Name(format.dtype) << " " << code;
        EXPECT_EQ(std::signbit(seen), std::signbit(expected)) << Name(format.dtype) << " " << code;
      }
    }
  }
}

TEST(SmallFloat, KnownValues) {
  EXPECT_EQ(Encoded(57344, DataType::kFloat8E5M2), 0x7b);
  EXPECT_EQ(Encoded(448, DataType::kFloat8E4M3Fn), 0x7e);
  EXPECT_EQ(Encoded(32768, DataType::kHifloat8), 0x6e);
  EXPECT_EQ(Encoded(1, DataType::kFloat8E5M2), 0x3c);
  EXPECT_EQ(Encoded(1, DataType::kFloat8E4M3Fn), 0x38);
  EXPECT_EQ(Encoded(1, DataType::kHifloat8), 0x08);
  EXPECT_EQ(Encoded(-0.0f, DataType::kFloat8E4M3Fn), 0x80);
  EXPECT_EQ(Encoded(-0.0f, DataType::kHifloat8), 0x00);
}

// The values of a format with their codes, and where its grid would go on.
std::map<double, int> Grid(const Format& format) {
  std::map<double, int> grid;
  for (int code = 0; code < 128; ++code) {
    const double value = format.decode(code);
    if (std::isfinite(value)) grid[value] = code;
  }
  grid[format.past] = format.beyond;
  return grid;
}

TEST(SmallFloat, RoundsToNearestAndTiesToTheEvenCode) {
  for (const Format& format : kFormats) {
    const std::map<double, int> grid = Grid(format);
    for (auto low = grid.begin(), high = std::next(low); high != grid.end(); ++low, ++high) {
      const auto middle = static_cast<float>((low->first + high->first) / 2);
      ASSERT_EQ(middle, (low->first + high->first) / 2);
      const int even = low->second % 2 == 0 ? low->second : high->second;
      EXPECT_EQ(Encoded(middle, format.dtype), even) << Name(format.dtype) << " " << middle;
      EXPECT_EQ(Encoded(std::nextafter(middle, 0.0f), format.dtype), low->second) << middle;
      EXPECT_EQ(Encoded(std::nextafter(middle, 1e30f), format.dtype), high->second) << middle;
      if (high->second != format.beyond) {
        EXPECT_EQ(Encoded(static_cast<float>(-high->first), format.dtype), high->second | 0x80);
      }
    }
  }
}

TEST(SmallFloat, WhatDoesNotFit) {
  for (const Format& format : kFormats) {
    const float infinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(Encoded(1e30f, format.dtype), format.beyond) << Name(format.dtype);
    EXPECT_EQ(Encoded(infinity, format.dtype), format.beyond) << Name(format.dtype);
    EXPECT_EQ(Encoded(-infinity, format.dtype), format.beyond | 0x80) << Name(format.dtype);
    EXPECT_EQ(Encoded(std::nanf(""), format.dtype), format.nan) << Name(format.dtype);
  }
}

TEST(SmallFloat, FromAndToEveryOtherType) {
  const DataType others[] = {DataType::kFloat16, DataType::kBfloat16, DataType::kDouble,
                             DataType::kInt8,    DataType::kUint8,    DataType::kInt64};
  for (const Format& format : kFormats) {
    for (const DataType other : others) {
      const Tensor x = FromDoubles(other, {4}, {0, 1, 3, 96});
      const Tensor small = Cast(x, format.dtype);
      for (size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(format.decode(small.as<uint8_t>()[i]), ToDoubles(x)[i]);
      }
      EXPECT_TRUE(SameBytes(Cast(small, other), x)) << Name(format.dtype) << " " << Name(other);
    }
  }
  // One rounding: through float32 the double would first become the middle, and then even.
  const double above = 17 + std::ldexp(1, -30);
  EXPECT_EQ(DecodeE4m3(Cast(FromDoubles(DataType::kDouble, {1}, {above}), DataType::kFloat8E4M3Fn)
                           .as<uint8_t>()[0]),
            18);
}

TEST(SmallFloat, OperatorsThatMoveBytesTakeThem) {
  for (const Format& format : kFormats) {
    const Tensor x = Make<uint8_t>(format.dtype, {2, 3}, {1, 2, 3, 4, 5, 0x80});
    const OpCall calls[] = {
        {.type = "Transpose", .inputs = {{"x", x}, {"perm", MakeInts({1, 0})}}},
        {.type = "GatherV2",
         .inputs = {{"x", x}, {"indices", MakeInts({1})}, {"axis", MakeInts({0})}}},
        {.type = "Slice",
         .inputs = {{"x", x}, {"offsets", MakeInts({1, 0})}, {"size", MakeInts({1, 3})}}},
        {.type = "BroadcastTo", .inputs = {{"x", x}, {"shape", MakeInts({1, 2, 3})}}},
        {.type = "ConcatV2",
         .inputs = {{"x0", x}, {"concat_dim", Make<int64_t>(DataType::kInt64, {}, {0})}}},
    };
    const std::vector<std::vector<uint8_t>> expected = {{1, 4, 2, 5, 3, 0x80},
                                                        {4, 5, 0x80},
                                                        {4, 5, 0x80},
                                                        {1, 2, 3, 4, 5, 0x80},
                                                        {1, 2, 3, 4, 5, 0x80}};
    for (size_t i = 0; i < std::size(calls); ++i) {
      const auto out = RunOp(calls[i]);
      ASSERT_TRUE(out.ok()) << calls[i].type << out.status().ToString();
      EXPECT_EQ((*out)[0].dtype(), format.dtype);
      EXPECT_THAT((*out)[0].as<uint8_t>(), testing::ElementsAreArray(expected[i])) << calls[i].type;
    }
  }
}

}  // namespace
}  // namespace npumesh
