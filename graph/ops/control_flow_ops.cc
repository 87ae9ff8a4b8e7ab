// If, Case, While and calls of subgraphs: their interfaces. The engine runs them. Ops
// reference 5.1.
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

// The subgraph decides.
Status InferUnknown(OpContext& op) {
  for (int i = 0; i < op.outputs(); ++i) {
    op.set_out(i, {op.node().output_descs[static_cast<size_t>(i)].dtype, Shape::UnknownRank()});
  }
  return Status();
}

// What a branch does is only known when it runs, so each counts as something with an effect.
void AddFlow(OpRegistry& registry, std::string_view type, std::vector<PortSpec> inputs,
             std::vector<AttrSpec> attrs) {
  registry.Add(
      {.schema = {type, std::move(inputs), {{"output", PortKind::kDynamic}}, std::move(attrs)},
       .infer = InferUnknown,
       .side_effect = true,
       .control_flow = true});
}

}  // namespace

void RegisterControlFlowOps(OpRegistry& registry) {
  const PortSpec input = {"input", PortKind::kDynamic};
  for (const std::string_view type : {"If", "StatelessIf", "_If"}) {
    AddFlow(registry, type, {{"cond"}, input}, {});
  }
  for (const std::string_view type : {"Case", "StatelessCase"}) {
    AddFlow(registry, type, {{"branch_index"}, input}, {});
  }
  for (const std::string_view type : {"While", "StatelessWhile"}) {
    AddFlow(registry, type, {input}, {{"parallel_iterations", AttrValue::Int(10)}});
  }
  AddFlow(registry, "_While", {input}, {});
  for (const std::string_view type : {"PartitionedCall", "StatefulPartitionedCall"}) {
    AddFlow(registry, type, {{"args", PortKind::kDynamic}},
            {{"config", AttrValue::String("")},
             {"config_proto", AttrValue::String("")},
             {"executor_type", AttrValue::String("")}});
  }
}

}  // namespace npumesh
