#include "graph/session/precision_options.h"

#include <algorithm>

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "graph/engine/analyse/partial_types.h"
#include "graph/passes/rewrite/precision.h"
#include "graph/passes/rewrite/subgraphs.h"
#include "runtime/base/advice.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

using ClassOfType = std::map<std::string, PrecisionClass, std::less<>>;

TensorType UnknownType() {
  return {DataType::kUndefined, Shape::UnknownRank()};
}

// A loop may change the shape of a variable, not its type.
TensorType WithOpenDims(TensorType type) {
  for (int i = 0; type.shape.has_rank() && i < type.shape.rank(); ++i) type.shape[i] = kUnknownDim;
  return type;
}

// What is true of both.
TensorType Common(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype) return UnknownType();
  if (!a.shape.has_rank() || !b.shape.has_rank() || a.shape.rank() != b.shape.rank()) {
    return {a.dtype, Shape::UnknownRank()};
  }
  TensorType common = a;
  for (int i = 0; i < a.shape.rank(); ++i) {
    if (a.shape[i] != b.shape[i]) common.shape[i] = kUnknownDim;
  }
  return common;
}

// A type that leaves a list is grey, unless a list takes it.
ClassOfType ClassesOf(const MixList& lists, const OpRegistry& registry) {
  ClassOfType classes;
  const auto leaves = [&](const MixListChanges& list, PrecisionClass precision) {
    for (const std::string& type : list.remove) {
      const Operator* const op = registry.Find(type);
      if (op != nullptr && op->precision == precision) classes[type] = PrecisionClass::kGrey;
    }
  };
  const auto joins = [&](const MixListChanges& list, PrecisionClass precision) {
    for (const std::string& type : list.add) classes[type] = precision;
  };
  leaves(lists.black, PrecisionClass::kBlack);
  leaves(lists.white, PrecisionClass::kWhite);
  joins(lists.black, PrecisionClass::kBlack);
  joins(lists.white, PrecisionClass::kWhite);
  return classes;
}

void TellUnknownTypes(const MixList& lists, const OpRegistry& registry) {
  for (const auto* types :
       {&lists.black.add, &lists.black.remove, &lists.white.add, &lists.white.remove}) {
    for (const std::string& type : *types) {
      if (registry.Find(type) != nullptr) continue;
      Advise(fmt::format("session.modify_mixlist: no operator is called \"{}\"", type));
    }
  }
}

// The types of a main graph and of the subgraphs that its nodes run.
class ModelTypes {
 public:
  ModelTypes(const Model& model, const OpRegistry& registry, GroupProvider* groups,
             const PrecisionRule& rule)
      : model_(model), registry_(registry), groups_(groups) {
    help_.of_subgraphs = [this](const Node& node, const std::vector<TensorType>& inputs) {
      return OfSubgraphs(node, inputs);
    };
    help_.of_refused = [&rule](const Operator& op, const OpContext& context) {
      return TypesInNeed(op, context, rule);
    };
  }
  ModelTypes(const ModelTypes&) = delete;
  ModelTypes& operator=(const ModelTypes&) = delete;

  Result<PartialTypes> OfMain() { return Of(model_); }

  // Null: no node runs the subgraph with known types, or two do with different ones.
  const PartialTypes* OfSubgraph(const std::string& name) const {
    const auto found = subgraphs_.find(name);
    return found == subgraphs_.end() || !found->second.types ? nullptr : &*found->second.types;
  }

 private:
  struct Entered {
    std::vector<DataType> inputs;
    std::optional<PartialTypes> types;
    std::vector<TensorType> outputs;  // of the node that runs it
  };

