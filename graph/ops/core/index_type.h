#ifndef NPUMESH_GRAPH_OPS_CORE_INDEX_TYPE_H_
#define NPUMESH_GRAPH_OPS_CORE_INDEX_TYPE_H_

#include <string_view>

#include "graph/ops/core/operator.h"
#include "graph/ops/core/type_set.h"

namespace npumesh {

// The int32 or int64 that an attribute asks for. Error (`code`): it asks for another type.
inline Result<DataType> IndexTypeOf(const OpContext& op, std::string_view attribute,
                                    Code code = Code::kInvalidArgument) {
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, op.attr_dtype(attribute));
  if (kIndices.Contains(dtype)) return dtype;
  return Error(code, "{}: attribute \"{}\" is {}, expected {}", op.Who(), attribute, Name(dtype),
               kIndices.ToString());
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_INDEX_TYPE_H_
