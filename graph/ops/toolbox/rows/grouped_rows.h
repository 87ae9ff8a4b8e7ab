// int8 rows and the weights of their experts: what GroupedMatmulSwigluQuantV2 and
// GroupedMatmulFinalizeRouting share.
//
// Which rows belong to an expert is read from group_list at run time.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_GROUPED_ROWS_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_GROUPED_ROWS_H_

#include "graph/ops/core/check.h"
#include "graph/ops/toolbox/rows/group_list.h"

namespace npumesh {

// x[m, k] (slot 0) with the weights [experts, k, n].
struct GroupedRows {
  int64_t m = 0;
  int64_t k = 0;
  int64_t n = 0;
  int64_t experts = 0;
  bool transposed = false;
  GroupRows list;
};

// Reads x, group_list and the weights in slot `w`: [experts, k, n], or with `stacked` false [k, n]
// of one expert. `transposed` is an attribute.
GroupedRows GroupedRowsOf(Check& check, const OpContext& op, int w, bool stacked,
                          std::string_view transposed);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_GROUPED_ROWS_H_
