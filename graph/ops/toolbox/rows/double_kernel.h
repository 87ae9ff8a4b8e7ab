// Kernels that compute on whole tensors of doubles and round each result once: gradients, norms by
// channel, samplers. For operators whose formula is worth more than their speed.
//
//   struct ScalePlan : Planned { double factor; };
//   ScalePlan PlanScale(const OpContext& op, Check& check);         // as for Define (define.h)
//   Status RunScale(const ScalePlan& plan, RealTensors& tensors);
//
//   registry.Add(DefineReal<PlanScale, RunScale>("Scale(x; factor=1.0) -> y"));
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_DOUBLE_KERNEL_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_DOUBLE_KERNEL_H_

#include <array>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/ops/core/define.h"
#include "graph/ops/core/operator.h"
#include "graph/ops/core/type_set.h"

namespace npumesh {

// The tensors of one execution, as doubles. Integers past 53 bits lose their low bits.
struct RealTensors {
  std::vector<std::vector<double>> in;      // by slot; empty: not fed, or nothing a double can hold
  std::vector<std::vector<double>> out;     // by output port; zeros before the body runs
  std::array<std::vector<double>, 2> room;  // to work in; keeps its size from call to call
};

// Computes `out` from `in`. Errors are run-time ones. What it needs besides it captures.
using RealBody = std::function<Status(RealTensors&)>;

// Error (kOutOfMemory): the host has no room for the doubles. REQUIRES: outputs are inferred, of
// types that FindConvert makes from double.
Result<std::unique_ptr<Kernel>> MakeRealKernel(const OpContext& op, RealBody body);

// The operator of a signature with traits. RunFn(const Plan&, RealTensors&) computes `out` from
// `in`; PrepareFn as for Define.
template <auto PlanFn, auto RunFn, auto PrepareFn = nullptr>
Operator DefineReal(std::string_view signature, Operator traits = {}) {
  traits.schema = Signature(signature);
  traits.infer = define::Infer<PlanFn>;
  traits.make_kernel = [](const OpContext& op) -> Result<std::unique_ptr<Kernel>> {
    NPUMESH_ASSIGN_OR_RETURN(auto plan, define::PlanCall<PlanFn>(op));
    plan.who = op.Who();
    if constexpr (!std::is_null_pointer_v<decltype(PrepareFn)>) {
      NPUMESH_RETURN_IF_ERROR(PrepareFn(op, &plan));
    }
    KernelChoice choice = plan.choice;
    NPUMESH_ASSIGN_OR_RETURN(
        std::unique_ptr<Kernel> kernel,
        MakeRealKernel(op, [plan = std::move(plan)](RealTensors& t) { return RunFn(plan, t); }));
    kernel->set_choice(std::move(choice));
    return kernel;
  };
  return traits;
}

// Error (kUnsupported) that names the port unless what is fed to it, if anything, has one of the
// types.
Status ExpectType(const OpContext& op, std::string_view port, TypeSet expected);
// The same for real types.
Status ExpectReal(const OpContext& op, std::string_view port);
// The same for real types at all ports.
Status ExpectAllReal(const OpContext& op);

// Error (kInvalidArgument) unless an input, if it is fed, has so many elements. `what` says what
// there is one for, "channel" for example.
Status ExpectCount(const OpContext& op, std::string_view port, int64_t count,
                   std::string_view what);

// Error (kInvalidArgument) unless two inputs have the same shape.
Status ExpectSameShape(const OpContext& op, std::string_view port, std::string_view as);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_DOUBLE_KERNEL_H_
