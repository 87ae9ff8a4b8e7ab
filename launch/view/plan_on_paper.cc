#include "launch/view/plan_on_paper.h"

#include "graph/engine/analyse/partial_types.h"
#include "graph/engine/plan/static_parts.h"
#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/op_registry.h"
#include "graph/passes/rewrite/stages.h"
#include "graph/session/offline_groups.h"
#include "graph/session/prepare_model.h"

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

const OpRegistry& RegistryOf(const SessionOptions& options) {
  return options.registry != nullptr ? *options.registry : BuiltinOps();
}

// The types of a stage's inputs; nullopt where one is open.
std::optional<std::vector<TensorType>> KnownInputs(const Stage& stage, const NamedTypes& types) {
  std::vector<TensorType> known;
  for (const NodeId id : stage.model.graph.DataNodes()) {
    const auto found = types.find(stage.model.graph.node(id).name);
    if (found == types.end() || found->second.dtype == DataType::kUndefined) return std::nullopt;
    if (!found->second.shape.is_static()) return std::nullopt;
    known.push_back(found->second);
  }
  return known;
}

// A stage whose shapes hang on values has no plan here.
std::vector<PlanView> PlanOf(const Stage& stage, const NamedTypes& types,
                             const SessionOptions& options, GroupProvider& groups) {
  const std::optional<std::vector<TensorType>> inputs = KnownInputs(stage, types);
  if (!inputs) return {};
  const auto plan = CompiledModel::Compile(stage.model, RegistryOf(options), *inputs, {}, &groups,
                                           options.compile);
  if (!plan.ok()) return {};
  return {ViewOf(**plan, 1)};
}

}  // namespace

Result<PlanView> PlanOnPaper(Model model, const std::vector<TensorType>& types,
                             const std::vector<Tensor>& values, const SessionOptions& given,
                             PaperRank place) {
  const OpRegistry& registry = RegistryOf(given);
  OfflineGroups groups = OfflineGroups::BeforeWorld(given.groups, place.rank, place.world_size);
  NPUMESH_RETURN_IF_ERROR(PrepareOnPaper(model, given, registry, &groups));
  SessionOptions options = given;
  StaticParts parts(options.compile.static_ops_limit);
  const DeadNodes dead = options.compile.dead_nodes();
  if (!NeedsStages(BoundGraph(model.graph, registry), dead)) {
    options.compile.static_parts = &parts;
    NPUMESH_ASSIGN_OR_RETURN(
        const std::unique_ptr<CompiledModel> plan,
        CompiledModel::Compile(model, registry, types, values, &groups, options.compile));
    return ViewOf(*plan, 1);
  }
  NPUMESH_ASSIGN_OR_RETURN(const StagedModel staged, SplitStages(model, registry, dead));
  const Stage& first = staged.stages[0];
  options.compile.static_parts = &parts;
  NPUMESH_ASSIGN_OR_RETURN(
      const std::unique_ptr<CompiledModel> plan,
      CompiledModel::Compile(first.model, registry, InStage(types, first.input_slots),
                             InStage(values, first.input_slots), &groups, options.compile));
  options.compile.static_parts = nullptr;
  PlanView view = ViewOf(*plan, static_cast<int>(staged.stages.size()));
  NPUMESH_ASSIGN_OR_RETURN(const NamedTypes named, TypesByName(model, registry, types, &groups));
  for (size_t i = 0; i < staged.stages.size(); ++i) {
    const Stage& stage = staged.stages[i];
    NPUMESH_ASSIGN_OR_RETURN(StageOutline outline, OutlineOf(stage, static_cast<int>(i), registry,
                                                             named, options.compile, &groups));
    if (i == 0) {
      view.late = std::move(outline.late);
    } else {
      view.later.push_back({std::move(outline), PlanOf(stage, named, options, groups)});
    }
  }
  return view;
}

Result<std::vector<StageOutline>> OutlineOnPaper(Model model, const SessionOptions& options,
                                                 PaperRank place) {
  const OpRegistry& registry = RegistryOf(options);
  OfflineGroups groups = OfflineGroups::BeforeWorld(options.groups, place.rank, place.world_size);
  NPUMESH_RETURN_IF_ERROR(PrepareOnPaper(model, options, registry, &groups));
  NPUMESH_RETURN_IF_ERROR(CheckKnownTypes(model, registry, &groups));
  NPUMESH_ASSIGN_OR_RETURN(const NamedTypes named, TypesByName(model, registry, {}, &groups));
  StagedModel staged;
  const DeadNodes dead = options.compile.dead_nodes();
  if (NeedsStages(BoundGraph(model.graph, registry), dead)) {
    NPUMESH_ASSIGN_OR_RETURN(staged, SplitStages(model, registry, dead));
  } else {
    staged.stages.emplace_back().model = model;
  }
  std::vector<StageOutline> outlines;
  for (const Stage& stage : staged.stages) {
    NPUMESH_ASSIGN_OR_RETURN(outlines.emplace_back(),
                             OutlineOf(stage, static_cast<int>(outlines.size()), registry, named,
                                       options.compile, &groups));
  }
  return outlines;
}

}  // namespace npumesh
