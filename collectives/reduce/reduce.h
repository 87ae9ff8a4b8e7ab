// Reduction kernels: several arrays become one, element by element, at the speed of memory.
//
// Elements are combined in ascending order of the inputs (acc = in[0]; acc = acc op in[1]; ...) and
// never regrouped, so the same inputs give the same bits on every instruction set, at every
// position, for every count. float16 and bfloat16 are combined in float over all inputs and rounded
// once, to nearest even. Integers wrap. max and min of floating types return NaN when an input is
// NaN (PyTorch's rule), and the first of equal inputs. A NaN that is a result is always the
// positive quiet one without payload, because processors disagree about which NaN they pass on.
//
// Thread-safety: everything here may be called from any thread.
#ifndef NPUMESH_COLLECTIVES_REDUCE_REDUCE_H_
#define NPUMESH_COLLECTIVES_REDUCE_REDUCE_H_

#include <cstdint>

#include "runtime/base/data_type.h"
#include "runtime/world/transport.h"

namespace npumesh {

// Combines `inputs` arrays of `count` elements and stores the result to each of `outputs` arrays.
// No pointer needs alignment. An output may be one of the inputs; else arrays must not overlap.
// `stream`: stores past the cache where an output is aligned to a vector, for results that no rank
// reads soon; they are visible to others when the call returns. REQUIRES: inputs >= 1.
using ReduceFn = void (*)(const void* const* in, int inputs, void* const* out, int outputs,
                          uint64_t count, bool stream);

// The kernel of this processor; null when npumesh does not reduce `dtype`: only float32, float16,
// bfloat16, float64 and the integers of 8 to 64 bits are reduced, each with every op.
ReduceFn FindReduce(DataType dtype, ReduceOp op);

// The same kernel in the form that transports take: inout[i] = left[i] op inout[i]. 16-bit floating
// types are rounded at every call. Null where FindReduce is.
CombineFn FindCombine(DataType dtype, ReduceOp op);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_REDUCE_REDUCE_H_
