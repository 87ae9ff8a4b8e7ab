#include "graph/dump/format/format_types.h"

#include <algorithm>
#include <array>
#include <span>

#include "graph/ir/layout_numbers.h"

namespace npumesh {
namespace {

struct TypeRow {
  DataType dtype;
  std::string_view name;
};

// By dump number: OutputDataType of proto/dump_data.proto.
constexpr std::array<TypeRow, 42> kTypes = {{
    {DataType::kUndefined, "DT_UNDEFINED"},
    {DataType::kFloat, "DT_FLOAT"},
    {DataType::kFloat16, "DT_FLOAT16"},
    {DataType::kInt8, "DT_INT8"},
    {DataType::kUint8, "DT_UINT8"},
    {DataType::kInt16, "DT_INT16"},
    {DataType::kUint16, "DT_UINT16"},
    {DataType::kInt32, "DT_INT32"},
    {DataType::kInt64, "DT_INT64"},
    {DataType::kUint32, "DT_UINT32"},
    {DataType::kUint64, "DT_UINT64"},
    {DataType::kBool, "DT_BOOL"},
    {DataType::kDouble, "DT_DOUBLE"},
    {DataType::kString, "DT_STRING"},
    {DataType::kDualSubInt8, "DT_DUAL_SUB_INT8"},
    {DataType::kDualSubUint8, "DT_DUAL_SUB_UINT8"},
    {DataType::kComplex64, "DT_COMPLEX64"},
    {DataType::kComplex128, "DT_COMPLEX128"},
    {DataType::kQint8, "DT_QINT8"},
    {DataType::kQint16, "DT_QINT16"},
    {DataType::kQint32, "DT_QINT32"},
    {DataType::kQuint8, "DT_QUINT8"},
    {DataType::kQuint16, "DT_QUINT16"},
    {DataType::kResource, "DT_RESOURCE"},
    {DataType::kStringRef, "DT_STRING_REF"},
    {DataType::kDual, "DT_DUAL"},
    {DataType::kVariant, "DT_VARIANT"},
    {DataType::kBfloat16, "DT_BF16"},
    {DataType::kInt4, "DT_INT4"},
    {DataType::kUint1, "DT_UINT1"},
    {DataType::kInt2, "DT_INT2"},
    {DataType::kUint2, "DT_UINT2"},
    {DataType::kComplex32, "DT_COMPLEX32"},
    {DataType::kHifloat8, "DT_HIFLOAT8"},
    {DataType::kFloat8E5M2, "DT_FLOAT8_E5M2"},
    {DataType::kFloat8E4M3Fn, "DT_FLOAT8_E4M3FN"},
    {DataType::kFloat8E8M0, "DT_FLOAT8_E8M0"},
    {DataType::kFloat6E3M2, "DT_FLOAT6_E3M2"},
    {DataType::kFloat6E2M3, "DT_FLOAT6_E2M3"},
    {DataType::kFloat4E2M1, "DT_FLOAT4_E2M1"},
    {DataType::kFloat4E1M2, "DT_FLOAT4_E1M2"},
    {DataType::kHifloat4, "DT_HIFLOAT4"},
}};

}  // namespace

int DumpTypeNumber(DataType dtype) {
  const auto row = std::find_if(kTypes.begin(), kTypes.end(),
                                [dtype](const TypeRow& each) { return each.dtype == dtype; });
  return row == kTypes.end() ? 0 : static_cast<int>(row - kTypes.begin());
}

DataType DataTypeFromDump(int number) {
  if (number < 0 || static_cast<size_t>(number) >= kTypes.size()) return DataType::kUndefined;
  return kTypes[static_cast<size_t>(number)].dtype;
}

std::string_view DumpTypeName(DataType dtype) {
  return kTypes[static_cast<size_t>(DumpTypeNumber(dtype))].name;
}

int DumpFormatNumber(std::string_view name) {
  if (name.empty()) return kFormatNd;
  const std::span<const LayoutNames> layouts = LayoutsByNumber();
  const auto found = std::find_if(layouts.begin(), layouts.end(),
                                  [name](const LayoutNames& each) { return each.dump == name; });
  return found == layouts.end() ? kFormatNd : static_cast<int>(found - layouts.begin());
}

std::string_view DumpFormatName(int number) {
  const std::span<const LayoutNames> layouts = LayoutsByNumber();
  if (number < 0 || static_cast<size_t>(number) >= layouts.size()) return "-";
  const std::string_view name = layouts[static_cast<size_t>(number)].dump;
  return name.empty() ? "-" : name;
}

}  // namespace npumesh
