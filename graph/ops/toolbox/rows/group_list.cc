#include "graph/ops/toolbox/rows/group_list.h"

#include <algorithm>
#include <vector>

namespace npumesh {

Result<GroupRows> GroupRows::Of(const OpContext& op, std::string_view port, bool counts,
                                int64_t rows) {
  GroupRows list;
  list.who_ = op.Who();
  list.port_ = std::string(port);
  list.counts_ = counts;
  list.rows_ = rows;
  const std::vector<PortSpec>& ports = op.schema().inputs;
  const bool required = std::any_of(ports.begin(), ports.end(), [&](const PortSpec& spec) {
    return spec.name == port && spec.kind == PortKind::kRequired;
  });
  list.list_ = required ? Integers::OfSlot(op, op.slot(port)) : Integers::Of(op, port);
  Check check(op);
  if (list.given()) check.Type(port, kIndices);
  return check.Done(std::move(list));
}

Result<int64_t> GroupRows::EndOf(const KernelArgs& args, int64_t group, int64_t begin) const {
  if (!given()) return rows_;
  const int64_t value = list_.At(args, group);
  const int64_t end = counts_ ? begin + value : value;
  if (value >= 0 && end >= begin && end <= rows_) return end;
  return Error(Code::kInvalidArgument,
               "{}: entry {} of \"{}\" is {}, so group {} would be rows {} to {} of {}", who_,
               group, port_, value, group, begin, end, rows_);
}

GroupedRows GroupedRowsOf(Check& check, const OpContext& op, int w, bool stacked,
                          std::string_view transposed) {
  const TensorType &x = op.in(0), &weight = op.in(w);
  const int front = stacked ? 1 : 0;
  GroupedRows rows;
  rows.transposed = op.attr_bool(transposed);
  check.That(x.shape.rank() == 2 && weight.shape.rank() == 2 + front,
             "x is {} and the weights {}, expected [M,K] and {}", x, weight,
             stacked ? "[E,K,N]" : "[K,N]");
  check.That(SlotIfFed(op, "group_list") >= 0, "group_list is missing");
  check.OneOf("group_list_type", {0, 1});
  if (!check.ok()) return rows;
  const bool packed = weight.dtype == DataType::kInt32;
  const int64_t lines = weight.shape[front], width = weight.shape[front + 1] * (packed ? 8 : 1);
  rows.m = x.shape[0];
  rows.k = x.shape[1];
  rows.n = rows.transposed ? lines : width;
  rows.x_dtype = x.dtype;
  rows.w_dtype = packed ? DataType::kInt4 : weight.dtype;
  rows.list =
      check.Take(GroupRows::Of(op, "group_list", op.attr_int("group_list_type") == 1, rows.m));
  rows.experts = rows.list.groups();
  check.That(
      (rows.transposed ? width : lines) == rows.k && (!stacked || weight.shape[0] == rows.experts),
      "x is {}, the weights {}{} and group_list has {} entries; expected [M,K], [E,K,N] and "
      "E entries",
      x, weight, rows.transposed ? " transposed" : "", rows.experts);
  return rows;
}

}  // namespace npumesh
