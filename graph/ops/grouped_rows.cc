#include "graph/ops/grouped_rows.h"

#include "graph/ops/infer_checks.h"

namespace npumesh {

Result<GroupedRows> PlanGroupedRows(const OpContext& op, int w, bool stacked,
                                    std::string_view transposed) {
  const TensorType& x = op.in("x");
  const TensorType& weight = op.in(w);
  GroupedRows rows;
  rows.transposed = op.attr_bool(transposed);
  rows.list = SlotIfFed(op, "group_list");
  const int64_t type = op.attr_int("group_list_type");
  rows.counts = type == 1;
  NPUMESH_RETURN_IF_ERROR(ExpectIntegers(op, rows.list));
  const int front = stacked ? 1 : 0;
  bool fits = x.shape.rank() == 2 && weight.shape.rank() == 2 + front && rows.list >= 0;
  if (fits) {
    rows.m = x.shape[0];
    rows.k = x.shape[1];
    rows.n = weight.shape[front + (rows.transposed ? 0 : 1)];
    rows.experts = op.in(rows.list).shape.elements();
    fits = weight.shape[front + (rows.transposed ? 1 : 0)] == rows.k &&
           (!stacked || weight.shape[0] == rows.experts) && (type == 0 || type == 1);
  }
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: x is {}, the weights {}{} and group_list {} of type {}; expected [M,K], "
                 "[E,K,N], [E] and 0 or 1",
                 op.Who(), x.ToString(), weight.ToString(), rows.transposed ? " transposed" : "",
                 rows.list < 0 ? "absent" : op.in(rows.list).ToString(), type);
  }
  if (x.dtype == DataType::kInt8 && weight.dtype == DataType::kInt8) return rows;
  return Error(Code::kUnsupported, "{}: x is {} and the weights {}, expected int8", op.Who(),
               Name(x.dtype), Name(weight.dtype));
}

}  // namespace npumesh
