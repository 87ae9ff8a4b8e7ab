// int8 rows and the weights of their experts: what GroupedMatmulSwigluQuantV2 and
// GroupedMatmulFinalizeRouting share. Ops reference 5.6.
//
// Which rows belong to an expert is read from group_list at run time.
#ifndef NPUMESH_GRAPH_OPS_GROUPED_ROWS_H_
#define NPUMESH_GRAPH_OPS_GROUPED_ROWS_H_

#include <string>

#include "graph/ops/numbers.h"

namespace npumesh {

// x[m, k] with the weights [E, k, n] of its experts.
struct GroupedRows {
  int64_t m = 0;
  int64_t k = 0;
  int64_t n = 0;
  int64_t experts = 0;
  bool transposed = false;
  int list = -1;        // slot of group_list
  bool counts = false;  // it holds counts, not prefix sums
};

// Reads x, group_list and the weights in slot `w`: [E, k, n], or with `stacked` false [k, n] of one
// expert. `transposed` is an attribute.
Result<GroupedRows> PlanGroupedRows(const OpContext& op, int w, bool stacked,
                                    std::string_view transposed);

// Calls multiply(expert, first row, rows) for every group that has rows; gives the end of the last.
template <typename Multiply>
Result<int64_t> EachGroup(const std::string& who, const GroupedRows& rows, DataType list_dtype,
                          const KernelArgs& args, const Multiply& multiply) {
  int64_t first = 0;
  for (int64_t expert = 0; expert < rows.experts; ++expert) {
    const int64_t entry = IntegerAt(list_dtype, args.in[rows.list], expert);
    const int64_t count = rows.counts ? entry : entry - first;
    if (count < 0 || count > rows.m - first) {
      return Error(Code::kInvalidArgument,
                   "{}: entry {} of group_list gives {} rows to an expert after {}, there are {}",
                   who, expert, count, first, rows.m);
    }
    if (count > 0) NPUMESH_RETURN_IF_ERROR(multiply(expert, first, count));
    first += count;
  }
  return first;
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_GROUPED_ROWS_H_
