// The loop program of an operator alone.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_LONE_PROGRAM_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_LONE_PROGRAM_H_

#include <optional>

#include "graph/ops/core/loop_program.h"
#include "graph/ops/core/operator.h"

namespace npumesh {

// The program of the operator over whole rows of `space`, with an output for each port; tensors are
// slots. nullopt: `loop` does not give them all.
std::optional<LoopProgram> LoneProgram(const OpContext& op, const LoopFn& loop, const Shape& space,
                                       LoopTarget target);

// The same over the rows of output 0 or of an input, whose outputs have the elements of its rows or
// one for each row.
std::optional<LoopProgram> LoneProgram(const OpContext& op, const LoopFn& loop, LoopTarget target);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_LONE_PROGRAM_H_
