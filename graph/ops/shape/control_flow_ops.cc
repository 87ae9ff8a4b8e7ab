// If, Case, While and calls of subgraphs: their interfaces. The engine runs them.
#include "graph/ops/core/signature.h"
#include "graph/ops/shape/family.h"

namespace npumesh {
namespace {

// The subgraph decides.
Status InferUnknown(OpContext& op) {
  for (int i = 0; i < op.outputs(); ++i) {
    op.set_out(i, {op.node().output_descs[static_cast<size_t>(i)].dtype, Shape::UnknownRank()});
  }
  return Status();
}

constexpr std::string_view kFlows[] = {
    "If(cond, input...) -> output...",
    "StatelessIf(cond, input...) -> output...",
    "_If(cond, input...) -> output...",
    "Case(branch_index, input...) -> output...",
    "StatelessCase(branch_index, input...) -> output...",
    "While(input...; parallel_iterations=10) -> output...",
    "StatelessWhile(input...; parallel_iterations=10) -> output...",
    "_While(input...) -> output...",
    "PartitionedCall(args...; config=\"\", config_proto=\"\", executor_type=\"\") -> output...",
    "StatefulPartitionedCall(args...; config=\"\", config_proto=\"\", executor_type=\"\") -> "
    "output...",
};

}  // namespace

// What a branch does is only known when it runs, so each counts as something with an effect.
void RegisterControlFlowOps(OpRegistry& registry) {
  for (const std::string_view signature : kFlows) {
    registry.Add({.schema = Signature(signature),
                  .infer = InferUnknown,
                  .side_effect = true,
                  .control_flow = true});
  }
}

}  // namespace npumesh
