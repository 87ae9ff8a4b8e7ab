#include "runtime/base/data_type.h"

#include <gtest/gtest.h>

#include <set>

namespace npumesh {
namespace {

struct Expected {
  std::string_view serial;
  int proto;
  int runtime;
  int bits;
};

// GE's numbers: by proto number.
constexpr Expected kReference[] = {
    {"DT_UNDEFINED", 0, 28, 0},      {"DT_FLOAT", 1, 0, 32},
    {"DT_FLOAT16", 2, 1, 16},        {"DT_INT8", 3, 2, 8},
    {"DT_UINT8", 4, 4, 8},           {"DT_INT16", 5, 6, 16},
    {"DT_UINT16", 6, 7, 16},         {"DT_INT32", 7, 3, 32},
    {"DT_INT64", 8, 9, 64},          {"DT_UINT32", 9, 8, 32},
    {"DT_UINT64", 10, 10, 64},       {"DT_BOOL", 11, 12, 8},
    {"DT_DOUBLE", 12, 11, 64},       {"DT_STRING", 13, 13, 0},
    {"DT_DUAL_SUB_INT8", 14, 14, 8}, {"DT_DUAL_SUB_UINT8", 15, 15, 8},
    {"DT_COMPLEX64", 16, 16, 64},    {"DT_COMPLEX128", 17, 17, 128},
    {"DT_QINT8", 18, 18, 8},         {"DT_QINT16", 19, 19, 16},
    {"DT_QINT32", 20, 20, 32},       {"DT_QUINT8", 21, 21, 8},
    {"DT_QUINT16", 22, 22, 16},      {"DT_RESOURCE", 23, 23, 64},
    {"DT_STRING_REF", 24, 24, 0},    {"DT_DUAL", 25, 25, 40},
    {"DT_VARIANT", 26, 26, 64},      {"DT_BFLOAT16", 27, 27, 16},
    {"DT_INT4", 28, 29, 4},          {"DT_UINT1", 29, 30, 1},
    {"DT_INT2", 30, 31, 2},          {"DT_UINT2", 31, 32, 2},
    {"DT_COMPLEX32", 32, 33, 32},    {"DT_HIFLOAT8", 33, 34, 8},
    {"DT_FLOAT8_E5M2", 34, 35, 8},   {"DT_FLOAT8_E4M3FN", 35, 36, 8},
    {"DT_FLOAT8_E8M0", 36, 37, 8},   {"DT_FLOAT6_E3M2", 37, 38, 6},
    {"DT_FLOAT6_E2M3", 38, 39, 6},   {"DT_FLOAT4_E2M1", 39, 40, 4},
    {"DT_FLOAT4_E1M2", 40, 41, 4},   {"DT_HIFLOAT4", 41, 42, 4},
};

TEST(DataType, BothNumberingsAgreeWithTheReference) {
  for (const Expected& row : kReference) {
    SCOPED_TRACE(row.serial);
    const auto dtype = static_cast<DataType>(row.runtime);
    EXPECT_EQ(SerialName(dtype), row.serial);
    EXPECT_EQ(ProtoNumber(dtype), row.proto);
    EXPECT_EQ(DataTypeFromProto(row.proto), dtype);
    EXPECT_EQ(DataTypeFromRuntime(row.runtime), dtype);
    EXPECT_EQ(BitsOf(dtype), row.bits);
  }
}

TEST(DataType, NumbersThatNoVersionDefinesAreRefused) {
  for (const int64_t number : {int64_t{-1}, int64_t{5}, int64_t{43}, int64_t{1} << 40}) {
    EXPECT_EQ(DataTypeFromRuntime(number), std::nullopt) << number;
  }
  for (const int number : {-1, 42, 1000}) {
    EXPECT_EQ(DataTypeFromProto(number), std::nullopt) << number;
  }
  const auto unknown = static_cast<DataType>(5);
  EXPECT_EQ(Name(unknown), "unknown");
  EXPECT_EQ(BitsOf(unknown), 0);
  EXPECT_EQ(ProtoNumber(unknown), 0);
}

TEST(DataType, NamesAreUniqueAndReadBack) {
  std::set<std::string_view> names;
  for (const Expected& row : kReference) {
    const auto dtype = static_cast<DataType>(row.runtime);
    names.insert(Name(dtype));
    EXPECT_EQ(DataTypeFromName(Name(dtype)), dtype);
    EXPECT_EQ(DataTypeFromName(row.serial), dtype);
  }
  EXPECT_EQ(names.size(), std::size(kReference));
  EXPECT_EQ(DataTypeFromName("DT_FLOAT32"), DataType::kFloat);
  EXPECT_EQ(DataTypeFromName("DT_BF16"), DataType::kBfloat16);
  EXPECT_EQ(DataTypeFromName("float"), std::nullopt);
  EXPECT_EQ(DataTypeFromName(""), std::nullopt);
}

TEST(DataType, PackedBytesAreRoundedUpOnce) {
  struct {
    DataType dtype;
    uint64_t count;
    uint64_t bytes;
  } const cases[] = {
      {DataType::kFloat, 0, 0},       {DataType::kFloat, 3, 12},     {DataType::kInt4, 1, 1},
      {DataType::kInt4, 2, 1},        {DataType::kInt4, 3, 2},       {DataType::kUint1, 8, 1},
      {DataType::kUint1, 9, 2},       {DataType::kFloat6E3M2, 4, 3}, {DataType::kFloat6E3M2, 5, 4},
      {DataType::kComplex128, 2, 32}, {DataType::kBool, 7, 7},
  };
  for (const auto& [dtype, count, bytes] : cases) {
    EXPECT_EQ(BytesOf(dtype, count), bytes) << Name(dtype) << " x " << count;
  }
}

TEST(DataType, SizesThatOverflowAreRefused) {
  EXPECT_EQ(BytesOf(DataType::kFloat, uint64_t{1} << 61), std::nullopt);
  EXPECT_EQ(BytesOf(DataType::kUint1, ~uint64_t{0}), std::nullopt);
  EXPECT_EQ(BytesOf(DataType::kInt64, ~uint64_t{0}), std::nullopt);
  EXPECT_EQ(BytesOf(DataType::kInt8, uint64_t{1} << 50), uint64_t{1} << 50);
}

TEST(DataType, Families) {
  EXPECT_TRUE(IsFloating(DataType::kBfloat16));
  EXPECT_FALSE(IsFloating(DataType::kInt8));
  EXPECT_TRUE(IsSignedInteger(DataType::kInt64));
  EXPECT_FALSE(IsSignedInteger(DataType::kUint64));
  EXPECT_TRUE(IsUnsignedInteger(DataType::kUint8));
  EXPECT_TRUE(IsInteger(DataType::kUint16));
  EXPECT_FALSE(IsInteger(DataType::kBool));
}

}  // namespace
}  // namespace npumesh
