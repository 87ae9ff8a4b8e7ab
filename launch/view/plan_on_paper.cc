#include "launch/view/plan_on_paper.h"

#include "graph/ops/op_registry.h"
#include "graph/passes/stages.h"
#include "graph/session/prepare_model.h"
#include "launch/view/unmet_groups.h"

namespace npumesh {
namespace {

// Those of a stage, which reads nothing but inputs of the graph when it is the first one.
template <typename T>
std::vector<T> InStage(const std::vector<T>& of_graph, const std::vector<SlotNumber>& slots) {
  std::vector<T> of_stage;
  for (const SlotNumber slot : slots) {
    const auto at = static_cast<size_t>(slot);
    of_stage.push_back(at < of_graph.size() ? of_graph[at] : T());
  }
  return of_stage;
}

}  // namespace

Result<PlanView> PlanOnPaper(Model model, const std::vector<TensorType>& types,
                             const std::vector<Tensor>& values, const SessionOptions& options,
                             PaperRank place) {
  const OpRegistry& registry = options.registry != nullptr ? *options.registry : BuiltinOps();
  NPUMESH_RETURN_IF_ERROR(model.graph.Verify());
  NPUMESH_RETURN_IF_ERROR(PrepareModel(model, options, registry));
  NPUMESH_RETURN_IF_ERROR(CheckModel(model, registry));
  UnmetGroups groups(options.groups, place.world_size, place.rank);
  if (!NeedsStages(BoundGraph(model.graph, registry))) {
    NPUMESH_ASSIGN_OR_RETURN(
        const std::unique_ptr<CompiledModel> plan,
        CompiledModel::Compile(model, registry, types, values, &groups, options.compile));
    return ViewOf(*plan, 1);
  }
  NPUMESH_ASSIGN_OR_RETURN(const StagedModel staged, SplitStages(model, registry));
  const Stage& first = staged.stages[0];
  NPUMESH_ASSIGN_OR_RETURN(
      const std::unique_ptr<CompiledModel> plan,
      CompiledModel::Compile(first.model, registry, InStage(types, first.input_slots),
                             InStage(values, first.input_slots), &groups, options.compile));
  return ViewOf(*plan, static_cast<int>(staged.stages.size()));
}

}  // namespace npumesh
