#include "graph/ops/toolbox/rows/group_list.h"

namespace npumesh {

Result<GroupRows> GroupRows::Of(const OpContext& op, std::string_view port, bool counts,
                                int64_t rows) {
  GroupRows list;
  list.who_ = op.Who();
  list.port_ = std::string(port);
  list.counts_ = counts;
  list.rows_ = rows;
  list.slot_ = SlotIfFed(op, port);
  NPUMESH_RETURN_IF_ERROR(ExpectIntegers(op, list.slot_));
  if (!list.given()) return list;
  list.dtype_ = op.in(list.slot_).dtype;
  list.groups_ = op.in(list.slot_).shape.elements();
  return list;
}

Result<int64_t> GroupRows::EndOf(const KernelArgs& args, int64_t group, int64_t begin) const {
  const int64_t value = IntegerAt(dtype_, args.in[slot_], group);
  const int64_t end = counts_ ? begin + value : value;
  if (value >= 0 && end >= begin && end <= rows_) return end;
  return Error(Code::kInvalidArgument,
               "{}: entry {} of \"{}\" is {}, so group {} would be rows {} to {} of {}", who_,
               group, port_, value, group, begin, end, rows_);
}

}  // namespace npumesh
