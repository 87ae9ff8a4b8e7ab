// Define: an operator from three plain parts: its signature, a function that plans a call, and a
// function that runs the plan.
//
//   struct ScalePlan : Planned { Factors scale; Workspace<float> row; ... };
//   ScalePlan PlanScale(const OpContext& op, Check& check);
//   Status RunScale(const ScalePlan& plan, const KernelArgs& args);
//
//   registry.Add(Define<PlanScale, RunScale>("Scale(x, scale; axis=-1) -> y"));
//
// The plan function checks the inputs and decides everything that types, attributes and constants
// decide. After an objection (check.h) its plan counts for nothing. A plan function without the
// Check gives a Result<ScalePlan>. It serves shape inference too, so it is called often, also with
// sizes that are only tried (partial_inference.h): it neither meets other ranks nor packs weights.
// What has to, stands in a third function `Status Prepare(const OpContext&, Plan*)`, called once
// before the kernel runs.
#ifndef NPUMESH_GRAPH_OPS_CORE_DEFINE_H_
#define NPUMESH_GRAPH_OPS_CORE_DEFINE_H_

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/ops/core/check.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/operator.h"
#include "graph/ops/core/scratch.h"
#include "graph/ops/core/signature.h"

namespace npumesh {

// What every plan says: the types of the outputs in port order, and the memory it works in. A plan
// has no fields of these names besides.
struct Planned {
  std::string who;  // begins every message of a run; set when the kernel is made
  std::vector<TensorType> outputs;
  Scratch scratch;
  // Slots of constant inputs that Prepare has taken all it needs from (Kernel::reads).
  std::vector<int> taken;
  KernelChoice choice;  // of the kernel, where there is one (Kernel::choice)
};

namespace define {

// Sets the types of the first outputs. Errors: those of SetOutput.
inline Status SetOutputs(OpContext& op, const std::vector<TensorType>& types) {
  int port = 0;
  for (const auto& [dtype, shape] : types) {
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, port++, dtype, shape));
  }
  return Status();
}

// The plan, or the first objection to it: a Result<Plan>.
template <auto PlanFn>
auto PlanCall(const OpContext& op) {
  if constexpr (std::is_invocable_v<decltype(PlanFn), const OpContext&>) {
    return PlanFn(op);
  } else {
    Check check(op);
    return check.Done(PlanFn(op, check));
  }
}

template <auto PlanFn>
Status Infer(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(auto plan, PlanCall<PlanFn>(op));
  return SetOutputs(op, plan.outputs);
}

template <typename Plan, auto RunFn>
class PlannedKernel final : public Kernel {
 public:
  explicit PlannedKernel(Plan plan) : plan_(std::move(plan)) { set_choice(plan_.choice); }
  uint64_t scratch_bytes() const override { return plan_.scratch.bytes(); }
  Status Run(const KernelArgs& args) override { return RunFn(plan_, args); }
  bool reads(int slot) const override {
    return std::find(plan_.taken.begin(), plan_.taken.end(), slot) == plan_.taken.end();
  }

 private:
  const Plan plan_;
};

template <auto PlanFn, auto RunFn, auto PrepareFn>
Result<std::unique_ptr<Kernel>> MakePlanned(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(auto plan, PlanCall<PlanFn>(op));
  plan.who = op.Who();
  if constexpr (!std::is_null_pointer_v<decltype(PrepareFn)>) {
    NPUMESH_RETURN_IF_ERROR(PrepareFn(op, &plan));
  }
  using PlanKernel = PlannedKernel<decltype(plan), RunFn>;
  return std::unique_ptr<Kernel>(std::make_unique<PlanKernel>(std::move(plan)));
}

}  // namespace define

// The operator of a signature (signature.h) with traits: {.in_place = {{0, 2}}} for example.
template <auto PlanFn, auto RunFn, auto PrepareFn = nullptr>
Operator Define(std::string_view signature, Operator traits = {}) {
  traits.schema = Signature(signature);
  traits.infer = define::Infer<PlanFn>;
  traits.make_kernel = define::MakePlanned<PlanFn, RunFn, PrepareFn>;
  return traits;
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_DEFINE_H_
