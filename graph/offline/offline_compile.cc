#include "graph/offline/offline_compile.h"

#include <algorithm>

#include "graph/engine/analyse/partial_types.h"
#include "graph/engine/plan/compiled_model.h"
#include "graph/ops/builtin_ops.h"
#include "graph/passes/rewrite/stages.h"
#include "graph/session/offline_groups.h"
#include "graph/session/prepare_model.h"

namespace npumesh {
namespace {

bool AllKnown(const std::vector<TensorType>& types) {
  return std::all_of(types.begin(), types.end(), [](const TensorType& type) {
    return type.dtype != DataType::kUndefined && type.shape.is_static();
  });
}

// There are no values here, so shapes that hang on them stay unknown.
bool NeedsValues(const Model& model, const OpRegistry& registry, DeadNodes dead) {
  const std::vector<bool> deciding = ShapeDecidingInputs(model, registry, dead);
  return std::find(deciding.begin(), deciding.end(), true) != deciding.end();
}

class Compilation {
 public:
  Compilation(const SessionOptions& options, const Model& model, const OpRegistry& registry,
              GroupProvider& groups, OfflineFacts& facts)
      : options_(options), model_(model), registry_(registry), groups_(groups), facts_(facts) {}

  Status Run() {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<InputSpec> inputs, InputsOf(model_));
    std::vector<TensorType> declared;
    for (const InputSpec& input : inputs) declared.push_back(input.declared);
    for (size_t gear = 0; gear < std::max<size_t>(1, facts_.gears.values.size()); ++gear) {
      const bool geared = facts_.gears.any();
      NPUMESH_RETURN_IF_ERROR(CompileFor(geared ? facts_.gears.Apply(declared, gear) : declared));
    }
    return Status();
  }

 private:
  Status CompileFor(const std::vector<TensorType>& inputs) {
    const DeadNodes dead = options_.compile.dead_nodes();
    const bool staged = NeedsStages(BoundGraph(model_.graph, registry_), dead);
    if (!AllKnown(inputs) || staged || NeedsValues(model_, registry_, dead)) {
      facts_.outputs.clear();
      return CheckKnownTypes(model_, registry_, &groups_);
    }
    NPUMESH_ASSIGN_OR_RETURN(
        const std::unique_ptr<CompiledModel> plan,
        CompiledModel::Compile(model_, registry_, inputs, {}, &groups_, options_.compile));
    facts_.outputs.push_back(plan->output_types());
    arena_ = std::max(arena_, plan->arena_block_bytes());
    scratch_ = std::max(scratch_, plan->scratch_block_bytes());
    facts_.work_bytes = arena_ + scratch_;
    facts_.weight_bytes = std::max(facts_.weight_bytes, plan->constant_block_bytes());
    return Status();
  }

  const SessionOptions& options_;
  const Model& model_;
  const OpRegistry& registry_;
  GroupProvider& groups_;
  OfflineFacts& facts_;
  uint64_t arena_ = 0, scratch_ = 0;  // of the largest plans
};

const OpRegistry& RegistryOf(const SessionOptions& options) {
  return options.registry != nullptr ? *options.registry : BuiltinOps();
}

OfflineGroups GroupsFor(const OfflineFacts& facts) {
  return facts.ranks > 0 ? OfflineGroups::InWorld(facts.groups, facts.rank, facts.ranks)
                         : OfflineGroups::BeforeWorld(facts.groups, 0, 1);
}

}  // namespace

std::vector<std::string> OutputNames(const Graph& graph) {
  std::vector<std::string> names;
  const NodeId sink = graph.NetOutput();
  if (sink == kNoNode) return names;
  for (const auto& source : graph.node(sink).inputs) {
    names.push_back(source ? fmt::format("{}:{}", graph.node(source->node).name, source->port)
                           : std::string());
  }
  return names;
}

Result<std::vector<TensorType>> OutputTypesOnPaper(const SessionOptions& options, Model model,
                                                   const OfflineFacts& facts) {
  const OpRegistry& registry = RegistryOf(options);
  OfflineGroups groups = GroupsFor(facts);
  NPUMESH_RETURN_IF_ERROR(PrepareOnPaper(model, options, registry, &groups));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, model.graph.StableOrder());
  NPUMESH_ASSIGN_OR_RETURN(const PartialTypes types,
                           PartialTypes::Of(model, BoundGraph(model.graph, registry), order,
                                            &groups, PartialEffort::kThorough));
  NPUMESH_RETURN_IF_ERROR(types.Contradictions());
  std::vector<TensorType> outputs;
  for (const auto& source : model.graph.node(model.graph.NetOutput()).inputs) {
    outputs.push_back(source ? types.type(*source) : TensorType());
  }
  return outputs;
}

Status CompileOffline(const SessionOptions& options, Model* model, OfflineFacts* facts) {
  const OpRegistry& registry = RegistryOf(options);
  OfflineGroups groups = GroupsFor(*facts);
  facts->output_names = OutputNames(model->graph);
  Model prepared = *model;
  NPUMESH_RETURN_IF_ERROR(PrepareOnPaper(prepared, options, registry, &groups));
  if (options.precision.wanted()) *model = prepared;
  return Compilation(options, prepared, registry, groups, *facts).Run();
}

}  // namespace npumesh
