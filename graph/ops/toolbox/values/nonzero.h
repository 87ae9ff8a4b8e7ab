// Which elements count as true.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_NONZERO_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_NONZERO_H_

#include "runtime/base/data_type.h"

namespace npumesh {

// True for types of which IsNonZero knows the zeros: integers, bool, 16-bit and wider floats,
// complex numbers of two of them.
bool HasZero(DataType dtype);

// The element at `element` is not zero. Minus zero is zero, NaN is not. REQUIRES: HasZero(dtype).
bool IsNonZero(DataType dtype, const void* element);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_NONZERO_H_
