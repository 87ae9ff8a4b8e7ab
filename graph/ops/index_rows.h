// Rows that index tensors name: what gathers read and scatters write.
//
// A tensor is seen as rows of neighbouring elements; an operator with indices goes through a list
// of row numbers that is made anew in every run. An index out of range is a run-time error that
// names the port, the place and the bounds.
#ifndef NPUMESH_GRAPH_OPS_INDEX_ROWS_H_
#define NPUMESH_GRAPH_OPS_INDEX_ROWS_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ops/operator.h"

namespace npumesh {

// Row number of an index that is to be passed over.
inline constexpr int64_t kNoRow = -1;

struct IndexRows {
  // Writes the row numbers, `count` of them, each in [0, bound) or kNoRow.
  std::function<Status(const KernelArgs& args, int64_t* rows)> find;
  int64_t count = 0;  // rows named
  int64_t bound = 0;  // rows of the tensor
  int64_t inner = 1;  // elements of a row
};

// What indices may be besides 0 <= index < bound.
enum class IndexRange {
  kStrict,         // nothing else
  kWraps,          // -bound and more, counted from the end
  kDropsNegative,  // negative ones are passed over
};

// Error (kInvalidArgument) unless a slot holds int32 or int64.
Status CheckIndexType(const OpContext& op, int slot);

// The last dimension of `indices` addresses the first dimensions of `x`.
Result<IndexRows> RowsByTuples(const OpContext& op, std::string_view indices, const Shape& x,
                               IndexRange range);

// Rows of `x` along `axis`, for each position before it and each element of `indices`.
Result<IndexRows> RowsAlongAxis(const OpContext& op, std::string_view indices, const Shape& x,
                                int axis, IndexRange range);

// For each position of `indices` the element of `x` there, with coordinate `axis` replaced by the
// index. REQUIRES: `indices` lies inside x outside of the axis.
Result<IndexRows> RowsByElements(const OpContext& op, std::string_view indices, const Shape& x,
                                 int axis);

// PyTorch's indexing with tensors: entry d of `mask` says whether the next tensor of port `indices`
// addresses dimension d of `x`; the tensors broadcast together. `shape` becomes that of x[...]: the
// indexed dimensions are replaced in place when they are neighbours, else the result comes first.
Result<IndexRows> RowsByTensors(const OpContext& op, std::string_view indices,
                                const std::vector<int64_t>& mask, const Shape& x, Shape* shape);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_INDEX_ROWS_H_
