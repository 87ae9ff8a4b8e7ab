// The element types of HCCL: what each is here, and which operators take it.
#ifndef NPUMESH_COLLECTIVES_HCCL_COMM_ELEMENT_TYPE_H_
#define NPUMESH_COLLECTIVES_HCCL_COMM_ELEMENT_TYPE_H_

#include <cstdint>
#include <string_view>

#include "hccl/hccl_types.h"
#include "runtime/base/data_type.h"

namespace npumesh {

struct ElementType {
  HcclDataType number;
  std::string_view name;  // as HCCL logs it
  DataType dtype;         // kUndefined: npumesh has no such type
  uint64_t bytes;
  bool moves;       // data movement takes it
  bool reduces;     // sum, max and min take it
  bool multiplies;  // prod takes it
};

// Null for a number outside the table.
const ElementType* FindElementType(HcclDataType number);
// The element type that is `dtype` here; null when HCCL has none.
const ElementType* FindElementType(DataType dtype);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_COMM_ELEMENT_TYPE_H_
