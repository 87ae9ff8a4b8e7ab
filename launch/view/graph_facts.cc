#include "launch/view/graph_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "graph/ir/graph_input.h"
#include "graph/passes/analysis/bound_graph.h"
#include "launch/report/json_parts.h"
#include "launch/report/table.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

TensorType TypeOf(const TensorDesc& desc) {
  return {desc.dtype, desc.shape.value_or(Shape::UnknownRank())};
}

// Bytes of a declared type; 0 when it is not static.
uint64_t DeclaredBytes(const TensorType& type) {
  const bool known = type.shape.is_static() && type.shape.Check().ok();
  return known && BitsOf(type.dtype) > 0 ? type.bytes() : 0;
}

TensorType ParameterType(const Node& node) {
  if (const AttrValue* value = node.FindAttr("value")) {
    if (const TensorAttr* tensor = value->get<TensorAttr>()) return TypeOf(*tensor->desc);
  }
  DataType dtype = DataType::kUndefined;
  if (const AttrValue* attr = node.FindAttr("dtype")) {
    if (const DataTypeAttr* number = attr->get<DataTypeAttr>()) {
      dtype = DataTypeFromRuntime(number->number).value_or(DataType::kUndefined);
    }
  }
  return {dtype, Shape(node.IntsAttr("shape"))};
}

PortFacts InputFacts(const Node& node) {
  PortFacts port{node.IntAttr("index", 0), node.name, {}, IsRefData(node)};
  port.type = TypeOf(GraphInputDesc(node));
  return port;
}

PortFacts OutputFacts(const Graph& graph, const Node& output, size_t index) {
  PortFacts port{static_cast<int64_t>(index), "(not connected)", {}, false};
  if (const auto& value = output.inputs[index]) {
    port.name = fmt::format("{}:{}", graph.node(value->node).name, value->port);
  }
  port.type = TypeOf(output.input_descs[index]);
  return port;
}

class Examiner {
 public:
  Examiner(const OpRegistry& registry, const std::map<NodeId, TensorType>& collective_inputs)
      : registry_(registry), collective_inputs_(collective_inputs) {}

  // `main` is the graph that the types of collectives belong to.
  void Count(const Graph& graph, bool main) {
    for (const Node& node : graph.nodes()) {
      if (node.removed) continue;
      ++types_[node.type];
      if (registry_.Find(node.type) == nullptr && !IsFurniture(node)) unknown_.insert(node.type);
      if (IsWeightNode(node)) CountParameter(node);
      const Operator* op = registry_.Find(node.type);
      if (op != nullptr && op->collective) CountCollective(node, *op, main);
    }
  }

  GraphFacts Finish() {
    facts_.operators.assign(types_.begin(), types_.end());
    std::stable_sort(facts_.operators.begin(), facts_.operators.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    facts_.unknown.assign(unknown_.begin(), unknown_.end());
    return std::move(facts_);
  }

  GraphFacts& facts() { return facts_; }

 private:
  void CountParameter(const Node& node) {
    const uint64_t bytes = DeclaredBytes(ParameterType(node));
    ++facts_.parameters;
    facts_.parameter_bytes += bytes;
    if (IsFileConstant(node)) facts_.files[node.StringAttr("file_path", "")] += bytes;
  }

  void CountCollective(const Node& node, const Operator& op, bool main) {
    CollectiveFacts& facts = facts_.collectives[GroupOf(node, op)][node.type];
    ++facts.count;
    TensorType type;
    if (!node.input_descs.empty()) type = TypeOf(node.input_descs[0]);
    const auto inferred = collective_inputs_.find(node.id);
    if (main && inferred != collective_inputs_.end()) type = inferred->second;
    const uint64_t bytes = DeclaredBytes(type);
    facts.bytes += bytes;
    if (bytes == 0) ++facts.unknown;
  }

  const OpRegistry& registry_;
  const std::map<NodeId, TensorType>& collective_inputs_;
  GraphFacts facts_;
  std::map<std::string, int> types_;
  std::set<std::string> unknown_;
};

nlohmann::json PortJson(const PortFacts& port) {
  return {{"index", port.index},
          {"name", port.name},
          {"type", port.type.ToString()},
          {"updated", port.ref}};
}

std::string PortLines(std::string_view title, const std::vector<PortFacts>& ports) {
  const auto type = [](const nlohmann::json& row, std::string_view key) {
    return AsItIs(row, key) + (row.at("updated") == true ? "  updated in place" : "");
  };
  const TableForm table{
      .columns = {{"", 3, "index"}, {"", -32, "name", AsName}, {"", 0, "type", type}},
      .before = "  "};
  return fmt::format("{} ({})\n{}", title, ports.size(), TableText(table, ListOf(ports, PortJson)));
}

std::string CollectiveLines(const GraphFacts& facts) {
  std::string text = fmt::format("collectives ({} group{})\n", facts.collectives.size(),
                                 facts.collectives.size() == 1 ? "" : "s");
  for (const auto& [group, types] : facts.collectives) {
    text += fmt::format("  group {}\n", Quotable(group));
    for (const auto& [type, calls] : types) {
      const bool any_known = calls.unknown < calls.count;
      text += fmt::format("  {:>5}  {:<24} {}", calls.count, Quotable(type),
                          any_known ? HumanBytes(calls.bytes) : "size known at run time");
      if (any_known && calls.unknown > 0) text += fmt::format(" + {} unknown", calls.unknown);
      text += "\n";
    }
  }
  return text;
}

}  // namespace

