#include "runtime/base/data_type.h"

#include <array>

#include "runtime/base/type_numbers.h"

namespace npumesh {
namespace {

struct Row {
  DataType dtype;
  int proto;
  int bits;
  std::string_view name;
  std::string_view serial;
  int onnx;
  std::string_view npy;
};

// One row a type, in runtime order. Never renumber: the values stand in files. The first row of
// several with one .npy text is the type that NumPy has.
constexpr std::array kRows = {
    Row{DataType::kFloat, 1, 32, "float32", "DT_FLOAT", 1, "<f4"},
    Row{DataType::kFloat16, 2, 16, "float16", "DT_FLOAT16", 10, "<f2"},
    Row{DataType::kInt8, 3, 8, "int8", "DT_INT8", 3, "|i1"},
    Row{DataType::kInt32, 7, 32, "int32", "DT_INT32", 6, "<i4"},
    Row{DataType::kUint8, 4, 8, "uint8", "DT_UINT8", 2, "|u1"},
    Row{DataType::kInt16, 5, 16, "int16", "DT_INT16", 5, "<i2"},
    Row{DataType::kUint16, 6, 16, "uint16", "DT_UINT16", 4, "<u2"},
    Row{DataType::kUint32, 9, 32, "uint32", "DT_UINT32", 12, "<u4"},
    Row{DataType::kInt64, 8, 64, "int64", "DT_INT64", 7, "<i8"},
    Row{DataType::kUint64, 10, 64, "uint64", "DT_UINT64", 13, "<u8"},
    Row{DataType::kDouble, 12, 64, "float64", "DT_DOUBLE", 11, "<f8"},
    Row{DataType::kBool, 11, 8, "bool", "DT_BOOL", 9, "|b1"},
    Row{DataType::kString, 13, 0, "string", "DT_STRING", 8, ""},
    Row{DataType::kDualSubInt8, 14, 8, "dual_sub_int8", "DT_DUAL_SUB_INT8", 0, ""},
    Row{DataType::kDualSubUint8, 15, 8, "dual_sub_uint8", "DT_DUAL_SUB_UINT8", 0, ""},
    Row{DataType::kComplex64, 16, 64, "complex64", "DT_COMPLEX64", 14, "<c8"},
    Row{DataType::kComplex128, 17, 128, "complex128", "DT_COMPLEX128", 15, "<c16"},
    Row{DataType::kQint8, 18, 8, "qint8", "DT_QINT8", 0, "|i1"},
    Row{DataType::kQint16, 19, 16, "qint16", "DT_QINT16", 0, "<i2"},
    Row{DataType::kQint32, 20, 32, "qint32", "DT_QINT32", 0, "<i4"},
    Row{DataType::kQuint8, 21, 8, "quint8", "DT_QUINT8", 0, "|u1"},
    Row{DataType::kQuint16, 22, 16, "quint16", "DT_QUINT16", 0, "<u2"},
    Row{DataType::kResource, 23, 64, "resource", "DT_RESOURCE", 0, ""},
    Row{DataType::kStringRef, 24, 0, "string_ref", "DT_STRING_REF", 0, ""},
    Row{DataType::kDual, 25, 40, "dual", "DT_DUAL", 0, ""},
    Row{DataType::kVariant, 26, 64, "variant", "DT_VARIANT", 0, ""},
    Row{DataType::kBfloat16, 27, 16, "bfloat16", "DT_BFLOAT16", 16, "<u2"},
    Row{DataType::kUndefined, 0, 0, "undefined", "DT_UNDEFINED", 0, ""},
    Row{DataType::kInt4, 28, 4, "int4", "DT_INT4", 0, ""},
    Row{DataType::kUint1, 29, 1, "uint1", "DT_UINT1", 0, ""},
    Row{DataType::kInt2, 30, 2, "int2", "DT_INT2", 0, ""},
    Row{DataType::kUint2, 31, 2, "uint2", "DT_UINT2", 0, ""},
    Row{DataType::kComplex32, 32, 32, "complex32", "DT_COMPLEX32", 0, ""},
    Row{DataType::kHifloat8, 33, 8, "hifloat8", "DT_HIFLOAT8", 0, "|u1"},
    Row{DataType::kFloat8E5M2, 34, 8, "float8_e5m2", "DT_FLOAT8_E5M2", 0, "|u1"},
    Row{DataType::kFloat8E4M3Fn, 35, 8, "float8_e4m3fn", "DT_FLOAT8_E4M3FN", 0, "|u1"},
    Row{DataType::kFloat8E8M0, 36, 8, "float8_e8m0", "DT_FLOAT8_E8M0", 0, "|u1"},
    Row{DataType::kFloat6E3M2, 37, 6, "float6_e3m2", "DT_FLOAT6_E3M2", 0, ""},
    Row{DataType::kFloat6E2M3, 38, 6, "float6_e2m3", "DT_FLOAT6_E2M3", 0, ""},
    Row{DataType::kFloat4E2M1, 39, 4, "float4_e2m1", "DT_FLOAT4_E2M1", 0, ""},
    Row{DataType::kFloat4E1M2, 40, 4, "float4_e1m2", "DT_FLOAT4_E1M2", 0, ""},
    Row{DataType::kHifloat4, 41, 4, "hifloat4", "DT_HIFLOAT4", 0, ""},
};

// Index into kRows by the runtime number; -1: no such type. Asked for in every collective.
constexpr auto kIndex = [] {
  std::array<int8_t, 256> index{};
  index.fill(-1);
  for (size_t i = 0; i < kRows.size(); ++i) {
    index[static_cast<uint8_t>(kRows[i].dtype)] = static_cast<int8_t>(i);
  }
  return index;
}();

const Row* Find(DataType dtype) {
  const auto number = static_cast<int64_t>(dtype);
  if (number < 0 || number >= static_cast<int64_t>(kIndex.size())) return nullptr;
  const int8_t index = kIndex[static_cast<size_t>(number)];
  return index < 0 ? nullptr : &kRows[static_cast<size_t>(index)];
}

}  // namespace

std::string_view Name(DataType dtype) {
  const Row* row = Find(dtype);
  return row ? row->name : "unknown";
}

std::string_view SerialName(DataType dtype) {
  const Row* row = Find(dtype);
  return row ? row->serial : "DT_UNDEFINED";
}

int BitsOf(DataType dtype) {
  const Row* row = Find(dtype);
  return row ? row->bits : 0;
}

std::optional<uint64_t> BytesOf(DataType dtype, uint64_t count) {
  const auto bits = static_cast<uint64_t>(BitsOf(dtype));
  constexpr uint64_t kLimit = uint64_t{1} << 63;
  if (bits != 0 && count > (kLimit - 8) / bits) return std::nullopt;
  return (count * bits + 7) / 8;
}

int ProtoNumber(DataType dtype) {
  const Row* row = Find(dtype);
  return row ? row->proto : 0;
}

std::optional<DataType> DataTypeFromProto(int number) {
  for (const Row& row : kRows) {
    if (row.proto == number) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DataType> DataTypeFromRuntime(int64_t number) {
  for (const Row& row : kRows) {
    if (static_cast<int64_t>(row.dtype) == number) return row.dtype;
  }
  return std::nullopt;
}

int OnnxNumber(DataType dtype) {
  const Row* row = Find(dtype);
  return row ? row->onnx : 0;
}

DataType DataTypeFromOnnx(int64_t number) {
  for (const Row& row : kRows) {
    if (row.onnx == number && number != 0) return row.dtype;
  }
  return DataType::kUndefined;
}

std::string_view NpyText(DataType dtype) {
  const Row* row = Find(dtype);
  return row ? row->npy : "";
}

std::optional<DataType> DataTypeFromNpy(std::string_view kind_and_width) {
  for (const Row& row : kRows) {
    if (!row.npy.empty() && row.npy.substr(1) == kind_and_width) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DataType> DataTypeFromName(std::string_view name) {
  if (name == "DT_FLOAT32") return DataType::kFloat;
  if (name == "DT_BF16") return DataType::kBfloat16;
  for (const Row& row : kRows) {
    if (row.name == name || row.serial == name) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace npumesh
