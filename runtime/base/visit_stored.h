// VisitStored: code for each C++ type in which elements are stored.
//
// Thread-safety: may be called by several threads.
#ifndef NPUMESH_RUNTIME_BASE_VISIT_STORED_H_
#define NPUMESH_RUNTIME_BASE_VISIT_STORED_H_

#include <concepts>
#include <cstdint>

#include "runtime/base/data_type.h"
#include "runtime/base/float16.h"

namespace npumesh {

// float16 and bfloat16, which convert to and from float only.
template <typename T>
concept StoredHalf = std::same_as<T, Float16> || std::same_as<T, Bfloat16>;

// The number that T is, in a type that converts to all others.
template <typename T>
constexpr auto NumberOf(T stored) {
  if constexpr (StoredHalf<T>) {
    return static_cast<float>(stored);
  } else {
    return stored;
  }
}

// The type of the parts of complex numbers that VisitStored knows; any other type itself.
constexpr DataType PartOf(DataType dtype) {
  if (dtype == DataType::kComplex64) return DataType::kFloat;
  return dtype == DataType::kComplex128 ? DataType::kDouble : dtype;
}

// Gives `visit.operator()<T>()`, where T holds one element of `dtype`: an integer or floating type
// of C++, Float16 or Bfloat16; uint8_t for bool. Gives `otherwise()` for all other types: complex
// and text, and what has no type in C++. Both return the same type.
//
//   return VisitStored(dtype, [&]<typename T>() { return Sum<T>(data, count); },
//                      [] { return 0.0; });
template <typename Visit, typename Otherwise>
constexpr auto VisitStored(DataType dtype, Visit&& visit, Otherwise&& otherwise)
    -> decltype(otherwise()) {
  switch (dtype) {
    case DataType::kFloat:
      return visit.template operator()<float>();
    case DataType::kDouble:
      return visit.template operator()<double>();
    case DataType::kFloat16:
      return visit.template operator()<Float16>();
    case DataType::kBfloat16:
      return visit.template operator()<Bfloat16>();
    case DataType::kInt8:
      return visit.template operator()<int8_t>();
    case DataType::kInt16:
      return visit.template operator()<int16_t>();
    case DataType::kInt32:
      return visit.template operator()<int32_t>();
    case DataType::kInt64:
      return visit.template operator()<int64_t>();
    case DataType::kUint8:
    case DataType::kBool:
      return visit.template operator()<uint8_t>();
    case DataType::kUint16:
      return visit.template operator()<uint16_t>();
    case DataType::kUint32:
      return visit.template operator()<uint32_t>();
    case DataType::kUint64:
      return visit.template operator()<uint64_t>();
    default:
      return otherwise();
  }
}

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_VISIT_STORED_H_
