// Computing in the wide types: double, uint64 or int64 (WideTypeOf).
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_WIDE_TYPE_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_WIDE_TYPE_H_

#include "graph/ops/toolbox/rows/axis_kernel.h"

namespace npumesh {

// `f(Wide())` for the wide type of a type that has one.
template <typename F>
auto ByWideType(DataType dtype, F f) {
  switch (WideTypeOf(dtype)) {
    case DataType::kDouble:
      return f(double());
    case DataType::kUint64:
      return f(uint64_t());
    default:
      return f(int64_t());
  }
}

// The order of sorted elements: NaN is larger than every number.
template <typename Wide>
bool Less(Wide a, Wide b) {
  return a < b || (b != b && a == a);
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_WIDE_TYPE_H_
