#include "graph/ops/refusals.h"

#include "graph/ops/float_rows.h"
#include "graph/ops/numbers.h"

namespace npumesh {

Status RefuseInputs(const OpContext& op, std::initializer_list<std::string_view> ports) {
  for (const std::string_view port : ports) {
    NPUMESH_RETURN_IF_ERROR(Supports(op, SlotIfFed(op, port) < 0,
                                     "the input \"{}\" is fed, which is not supported", port));
  }
  return Status();
}

Result<DataType> FloatTypeOf(const OpContext& op, std::string_view attribute, DataType standard) {
  DataType dtype = standard;
  if (op.attr_int(attribute) != static_cast<int64_t>(DataType::kUndefined)) {
    NPUMESH_ASSIGN_OR_RETURN(dtype, op.attr_dtype(attribute));
  }
  NPUMESH_RETURN_IF_ERROR(
      Supports(op, IsRowType(dtype), "{} is {}, expected a float type", attribute, Name(dtype)));
  return dtype;
}

}  // namespace npumesh
