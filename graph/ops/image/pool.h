// Windows of pooling.
#ifndef NPUMESH_GRAPH_OPS_IMAGE_POOL_H_
#define NPUMESH_GRAPH_OPS_IMAGE_POOL_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "graph/ops/core/define.h"

namespace npumesh {

// The positions of one output cell along one dimension: begin, begin + step, ... below end, all
// inside of the image. `span` counts the positions with those on the padding, which only averages
// see.
struct Window {
  int64_t begin = 0, end = 0, span = 0;
};

// True when `value` takes the place of the maximum `most`: the first NaN is the maximum.
inline bool Exceeds(double value, double most) {
  return value > most || (value != value && most == most);
}

// How an operator, or the one whose gradient it is, says what its windows are.
enum class PoolForm : uint8_t {
  kShort,         // ksize, strides, padding: MaxPool, AvgPool
  kLong,          // with padding_mode, pads, global_pooling and ceil_mode: MaxPoolV3, AvgPoolV2
  kArgmax,        // with pads, dilation and ceil_mode: MaxPoolWithArgmaxV1
  kVolume,        // the same for volumes: MaxPool3DWithArgmaxV2
  kAdaptive,      // output_size windows, which cover the image: AdaptiveAvgPool2d
  kAdaptiveGrad,  // as many as the gradient has elements
  kGlobal,        // one window: GlobalAveragePool
};

// A volume as [outer, depth, height, width, inner]: inner are the channels when they come last.
// Images have a depth of 1, which is one window.
struct PoolPlan : Planned {
  int64_t outer = 1;
  std::array<int64_t, 3> size = {1, 1, 1};  // depth, height, width
  int64_t inner = 1;
  std::array<std::vector<Window>, 3> windows = {{{{0, 1, 1}}, {}, {}}};  // along each of them
  std::array<int64_t, 3> step = {1, 1, 1};                               // dilation
  // How averages divide.
  bool exclusive = true;  // by the positions inside of the image, not by the window
  int64_t divisor = 0;    // more than 0: by this
  Shape y;
  // Rounds each sum as it grows, and the average; null: they stay doubles (op_select_implmode).
  double (*round)(double) = nullptr;

  double Rounded(double sum) const { return round == nullptr ? sum : round(sum); }
  int64_t places() const { return size[0] * size[1] * size[2]; }
};

// The windows of one output.
struct PoolBox {
  const Window& depth;
  const Window& rows;
  const Window& columns;
};

// The windows that the node's attributes give to an image or volume of shape `x`, which lies as the
// tensor in `slot` does. Objections name what does not fit.
PoolPlan PlanPool(const OpContext& op, PoolForm form, int slot, const Shape& x, Check& check);

// Objects unless every window touches the image; with pads as wide as the kernel one might not.
void CheckTouched(const PoolPlan& plan, Check& check);

// Takes how to sum elements of this type from the node (kImplMode) into the plan, and says it as
// the choice of the kernel. Averages and gradients sum in double and round once, which is also what
// "high_precision" asks for; with "high_performance" each sum is rounded as the NPU keeps it, which
// is float16 for float16 and float32 for bfloat16 and float32. Other types know one way.
void ChooseSums(const OpContext& op, DataType dtype, PoolPlan& plan);

// Takes "exclusive" and "divisor_override" into the plan.
void ReadDivisor(const OpContext& op, PoolPlan& plan);

// Element of x: `place` counts the positions of depth, height and width.
inline int64_t ElementAt(const PoolPlan& plan, int64_t outer, int64_t place, int64_t inner) {
  return (outer * plan.places() + place) * plan.inner + inner;
}

// Calls visit(place) for the positions of a box. Images have no loop over the depth, because most
// windows are small.
template <bool kVolume = false, typename Visit>
void ForPlaces(const PoolPlan& plan, const PoolBox& box, Visit visit) {
  const int64_t row_step = plan.step[1], column_step = plan.step[2];
  const int64_t end = kVolume ? box.depth.end : 1, step = kVolume ? plan.step[0] : 1;
  for (int64_t d = kVolume ? box.depth.begin : 0; d < end; d += step) {
    for (int64_t r = box.rows.begin; r < box.rows.end; r += row_step) {
      const int64_t row = (d * plan.size[1] + r) * plan.size[2];
      for (int64_t c = box.columns.begin; c < box.columns.end; c += column_step) visit(row + c);
    }
  }
}

// Calls visit(box, inner) for the outputs of one volume in C order.
template <typename Visit>
void ForBoxes(const PoolPlan& plan, Visit visit) {
  for (const Window& depth : plan.windows[0]) {
    for (const Window& rows : plan.windows[1]) {
      for (const Window& columns : plan.windows[2]) {
        for (int64_t inner = 0; inner < plan.inner; ++inner) {
          visit(PoolBox{depth, rows, columns}, inner);
        }
      }
    }
  }
}

// Calls visit(outer, box, inner) for the output in C order.
template <typename Visit>
void ForOutputs(const PoolPlan& plan, Visit visit) {
  for (int64_t outer = 0; outer < plan.outer; ++outer) {
    ForBoxes(plan, [&](const PoolBox& box, int64_t inner) { visit(outer, box, inner); });
  }
}

// What the sum over a box is divided by. Averages are of images and have no dilation.
inline double DivisorOf(const PoolPlan& plan, const PoolBox& box) {
  if (plan.divisor > 0) return static_cast<double>(plan.divisor);
  if (!plan.exclusive) return static_cast<double>(box.rows.span * box.columns.span);
  const auto inside = [](const Window& w) { return std::max<int64_t>(w.end - w.begin, 0); };
  return static_cast<double>(inside(box.rows) * inside(box.columns));
}

// Whether a node of MaxPool, MaxPoolV3, AvgPool or AvgPoolV2 can pool an image in blocks of
// channels (blocked_image.h): float32, NCHW, sums in double.
bool PoolsInBlocks(const OpContext& op);
// Its kernel on such an image; `op` has the types of the graph. REQUIRES: PoolsInBlocks.
Result<std::unique_ptr<Kernel>> MakeBlockedPool(const OpContext& op);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_IMAGE_POOL_H_
