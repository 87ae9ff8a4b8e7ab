// Formulas as instructions of loop programs.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_FORMULA_FORMULA_LOOP_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_FORMULA_FORMULA_LOOP_H_

#include <span>

#include "graph/ops/core/loop_program.h"
#include "graph/ops/toolbox/formula/formula.h"

namespace npumesh {

// The lanes of a formula on numbers that lie as `type` says; null: it has none.
BlockFn LanesOfFormula(Formula formula, LoopType type);

// The value of a formula of operands that have the type already that it computes in; -1: it has no
// instruction for this type.
LoopValue LoopOfFormula(LoopBuilder& loop, Formula formula, LoopType type,
                        std::span<const LoopValue> operands, const FormulaParams& params);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_FORMULA_FORMULA_LOOP_H_
