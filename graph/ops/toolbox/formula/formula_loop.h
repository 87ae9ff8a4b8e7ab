// Formulas as instructions of loop programs.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_FORMULA_FORMULA_LOOP_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_FORMULA_FORMULA_LOOP_H_

#include <span>

#include "graph/ops/core/loop_program.h"
#include "graph/ops/toolbox/formula/formula.h"

namespace npumesh {

// The value of a formula that computes in float, or in bool, of operands that have this type
// already; -1: it has no instruction.
LoopValue LoopOfFormula(LoopBuilder& loop, Formula formula, std::span<const LoopValue> operands,
                        const FormulaParams& params);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_FORMULA_FORMULA_LOOP_H_
