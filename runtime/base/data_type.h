// DataType: the element types of Ascend tensors.
//
// The enumerators carry the *runtime* numbering (C++ ge::DataType), the one that attributes use.
// Tensor descriptors on the wire use another numbering (ge.proto.DataType); `ProtoNumber` and
// `DataTypeFromProto` convert. Mixing the two is the classic error, so only graph/io calls them.
// Both tables and the widths are those of GE's DataType and of its ge_ir.proto.
#ifndef NPUMESH_RUNTIME_BASE_DATA_TYPE_H_
#define NPUMESH_RUNTIME_BASE_DATA_TYPE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace npumesh {

enum class DataType : int32_t {
  kFloat = 0,
  kFloat16 = 1,
  kInt8 = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 6,
  kUint16 = 7,
  kUint32 = 8,
  kInt64 = 9,
  kUint64 = 10,
  kDouble = 11,
  kBool = 12,
  kString = 13,
  kDualSubInt8 = 14,
  kDualSubUint8 = 15,
  kComplex64 = 16,
  kComplex128 = 17,
  kQint8 = 18,
  kQint16 = 19,
  kQint32 = 20,
  kQuint8 = 21,
  kQuint16 = 22,
  kResource = 23,
  kStringRef = 24,
  kDual = 25,
  kVariant = 26,
  kBfloat16 = 27,
  kUndefined = 28,
  kInt4 = 29,
  kUint1 = 30,
  kInt2 = 31,
  kUint2 = 32,
  kComplex32 = 33,
  kHifloat8 = 34,
  kFloat8E5M2 = 35,
  kFloat8E4M3Fn = 36,
  kFloat8E8M0 = 37,
  kFloat6E3M2 = 38,
  kFloat6E2M3 = 39,
  kFloat4E2M1 = 40,
  kFloat4E1M2 = 41,
  kHifloat4 = 42,
};

// Name in npumesh messages and documents, for example "float32", "bfloat16"; "dtype<n>" is never
// returned: an unknown number yields "unknown".
std::string_view Name(DataType dtype);

// Serial name used in files, for example "DT_FLOAT", "DT_BFLOAT16".
std::string_view SerialName(DataType dtype);

// Bits of one element; 0 for types without a fixed width (string, undefined, unknown).
int BitsOf(DataType dtype);

// Bytes of `count` packed elements, rounded up to a whole byte. REQUIRES: BitsOf(dtype) > 0.
// Returns nullopt when the product does not fit into 63 bits.
std::optional<uint64_t> BytesOf(DataType dtype, uint64_t count);

// Wire number for TensorDescriptor.dtype; 0 (undefined) for a type without one.
int ProtoNumber(DataType dtype);

// nullopt for a number that no known version defines.
std::optional<DataType> DataTypeFromProto(int number);

// nullopt for a number outside the runtime enumeration.
std::optional<DataType> DataTypeFromRuntime(int64_t number);

// Accepts `Name` and `SerialName` spellings and "DT_FLOAT32", "DT_BF16".
std::optional<DataType> DataTypeFromName(std::string_view name);

inline bool IsFloating(DataType t) {
  return t == DataType::kFloat || t == DataType::kFloat16 || t == DataType::kBfloat16 ||
         t == DataType::kDouble;
}
inline bool IsSignedInteger(DataType t) {
  return t == DataType::kInt8 || t == DataType::kInt16 || t == DataType::kInt32 ||
         t == DataType::kInt64;
}
inline bool IsUnsignedInteger(DataType t) {
  return t == DataType::kUint8 || t == DataType::kUint16 || t == DataType::kUint32 ||
         t == DataType::kUint64;
}
inline bool IsInteger(DataType t) {
  return IsSignedInteger(t) || IsUnsignedInteger(t);
}

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_DATA_TYPE_H_
