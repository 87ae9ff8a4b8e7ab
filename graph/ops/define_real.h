// DefineReal: as Define, for operators that compute on whole tensors of doubles (real_kernel.h).
#ifndef NPUMESH_GRAPH_OPS_DEFINE_REAL_H_
#define NPUMESH_GRAPH_OPS_DEFINE_REAL_H_

#include <memory>
#include <string_view>
#include <utility>

#include "graph/ops/define.h"
#include "graph/ops/real_kernel.h"

namespace npumesh {

namespace define {

template <auto PlanFn, auto ComputeFn>
Result<std::unique_ptr<Kernel>> MakeReal(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(auto plan, PlanFn(op));
  return MakeRealKernel(
      op, [plan = std::move(plan)](RealTensors& t) -> Status { return ComputeFn(plan, t); });
}

}  // namespace define

// The operator of a signature; `Status ComputeFn(const Plan&, RealTensors&)`.
template <auto PlanFn, auto ComputeFn>
Operator DefineReal(std::string_view signature) {
  return {.schema = Signature(signature),
          .infer = define::Infer<PlanFn>,
          .make_kernel = define::MakeReal<PlanFn, ComputeFn>};
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_DEFINE_REAL_H_
