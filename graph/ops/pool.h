// Windows of pooling.
#ifndef NPUMESH_GRAPH_OPS_POOL_H_
#define NPUMESH_GRAPH_OPS_POOL_H_

#include <cstdint>
#include <vector>

#include "graph/ops/check.h"
#include "graph/ops/define.h"
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

// Objects unless every window touches the image; with pads as wide as the kernel one might not.
void CheckTouched(const std::vector<Window>& windows, Check& check);

// In [least, 2^31): what sizes, strides and pads may be.
inline bool FitsImage(int64_t number, int64_t least) {
  return number >= least && number < (INT64_C(1) << 31);
}

// True when `value` takes the place of the maximum `most`: the first NaN is the maximum.
inline bool Exceeds(double value, double most) {
  return value > most || (value != value && most == most);
}

// How an operator, or the one whose gradient it is, says what its windows are.
enum class PoolForm : uint8_t {
  kShort,         // ksize, strides, padding: MaxPool, AvgPool
  kLong,          // with padding_mode, pads, global_pooling and ceil_mode: MaxPoolV3, AvgPoolV2
  kArgmax,        // with pads, dilation and ceil_mode: MaxPoolWithArgmaxV1
  kAdaptive,      // output_size windows, which cover the image: AdaptiveAvgPool2d
  kAdaptiveGrad,  // as many as the gradient has elements
  kGlobal,        // one window: GlobalAveragePool
};

// An image as [outer, height, width, inner]: inner are the channels when they come last.
struct PoolPlan : Planned {
  int64_t outer = 1;
  int64_t height = 1;
  int64_t width = 1;
  int64_t inner = 1;
  std::vector<Window> rows;     // one for each row of the output
  std::vector<Window> columns;  // and each column
  int64_t row_step = 1;         // dilation
  int64_t column_step = 1;
  // How averages divide.
  bool exclusive = true;  // by the positions inside of the image, not by the window
  int64_t divisor = 0;    // more than 0: by this
  Shape y;
};

// The windows that the node's attributes give to an image of shape `x`, which lies as the tensor in
// `slot` does. Objections name what does not fit.
PoolPlan PlanPool(const OpContext& op, PoolForm form, int slot, const Shape& x, Check& check);

// Takes "exclusive" and "divisor_override" into the plan.
void ReadDivisor(const OpContext& op, PoolPlan& plan);

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

// Calls visit(rows, columns, inner) for the outputs of one image in C order.
template <typename Visit>
void ForOutputsOfImage(const PoolPlan& plan, Visit visit) {
  for (const Window& rows : plan.rows) {
    for (const Window& columns : plan.columns) {
      for (int64_t inner = 0; inner < plan.inner; ++inner) visit(rows, columns, inner);
    }
  }
}

// Calls visit(outer, rows, columns, inner) for the output in C order.
template <typename Visit>
void ForOutputs(const PoolPlan& plan, Visit visit) {
  for (int64_t outer = 0; outer < plan.outer; ++outer) {
    ForOutputsOfImage(plan, [&](const Window& rows, const Window& columns, int64_t inner) {
      visit(outer, rows, columns, inner);
    });
  }
}

// What the positions of a window are divided by.
inline double DivisorOf(const PoolPlan& plan, const Window& rows, const Window& columns) {
  if (plan.divisor > 0) return static_cast<double>(plan.divisor);
  if (!plan.exclusive) return static_cast<double>(rows.span * columns.span);
  int64_t inside = 0;
  ForWindow(plan, rows, columns, [&](int64_t, int64_t) { ++inside; });
  return static_cast<double>(inside);
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_POOL_H_
