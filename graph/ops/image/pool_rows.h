// Pools of float32, and maxima of bytes, by vectors: along the channels where they come last or lie in blocks, else along
// the columns of the image.
//
// Thread-safety: functions may be called by several threads.
#ifndef NPUMESH_GRAPH_OPS_IMAGE_POOL_ROWS_H_
#define NPUMESH_GRAPH_OPS_IMAGE_POOL_ROWS_H_

#include "graph/ops/image/pool.h"

namespace npumesh {

// The maxima, or the averages, of the windows of one plane `x`, [height, width, inner], in C order:
// the bits of elements that are taken, or added in double and divided, one after the other.
// REQUIRES: images (plan.size[0] is 1), sums in double; every window of a maximum has an element.
void MaximaOfWindows(const PoolPlan& plan, const float* x, float* y);
void AveragesOfWindows(const PoolPlan& plan, const float* x, float* y);
// The maxima of bytes, int8 or uint8. REQUIRES: as above.
void ByteMaximaOfWindows(const PoolPlan& plan, DataType dtype, const void* x, void* y);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_IMAGE_POOL_ROWS_H_
