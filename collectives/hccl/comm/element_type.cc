#include "collectives/hccl/comm/element_type.h"

#include <algorithm>
#include <array>

namespace npumesh {
namespace {

constexpr std::array kTypes = {
    ElementType{HCCL_DATA_TYPE_INT8, "int8", DataType::kInt8, 1, true, true, true},
    ElementType{HCCL_DATA_TYPE_INT16, "int16", DataType::kInt16, 2, true, true, false},
    ElementType{HCCL_DATA_TYPE_INT32, "int32", DataType::kInt32, 4, true, true, true},
    ElementType{HCCL_DATA_TYPE_FP16, "float16", DataType::kFloat16, 2, true, true, true},
    ElementType{HCCL_DATA_TYPE_FP32, "float32", DataType::kFloat, 4, true, true, true},
    ElementType{HCCL_DATA_TYPE_INT64, "int64", DataType::kInt64, 8, true, true, true},
    ElementType{HCCL_DATA_TYPE_UINT64, "uint64", DataType::kUint64, 8, true, true, true},
    ElementType{HCCL_DATA_TYPE_UINT8, "uint8", DataType::kUint8, 1, true, false, false},
    ElementType{HCCL_DATA_TYPE_UINT16, "uint16", DataType::kUint16, 2, true, false, false},
    ElementType{HCCL_DATA_TYPE_UINT32, "uint32", DataType::kUint32, 4, true, false, false},
    ElementType{HCCL_DATA_TYPE_FP64, "float64", DataType::kDouble, 8, true, true, true},
    ElementType{HCCL_DATA_TYPE_BFP16, "bfloat16", DataType::kBfloat16, 2, true, true, false},
    ElementType{HCCL_DATA_TYPE_INT128, "int128", DataType::kUndefined, 16, false, false, false},
    ElementType{HCCL_DATA_TYPE_HIF8, "hif8", DataType::kHifloat8, 1, true, false, false},
    ElementType{HCCL_DATA_TYPE_FP8E4M3, "fp8e4m3", DataType::kFloat8E4M3Fn, 1, true, false, false},
    ElementType{HCCL_DATA_TYPE_FP8E5M2, "fp8e5m2", DataType::kFloat8E5M2, 1, true, false, false},
    ElementType{HCCL_DATA_TYPE_FP8E8M0, "fp8e8m0", DataType::kFloat8E8M0, 1, true, false, false},
};

// The types by number: every operator call asks, some more than once.
constexpr size_t kNumbers = HCCL_DATA_TYPE_FP8E8M0 + 1;
constexpr auto kPlaces = [] {
  std::array<const ElementType*, kNumbers> places{};
  for (const ElementType& type : kTypes) places[type.number] = &type;
  return places;
}();

}  // namespace

const ElementType* FindElementType(HcclDataType number) {
  const auto place = static_cast<size_t>(number);
  return place < kPlaces.size() ? kPlaces[place] : nullptr;
}

const ElementType* FindElementType(DataType dtype) {
  const auto* found = std::find_if(kTypes.begin(), kTypes.end(), [&](const ElementType& type) {
    return type.dtype == dtype && type.moves;
  });
  return found == kTypes.end() ? nullptr : found;
}

}  // namespace npumesh
