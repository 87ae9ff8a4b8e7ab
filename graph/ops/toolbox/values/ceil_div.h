// Whole numbers, rounded up.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_CEIL_DIV_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_CEIL_DIV_H_

#include <cstdint>

namespace npumesh {

// How many times `by` makes up `value` or more. REQUIRES: value >= 0, by > 0.
constexpr int64_t CeilDiv(int64_t value, int64_t by) {
  return value / by + (value % by > 0 ? 1 : 0);
}

// The least multiple of `by` that is `value` or more. REQUIRES: as above, and it fits into 63 bits.
constexpr int64_t RoundedUp(int64_t value, int64_t by) {
  return CeilDiv(value, by) * by;
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_CEIL_DIV_H_
