#include "launch/view/stage_outline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/engine/analyse/partial_types.h"
#include "graph/engine/plan/static_parts.h"
#include "graph/passes/analysis/reachability.h"
#include "graph/passes/schedule/execution_order.h"
#include "launch/report/json_parts.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

using nlohmann::json;

std::string TextOf(const NamedTypes& types, const std::string& name) {
  const auto found = types.find(name);
  const bool known = found != types.end() && found->second.dtype != DataType::kUndefined;
  return known ? found->second.ToString() : "?";
}

OutlinedStep StepOf(const Node& node, const NamedTypes& types) {
  OutlinedStep step{node.name, node.type, {}, -1};
  for (size_t port = 0; port < node.output_descs.size(); ++port) {
    step.outputs.push_back(TextOf(types, fmt::format("{}:{}", node.name, port)));
  }
  return step;
}

std::string StepLine(const OutlinedStep& step) {
  return fmt::format("  {:<24} {:<32} {}{}\n", Quotable(step.type), Quotable(step.name),
                     fmt::join(step.outputs, ", "),
                     step.part < 0 ? "" : fmt::format("  static part {}", step.part));
}

json OutlinedJson(const OutlinedStep& step) {
  return {{"name", step.name},
          {"type", step.type},
          {"outputs", step.outputs},
          {"part", FromZero(step.part)}};
}

}  // namespace

Result<NamedTypes> TypesByName(Model model, const OpRegistry& registry,
                               const std::vector<TensorType>& types, GroupProvider* groups) {
  const std::vector<NodeId> inputs = model.graph.DataNodes();
  for (size_t i = 0; i < inputs.size() && i < types.size(); ++i) {
    std::vector<TensorDesc>& descs = model.graph.node(inputs[i]).output_descs;
    if (descs.empty()) continue;
    descs[0].dtype = types[i].dtype;
    descs[0].shape = types[i].shape;
  }
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, model.graph.StableOrder());
  const BoundGraph graph(model.graph, registry);
  NPUMESH_ASSIGN_OR_RETURN(const PartialTypes known,
                           PartialTypes::Of(model, graph, order, groups, PartialEffort::kThorough));
  NamedTypes named;
  for (const NodeId id : order) {
    const Node& node = model.graph.node(id);
    if (IsInputNode(node)) named[node.name] = known.type({id, 0});
    for (size_t port = 0; port < node.output_descs.size(); ++port) {
      const int number = static_cast<int>(port);
      named[fmt::format("{}:{}", node.name, port)] = known.type({id, number});
    }
  }
  return named;
}

Result<StageOutline> OutlineOf(const Stage& stage, int number, const OpRegistry& registry,
                               const NamedTypes& types, const CompileOptions& options,
                               GroupProvider* groups) {
  const Graph& graph = stage.model.graph;
  const BoundGraph bound(graph, registry);
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           ExecutionOrder(bound, NeededNodes(bound, nullptr, options.dead_nodes()),
                                          options.order, options.overlap_collectives));
  StageOutline outline;
  outline.number = number;
  for (const NodeId id : graph.DataNodes()) {
    const std::string& name = graph.node(id).name;
    outline.inputs.push_back(fmt::format("{} {}", name, TextOf(types, name)));
  }
  std::map<NodeId, int> parts;
  if (options.static_ops_limit >= 0) {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<bool> is_static,
                             StaticOperators(stage.model, bound, order, groups));
    int part = 0;
    for (const auto& nodes : StaticSubgraphs(bound, order, is_static, options.static_ops_limit)) {
      for (const NodeId id : nodes) parts[id] = part;
      ++part;
    }
  }
  for (const NodeId id : order) {
    if (IsFurniture(graph.node(id))) continue;
    outline.steps.push_back(StepOf(graph.node(id), types));
    if (const auto part = parts.find(id); part != parts.end()) {
      outline.steps.back().part = part->second;
    }
  }
  for (const LateNode& late : stage.late) outline.late.push_back(StepOf(late.node, types));
  return outline;
}

std::string ToText(const StageOutline& stage) {
  std::string text = fmt::format("stage {}: {} operators\n", stage.number, stage.steps.size());
  for (const std::string& input : stage.inputs)
    text += fmt::format("  reads {}\n", Quotable(input));
  for (const OutlinedStep& step : stage.steps) text += StepLine(step);
  for (const OutlinedStep& step : stage.late) text += "  ends with" + StepLine(step);
  return text;
}

json ToJsonObject(const StageOutline& stage) {
  return {{"stage", stage.number},
          {"inputs", stage.inputs},
          {"steps", ListOf(stage.steps, OutlinedJson)},
          {"late", ListOf(stage.late, OutlinedJson)}};
}

}  // namespace npumesh
