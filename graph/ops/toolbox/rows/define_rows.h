// Operators whose kernel is their loop program: nothing else says what they compute.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_DEFINE_ROWS_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_DEFINE_ROWS_H_

#include <memory>
#include <string_view>
#include <utility>

#include "graph/ops/core/define.h"
#include "graph/ops/toolbox/rows/row_machine.h"

namespace npumesh {

// A plan (define.h) that also says which rows the program walks: the shape of whole rows.
struct SpacePlan : Planned {
  Shape space;
};

// The operator of a signature with traits. `PlanFn` checks and plans as for Define, and gives a
// SpacePlan; `LoopFn` is Operator::loop, and gives every output over the space of the plan.
template <auto PlanFn, auto LoopFn>
Operator DefineRows(std::string_view signature, Operator traits = {}) {
  traits.schema = Signature(signature);
  traits.infer = define::Infer<PlanFn>;
  traits.make_kernel = [](const OpContext& op) -> Result<std::unique_ptr<Kernel>> {
    NPUMESH_ASSIGN_OR_RETURN(const auto plan, define::PlanCall<PlanFn>(op));
    return MakeRowKernel(op, LoopFn, plan.space);
  };
  traits.loop = LoopFn;
  return traits;
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_DEFINE_ROWS_H_
