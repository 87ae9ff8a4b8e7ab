// TypeSet: which element types an operator takes, as a value that can be asked and printed.
#ifndef NPUMESH_GRAPH_OPS_CORE_TYPE_SET_H_
#define NPUMESH_GRAPH_OPS_CORE_TYPE_SET_H_

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <string>

#include "runtime/base/data_type.h"

namespace npumesh {

class TypeSet {
 public:
  constexpr TypeSet(std::initializer_list<DataType> types) {
    for (const DataType type : types) bits_ |= Bit(type);
  }
  constexpr TypeSet(DataType type) : bits_(Bit(type)) {}  // NOLINT: implicit by design

  constexpr bool Contains(DataType type) const { return (bits_ & Bit(type)) != 0; }
  constexpr TypeSet operator|(TypeSet other) const {
    other.bits_ |= bits_;
    return other;
  }
  // "float16, bfloat16 or float32", in the order of the enumeration.
  std::string ToString() const;

 private:
  static constexpr uint64_t Bit(DataType type) {
    const auto number = static_cast<uint32_t>(type);
    return number < 64 ? uint64_t{1} << number : 0;
  }

  uint64_t bits_ = 0;
};

// What most kernels compute on, as float32.
inline constexpr TypeSet kFloats = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16};
inline constexpr TypeSet kFloatsAndDouble = kFloats | DataType::kDouble;
inline constexpr TypeSet kIndices = {DataType::kInt32, DataType::kInt64};
inline constexpr TypeSet kFloat8 = {DataType::kFloat8E5M2, DataType::kFloat8E4M3Fn};
// The 8-bit floats that hold numbers; kFloat8E8M0 holds scales.
inline constexpr TypeSet kEightBitFloats = kFloat8 | DataType::kHifloat8;
inline constexpr TypeSet kFloat4 = {DataType::kFloat4E2M1, DataType::kFloat4E1M2};
// Storage that widens exactly to float32.
inline constexpr TypeSet kSmallFloats = kEightBitFloats | kFloat4 | DataType::kFloat8E8M0;
// What a row may be quantised to.
inline constexpr TypeSet kQuantised = {DataType::kInt8, DataType::kInt4};
inline constexpr TypeSet kNarrow = kQuantised | kEightBitFloats;
// What quantised operators meet.
inline constexpr TypeSet kNumbers =
    kFloats | kQuantised | TypeSet{DataType::kUint8, DataType::kInt32};

}  // namespace npumesh

template <>
struct fmt::formatter<npumesh::TypeSet> : fmt::formatter<std::string> {
  auto format(npumesh::TypeSet types, format_context& context) const {
    return fmt::formatter<std::string>::format(types.ToString(), context);
  }
};

#endif  // NPUMESH_GRAPH_OPS_CORE_TYPE_SET_H_
