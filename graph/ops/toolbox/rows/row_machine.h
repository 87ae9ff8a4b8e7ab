// The row machine: computes loop programs row by row, sums and maxima of rows included, in the same
// walks along a row as a static kernel and with the same bits.
//
// Thread-safety: immutable; a kernel runs on the threads that it was made for.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_ROW_MACHINE_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_ROW_MACHINE_H_

#include <memory>
#include <optional>

#include "graph/ops/core/loop_program.h"
#include "graph/ops/core/operator.h"
#include "graph/ops/toolbox/rows/axis_rows.h"

namespace npumesh {

// Where the rows of tensors lie: those of all inputs, and those of all outputs.
struct RowPlaces {
  AxisRows from, to;
};

// A kernel that computes a program, whose outputs are the ports in their order. Without `places`
// inputs lie as the program says, and outputs are packed. Null: it has an instruction that only
// static kernels compute.
std::unique_ptr<Kernel> MakeRowMachine(LoopProgram program, std::optional<RowPlaces> places,
                                       int threads);

// The kernel of an operator whose program, as `loop` writes it over whole rows of `space`, gives
// all outputs. Error (kInternal): it does not.
Result<std::unique_ptr<Kernel>> MakeRowKernel(const OpContext& op, const LoopFn& loop,
                                              const Shape& space);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_ROW_MACHINE_H_
