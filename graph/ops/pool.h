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

// What an operator says of one dimension of the image.
struct PoolExtent {
  int64_t size = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t before = 0;  // padding
  int64_t behind = 0;
};

// The windows along one dimension. A last window that starts on the padding behind does not count.
// Error: kOutOfMemory.
Result<std::vector<Window>> WindowsAlong(const OpContext& op, const PoolExtent& extent,
                                         bool ceil_mode);

// Error (kInvalidArgument) unless every window touches the image; with pads as wide as the kernel
// one might not.
Status CheckTouched(const OpContext& op, const std::vector<Window>& windows);

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

// The windows that the node's attributes give to an image of shape `x`, which lies as the tensor in
// `slot` does. Gradients have the plan of the operator whose gradient they are. Errors name the
// node and what does not fit.
Result<PoolPlan> PlanPool(const OpContext& op, const Shape& x, int slot);

// How averages divide.
struct AverageRule {
  bool exclusive = true;  // divide by the positions inside of the image, not by the window
  int64_t divisor = 0;    // more than 0: divide by this
};
AverageRule AverageRuleOf(const OpContext& op);

// Element of the image in [outer, height, width, inner].
inline int64_t ElementAt(const PoolPlan& plan, int64_t outer, int64_t row, int64_t column,
                         int64_t inner) {
  return ((outer * plan.height + row) * plan.width + column) * plan.inner + inner;
}

// Calls visit(row, column) for the positions of a window.
template <typename Visit>
void ForWindow(const PoolPlan& plan, const Window& rows, const Window& columns, Visit visit) {
  for (int64_t r = rows.begin; r < rows.end; r += plan.row_step) {
    for (int64_t c = columns.begin; c < columns.end; c += plan.column_step) visit(r, c);
  }
}

// Calls visit(outer, rows, columns, inner) for the output in C order.
template <typename Visit>
void ForOutputs(const PoolPlan& plan, Visit visit) {
  for (int64_t outer = 0; outer < plan.outer; ++outer) {
    for (const Window& rows : plan.rows) {
      for (const Window& columns : plan.columns) {
        for (int64_t inner = 0; inner < plan.inner; ++inner) visit(outer, rows, columns, inner);
      }
    }
  }
}

// What the positions of a window are divided by.
inline double DivisorOf(const PoolPlan& plan, AverageRule rule, const Window& rows,
                        const Window& columns) {
  if (rule.divisor > 0) return static_cast<double>(rule.divisor);
  if (!rule.exclusive) return static_cast<double>(rows.span * columns.span);
  int64_t inside = 0;
  ForWindow(plan, rows, columns, [&](int64_t, int64_t) { ++inside; });
  return static_cast<double>(inside);
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_POOL_H_