GraphFacts Examine(const Model& model, const OpRegistry& registry,
                   const std::map<NodeId, TensorType>& collective_inputs) {
  Examiner examiner(registry, collective_inputs);
  GraphFacts& facts = examiner.facts();
  facts.name = model.graph.name();
  for (const Node& node : model.graph.nodes()) {
    if (node.removed) continue;
    ++facts.nodes;
    facts.edges += static_cast<size_t>(
        std::count_if(node.inputs.begin(), node.inputs.end(),
                      [](const std::optional<Value>& input) { return input.has_value(); }));
  }
  for (const NodeId id : model.graph.DataNodes()) {
    facts.inputs.push_back(InputFacts(model.graph.node(id)));
  }
  if (const NodeId id = model.graph.NetOutput(); id != kNoNode) {
    const Node& output = model.graph.node(id);
    for (size_t i = 0; i < output.inputs.size(); ++i) {
      facts.outputs.push_back(OutputFacts(model.graph, output, i));
    }
  }
  examiner.Count(model.graph, true);
  for (const Graph& subgraph : model.subgraphs) {
    facts.subgraphs.emplace_back(subgraph.name(), subgraph.nodes().size());
    examiner.Count(subgraph, false);
  }
  return examiner.Finish();
}

std::string HumanBytes(uint64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string ToText(const GraphFacts& facts) {
  std::string text =
      fmt::format("graph {}: {} nodes, {} edges\n", Quotable(facts.name), facts.nodes, facts.edges);
  text += PortLines("inputs", facts.inputs) + PortLines("outputs", facts.outputs);
  text += fmt::format("parameters {}, {}\n", facts.parameters, HumanBytes(facts.parameter_bytes));
  for (const auto& [file, bytes] : facts.files) {
    text += fmt::format("  {} {}\n", Printable(file), HumanBytes(bytes));
  }
  if (!facts.collectives.empty()) text += CollectiveLines(facts);
  for (const auto& [name, nodes] : facts.subgraphs) {
    text += fmt::format("subgraph {}: {} nodes\n", Quotable(name), nodes);
  }
  text += "operators\n";
  for (const auto& [type, count] : facts.operators) {
    const bool unknown =
        std::find(facts.unknown.begin(), facts.unknown.end(), type) != facts.unknown.end();
    text += fmt::format("  {:>5}  {}{}\n", count, Quotable(type),
                        unknown ? "  unknown: npumesh cannot run it" : "");
  }
  return text;
}

nlohmann::json ToJsonObject(const GraphFacts& facts) {
  using nlohmann::json;
  const auto known = [&facts](const auto& counted) {
    return json{{"type", counted.first},
                {"count", counted.second},
                {"known", !std::ranges::count(facts.unknown, counted.first)}};
  };
  json collectives = json::array();
  for (const auto& [group, types] : facts.collectives) {
    for (const auto& [type, calls] : types) {
      collectives.push_back({{"group", group},
                             {"type", type},
                             {"count", calls.count},
                             {"bytes", calls.bytes},
                             {"of_unknown_size", calls.unknown}});
    }
  }
  const auto subgraph = [](const auto& counted) {
    return json{{"name", counted.first}, {"nodes", counted.second}};
  };
  return {{"graph", facts.name},
          {"edges", facts.edges},
          {"inputs", ListOf(facts.inputs, PortJson)},
          {"outputs", ListOf(facts.outputs, PortJson)},
          {"operators", ListOf(facts.operators, known)},
          {"parameters", facts.parameters},
          {"parameter_bytes", facts.parameter_bytes},
          {"weight_files", facts.files},
          {"collectives", std::move(collectives)},
          {"subgraphs", ListOf(facts.subgraphs, subgraph)}};
}

}  // namespace npumesh
