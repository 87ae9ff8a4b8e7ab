// Short names of the types that tests of operators name again and again.
#ifndef NPUMESH_TESTS_UNIT_OP_TYPES_H_
#define NPUMESH_TESTS_UNIT_OP_TYPES_H_

#include "runtime/base/data_type.h"

namespace npumesh {

inline constexpr DataType kF32 = DataType::kFloat;
inline constexpr DataType kF16 = DataType::kFloat16;
inline constexpr DataType kBf16 = DataType::kBfloat16;
inline constexpr DataType kF64 = DataType::kDouble;
inline constexpr DataType kBool = DataType::kBool;
inline constexpr DataType kInt8 = DataType::kInt8;

inline constexpr DataType kE4M3 = DataType::kFloat8E4M3Fn;
inline constexpr DataType kE5M2 = DataType::kFloat8E5M2;
inline constexpr DataType kHif8 = DataType::kHifloat8;
inline constexpr DataType kE8M0 = DataType::kFloat8E8M0;
inline constexpr DataType kE2M1 = DataType::kFloat4E2M1;
inline constexpr DataType kE1M2 = DataType::kFloat4E1M2;

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OP_TYPES_H_
