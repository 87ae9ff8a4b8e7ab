// The wide machine: computes loop programs in float64, rows and reductions included. It is what an
// operator means before its types round: the reference of `run --golden float64` and of the tests.
//
// Instructions are computed in double whatever their types; only what a program itself rounds
// (Round, ToFloat), and its outputs, are rounded. Slow: one instruction after the other, on one
// thread.
//
// Thread-safety: pure functions; a kernel is run by one thread at a time.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_WIDE_MACHINE_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_WIDE_MACHINE_H_

#include <memory>

#include "graph/ops/core/loop_program.h"
#include "graph/ops/core/operator.h"

namespace npumesh {

// A kernel that computes all outputs of the operator as its program says. Null where float64 says
// nothing about them: there is no program or not of all outputs, none of them is of floating
// numbers, it computes in integers of 64 bits or complex numbers, or a jump (a comparison, a floor,
// a conversion to integers) stands behind something that float rounds, which may fall on either
// side.
std::unique_ptr<Kernel> MakeWideMachine(const OpContext& op, const LoopFn& loop);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_WIDE_MACHINE_H_
