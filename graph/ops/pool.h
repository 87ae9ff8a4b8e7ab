// Windows of pooling. Ops reference 5.8.
#ifndef NPUMESH_GRAPH_OPS_POOL_H_
#define NPUMESH_GRAPH_OPS_POOL_H_

#include <cstdint>
#include <vector>

#include "graph/ops/operator.h"

namespace npumesh {

// The positions of one output cell along one dimension: begin, begin + step, ... below end, all
// inside of the image. `span` counts the positions with those on the padding, which only averages
// see.
struct Window {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t span = 0;
};

// An image as [outer, height, width, inner]: inner are the channels when they come last.
struct PoolPlan {
  int64_t outer = 1;
  int64_t height = 1;
  int64_t width = 1;
  int64_t inner = 1;
  std::vector<Window> rows;     // one for each row of the output
  std::vector<Window> columns;  // and each column
  int64_t row_step = 1;         // dilation
  int64_t column_step = 1;
  Shape y;
};

// The windows that the node's attributes give. Errors name the node and what does not fit.
Result<PoolPlan> PlanPool(const OpContext& op);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_POOL_H_
