// What instructions do that have no lanes: calls of the C library, branches, and types that no
// static kernel computes in. Element by element.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_CALLS_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_CALLS_H_

#include <span>

#include "graph/ops/toolbox/machine/each_element.h"

namespace npumesh {

// What an instruction on values of `type` does with blocks: its lanes or a call. Numbers lie as
// ElementOf(type). Null: the block machine computes no such instruction.
LaneFn FunctionOf(LoopOp op, LoopType type);

// What an instruction makes of a sum of a row, kMeanOf and the like, before it is rounded.
double OfSum(const LoopInstruction& line, double sum);

// The calls; each lives in the file of its name.
using CallTable = std::span<const ElementCall>;
std::span<const CallTable> RealCalls();     // float and double
std::span<const CallTable> IntegerCalls();  // of 64 bits, and bool
std::span<const CallTable> ComplexCalls();

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_CALLS_H_
