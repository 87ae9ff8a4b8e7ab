// Loop programs for the block machine.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_BLOCK_PROGRAM_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_BLOCK_PROGRAM_H_

#include <optional>
#include <vector>

#include "graph/ops/core/loop_program.h"
#include "graph/ops/toolbox/machine/block_machine.h"

namespace npumesh {

// The lines of a program that was built for blocks, has one output, `out`, and reads `inputs`, by
// slot, as they broadcast to it. nullopt: it has an instruction that needs whole rows, or none that
// computes.
std::optional<BlockProgram> BlocksOf(const LoopProgram& program, std::vector<TensorType> inputs,
                                     const TensorType& out);

// The same of one operator alone, as Operator::loop writes it.
std::optional<BlockProgram> BlocksOf(const OpContext& op, const LoopFn& loop);

// Whether the operator has one output, whose elements it computes as its program for blocks does,
// and no run of it fails.
bool ComputesInBlocks(const Operator& op, const OpContext& context);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_BLOCK_PROGRAM_H_
