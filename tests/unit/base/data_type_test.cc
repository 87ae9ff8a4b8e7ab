#include "runtime/base/data_type.h"

#include <gtest/gtest.h>

#include <set>

#include "runtime/base/type_numbers.h"
#include "runtime/base/visit_stored.h"

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

// TensorProto.DataType.
TEST(DataType, NumbersOfOnnxAreThoseOfItsFile) {
  constexpr DataType kByNumber[] = {
      DataType::kUndefined, DataType::kFloat,     DataType::kUint8,     DataType::kInt8,
      DataType::kUint16,    DataType::kInt16,     DataType::kInt32,     DataType::kInt64,
      DataType::kString,    DataType::kBool,      DataType::kFloat16,   DataType::kDouble,
      DataType::kUint32,    DataType::kUint64,    DataType::kComplex64, DataType::kComplex128,
      DataType::kBfloat16,  DataType::kUndefined, DataType::kUndefined};
  for (size_t number = 0; number < std::size(kByNumber); ++number) {
    EXPECT_EQ(DataTypeFromOnnx(static_cast<int64_t>(number)), kByNumber[number]) << number;
  }
  EXPECT_EQ(DataTypeFromOnnx(-1), DataType::kUndefined);
  for (const Expected& row : kReference) {
    const auto dtype = static_cast<DataType>(row.runtime);
    const bool known = DataTypeFromOnnx(OnnxNumber(dtype)) == dtype;
    EXPECT_EQ(known, OnnxNumber(dtype) != 0 || dtype == DataType::kUndefined) << row.serial;
  }
}

TEST(DataType, NumpyHasTheTextOfAWholeNumberOfBytes) {
  for (const Expected& row : kReference) {
    SCOPED_TRACE(row.serial);
    const auto dtype = static_cast<DataType>(row.runtime);
    const std::string_view text = NpyText(dtype);
    if (text.empty()) continue;
    const std::optional<DataType> read = DataTypeFromNpy(text.substr(1));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(BitsOf(*read), BitsOf(dtype));
    EXPECT_EQ(NpyText(*read), text);
    EXPECT_EQ(text.substr(2), std::to_string(BitsOf(dtype) / 8));
    EXPECT_EQ(text[0], BitsOf(dtype) == 8 ? '|' : '<');
  }
  EXPECT_EQ(DataTypeFromNpy("u2"), DataType::kUint16);
  EXPECT_EQ(DataTypeFromNpy("u1"), DataType::kUint8);
  EXPECT_EQ(DataTypeFromNpy("i1"), DataType::kInt8);
  EXPECT_EQ(DataTypeFromNpy("b1"), DataType::kBool);
  EXPECT_EQ(DataTypeFromNpy("f3"), std::nullopt);
  EXPECT_EQ(DataTypeFromNpy(""), std::nullopt);
  EXPECT_EQ(NpyText(DataType::kInt4), "");
}

TEST(VisitStored, TypesOfCppHaveTheWidthOfTheElement) {
  int visited = 0;
  for (const Expected& row : kReference) {
    SCOPED_TRACE(row.serial);
    const auto dtype = static_cast<DataType>(row.runtime);
    const int bytes = VisitStored(
        dtype, []<typename T>() { return static_cast<int>(sizeof(T)); }, [] { return 0; });
    const bool number = IsInteger(dtype) || IsFloating(dtype) || dtype == DataType::kBool;
    EXPECT_EQ(bytes, number ? BitsOf(dtype) / 8 : 0);
    visited += number ? 1 : 0;
    const bool right_kind = VisitStored(
        dtype,
        [dtype]<typename T>() {
          const bool floating = StoredHalf<T> || std::floating_point<T>;
          return floating == IsFloating(dtype) &&
                 std::is_signed_v<T> == (IsSignedInteger(dtype) || std::floating_point<T>);
        },
        [] { return true; });
    EXPECT_TRUE(right_kind);
  }
  EXPECT_EQ(visited, 13);
}

TEST(VisitStored, HalvesAreNumbersThroughFloat) {
  EXPECT_EQ(NumberOf(Float16(1.5F)), 1.5F);
  EXPECT_EQ(NumberOf(Bfloat16(-2.0F)), -2.0F);
  EXPECT_EQ(NumberOf(uint64_t{1} << 63), uint64_t{1} << 63);
  EXPECT_EQ(PartOf(DataType::kComplex128), DataType::kDouble);
  EXPECT_EQ(PartOf(DataType::kComplex64), DataType::kFloat);
  EXPECT_EQ(PartOf(DataType::kInt8), DataType::kInt8);
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