  Result<PartialTypes> Of(const Model& model) {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, model.graph.StableOrder());
    return PartialTypes::Of(model, BoundGraph(model.graph, registry_), order, groups_,
                            PartialEffort::kThorough, help_);
  }

  std::vector<TensorType> OfSubgraphs(const Node& node, const std::vector<TensorType>& inputs) {
    const bool loop = SubgraphUseOf(node.type) == SubgraphUse::kWhile;
    std::vector<TensorType> given = inputs;
    for (TensorType& type : given) {
      if (loop) type = WithOpenDims(type);
    }
    std::optional<std::vector<TensorType>> outputs;
    for (const std::string& name : node.subgraphs) {
      const Graph* const graph = model_.FindSubgraph(name);
      if (graph == nullptr) return {};
      const std::vector<TensorType> types = Enter(*graph, node, given);
      if (outputs && types.size() == outputs->size()) {
        for (size_t i = 0; i < types.size(); ++i) (*outputs)[i] = Common((*outputs)[i], types[i]);
      } else {
        outputs = types;
      }
    }
    return loop ? given : outputs.value_or(std::vector<TensorType>());
  }

  std::vector<TensorType> Enter(const Graph& graph, const Node& node,
                                const std::vector<TensorType>& given) {
    Model entered;
    entered.path = model_.path;
    entered.graph = graph;
    std::vector<DataType> inputs;
    for (const NodeId id : graph.DataNodes()) {
      const int input = ParentInput(node, graph.node(id));
      const bool known = input >= 0 && static_cast<size_t>(input) < given.size();
      const TensorType type = known ? given[static_cast<size_t>(input)] : UnknownType();
      TensorDesc& desc = entered.graph.node(id).output_descs[0];
      desc.dtype = type.dtype;
      desc.shape = type.shape;
      inputs.push_back(type.dtype);
    }
    const auto [known, added] = subgraphs_.try_emplace(graph.name());
    if (!added) {
      if (known->second.inputs != inputs) known->second.types.reset();
      return known->second.outputs;
    }
    known->second.inputs = std::move(inputs);
    Result<PartialTypes> types = Of(entered);
    if (!types.ok()) return {};
    known->second.outputs = OutputsOf(graph, *types);
    known->second.types = std::move(types).value();
    return known->second.outputs;
  }

  static std::vector<TensorType> OutputsOf(const Graph& graph, const PartialTypes& types) {
    const NodeId sink = graph.NetOutput();
    if (sink == kNoNode) return {};
    const std::vector<int> parents = ParentOutputs(graph);
    std::vector<TensorType> outputs(parents.size(), UnknownType());
    for (size_t i = 0; i < parents.size(); ++i) {
      const std::optional<Value>& value = graph.node(sink).inputs[i];
      const auto at = static_cast<size_t>(parents[i]);
      if (value && at < outputs.size()) outputs[at] = types.type(*value);
    }
    return outputs;
  }

  const Model& model_;
  const OpRegistry& registry_;
  GroupProvider* groups_;
  PartialHelp help_;
  std::map<std::string, Entered> subgraphs_;
};

Status ChooseIn(Graph& graph, const OpRegistry& registry, const PartialTypes& types,
                const PrecisionRule& rule) {
  const KnownValues values = {
      [&types](Value value) -> const TensorType& { return types.type(value); },
      [&types](Value value) { return types.constant(value); }};
  return ChoosePrecision(graph, registry, values, rule);
}

Status ChooseInModel(Model& model, const PrecisionRule& rule, const OpRegistry& registry,
                     GroupProvider* groups) {
  ModelTypes types(model, registry, groups, rule);
  NPUMESH_ASSIGN_OR_RETURN(const PartialTypes main, types.OfMain());
  NPUMESH_RETURN_IF_ERROR(ChooseIn(model.graph, registry, main, rule));
  for (Graph& graph : model.subgraphs) {
    const PartialTypes* const known = types.OfSubgraph(graph.name());
    if (known != nullptr) NPUMESH_RETURN_IF_ERROR(ChooseIn(graph, registry, *known, rule));
  }
  return Status();
}

void ChooseImplementation(Graph& graph, const OpRegistry& registry,
                          const PrecisionOptions& options) {
  const std::vector<std::string>& types = options.implementation_types;
  for (const Node& node : graph.nodes()) {
    const Operator* const op = node.removed ? nullptr : registry.Find(node.type);
    if (op == nullptr || op->implementations.empty()) continue;
    const bool listed = std::ranges::find(types, op->implementations) != types.end();
    if (!types.empty() && !listed) continue;
    graph.node(node.id).attrs.insert_or_assign(std::string(kImplMode),
                                               AttrValue::String(options.implementation));
  }
}

}  // namespace

Result<PrecisionOptions> PrecisionOf(const SystemOptions& options) {
  PrecisionOptions precision;
  precision.inference = options.graph_run_mode == 0;
  precision.mode = options.precision_mode.value_or("");
  precision.implementation = options.op_select_implmode.value_or("");
  const std::string types = options.optypelist_for_implmode.value_or("");
  for (const std::string_view type : Split(types, ",")) {
    if (!type.empty()) precision.implementation_types.emplace_back(type);
  }
  if (options.modify_mixlist) {
    NPUMESH_ASSIGN_OR_RETURN(precision.lists, ReadMixList(*options.modify_mixlist));
  }
  return precision;
}

Status ApplyPrecision(Model& model, const PrecisionOptions& options, const OpRegistry& registry,
                      GroupProvider* groups) {
  if (!options.implementation.empty()) {
    ChooseImplementation(model.graph, registry, options);
    for (Graph& graph : model.subgraphs) ChooseImplementation(graph, registry, options);
  }
  if (options.mode.empty()) return Status();
  NPUMESH_ASSIGN_OR_RETURN(PrecisionRule rule,
                           PrecisionRule::Of(options.mode, ClassesOf(options.lists, registry)));
  rule.Keep({options.kept_types.begin(), options.kept_types.end()},
            {options.kept_nodes.begin(), options.kept_nodes.end()});
  if (rule.mixed()) TellUnknownTypes(options.lists, registry);
  return ChooseInModel(model, rule, registry, groups);
}

}  // namespace npumesh
